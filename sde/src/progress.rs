//! A progress bar for long work, when a person is looking.

use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressDrawTarget, ProgressStyle};

use crate::event::{Event, Observer};

/// An observer that draws the progress of [`par_map`](crate::Handle::par_map) and
/// [`progress`](crate::Handle::progress) on standard error, if that is a terminal;
/// else it draws nothing.
///
/// One bar is shown at a time: that of the work that moved on last, unless it is
/// done.
#[derive(Clone, Default)]
pub struct ProgressBar(Arc<Mutex<Option<Shown>>>);

struct Shown {
    label: Arc<str>,
    bar: indicatif::ProgressBar,
}

impl ProgressBar {
    /// No bar is shown before there is progress.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Observer for ProgressBar {
    fn observe(&self, event: &Event) {
        let Event::Progress { label, done, total } = event else {
            return;
        };
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = shown.as_ref().is_some_and(|shown| shown.label == *label);
        if !same {
            *shown = Some(Shown {
                label: Arc::clone(label),
                bar: new_bar(label, *total),
            });
        }
        let Some(Shown { bar, .. }) = &*shown else {
            return;
        };
        // Threads tell of their progress in any order.
        let done = bar.position().max(*done as u64);
        bar.set_position(done);
        if done >= *total as u64 {
            bar.finish_and_clear();
            *shown = None;
        }
    }
}

fn new_bar(label: &str, total: usize) -> indicatif::ProgressBar {
    let bar =
        indicatif::ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    // The template is a constant; without it the bar has indicatif's own look.
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}  {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(crate::error::printable(label));
    bar
}
