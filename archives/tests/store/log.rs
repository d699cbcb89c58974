//! What is told by `tracing`.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Hands on what is told, of a level and those above it.
struct Listener<F>(Level, F);

impl<F: Fn(String) + Send + Sync + 'static> Subscriber for Listener<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.0
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.1(text.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        write!(self.0, "{value:?}").unwrap();
    }
}

/// Does something and hands on what is told of this level, and those above it, on this thread.
pub fn listening<T>(
    level: Level,
    listener: impl Fn(String) + Send + Sync + 'static,
    job: impl FnOnce() -> T,
) -> T {
    tracing::subscriber::with_default(Listener(level, listener), job)
}

/// Hands on what is told of this level, and those above it, on all threads of this process from now on.
#[allow(dead_code, reason = "it is for a test of its own process")]
pub fn listen(level: Level, listener: impl Fn(String) + Send + Sync + 'static) {
    tracing::subscriber::set_global_default(Listener(level, listener)).unwrap();
}

/// Does something and gives the warnings that came on this thread.
pub fn warnings<T>(job: impl FnOnce() -> T) -> (T, Vec<String>) {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&warnings);
    let given = listening(
        Level::WARN,
        move |text| kept.lock().unwrap().push(text),
        job,
    );
    let warnings = warnings.lock().unwrap().clone();
    (given, warnings)
}
