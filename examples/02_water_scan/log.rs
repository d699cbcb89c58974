//! `--verbose`: a line on standard error for each thing that was computed, loaded or saved.
//!
//! Each line is written at once and begins with the number of its thread, so that what several
//! threads do can be told apart, and what was told before a kill is whole.

use std::cell::Cell;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use sde::{Event, Source};

static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static THREAD: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed));
}

/// Tells an event, if it is one of those.
pub fn tell(event: &Event) {
    let what = match event {
        Event::Started { app, key, .. } => format!("computing {app} {}", key.short()),
        Event::Resumed { app, key, .. } => {
            format!("going on with {app} {} where it was left", key.short())
        }
        Event::Finished {
            app, key, source, ..
        } => match source {
            Source::Computed | Source::Duplicate => format!("computed {app} {}", key.short()),
            Source::Loaded => format!("loaded {app} {}", key.short()),
            _ => return,
        },
        Event::Saved {
            entries,
            scratch,
            took,
            ..
        } => format!(
            "saved, entries: {entries}, states: {scratch}, in {:.1} ms",
            took.as_secs_f64() * 1e3
        ),
        _ => return,
    };
    let line = format!("thread {}: {what}\n", THREAD.get());
    // Who closes standard error does not want to know.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
