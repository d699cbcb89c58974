//! An observer that threads can wait on.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sde::{Event, Observer, Source};

use crate::signal::LIMIT;

/// Keeps all events, and wakes those who wait for one.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<(Mutex<Vec<Event>>, Condvar)>);

impl Watch {
    /// No events yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// Forgets the events so far.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// How many events are such.
    #[must_use]
    pub fn count(&self, is_such: impl Fn(&Event) -> bool) -> usize {
        self.lock().iter().filter(|event| is_such(event)).count()
    }

    /// Waits until so many events are such.
    ///
    /// # Panics
    /// If that takes longer than [`LIMIT`].
    pub fn reach(&self, number: usize, is_such: impl Fn(&Event) -> bool) {
        let deadline = Instant::now() + LIMIT;
        let mut events = self.lock();
        while events.iter().filter(|event| is_such(event)).count() < number {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "still waiting; there were: {events:#?}");
            let waited = self.0.1.wait_timeout(events, left);
            events = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until so many calls of an app wait for another. They are about to: the event is told
    /// just before.
    ///
    /// # Panics
    /// If that takes longer than [`LIMIT`].
    pub fn waiting(&self, of: &str, number: usize) {
        self.reach(
            number,
            |event| matches!(event, Event::Waiting { app, .. } if &**app == of),
        );
    }

    /// How the finished runs of an app got their results, in order.
    #[must_use]
    pub fn sources(&self, of: &str) -> Vec<Source> {
        let events = self.lock();
        let sources = events.iter().filter_map(|event| match event {
            Event::Finished { app, source, .. } if &**app == of => Some(*source),
            _ => None,
        });
        sources.collect()
    }

    /// Why remembered results of an app were not used, in order.
    #[must_use]
    pub fn stale(&self, of: &str) -> Vec<String> {
        let events = self.lock();
        let reasons = events.iter().filter_map(|event| match event {
            Event::Stale { app, why, .. } if &**app == of => Some(why.clone()),
            _ => None,
        });
        reasons.collect()
    }

    /// How many entries were saved.
    #[must_use]
    pub fn saved(&self) -> usize {
        let events = self.lock();
        let saved = events.iter().map(|event| match event {
            Event::Saved { entries, .. } => *entries,
            _ => 0,
        });
        saved.sum()
    }

    /// The warnings, in order.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let events = self.lock();
        let warnings = events.iter().filter_map(|event| match event {
            Event::Warning { message, .. } => Some(message.clone()),
            _ => None,
        });
        warnings.collect()
    }

    /// How often an app's body was started.
    #[must_use]
    pub fn started(&self, of: &str) -> usize {
        self.count(|event| matches!(event, Event::Started { app, .. } if &**app == of))
    }

    /// How often a waiter took over.
    #[must_use]
    pub fn taken_over(&self, of: &str) -> usize {
        self.count(|event| matches!(event, Event::TakenOver { app, .. } if &**app == of))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watch {
    fn observe(&self, event: &Event) {
        self.lock().push(event.clone());
        self.0.1.notify_all();
    }
}
