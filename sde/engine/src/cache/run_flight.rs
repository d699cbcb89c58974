//! The flight of a run, the callers interested in it, and its results.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::flight::Flight;
use super::waits::Awaited;
use crate::app::Wake;
use crate::entry::Entry;
use crate::error::Error;
use crate::key::Key;
use crate::result_map::ResultMap;

/// One computation in progress. It dereferences to its flight.
pub(crate) struct RunFlight {
    pub(crate) key: Key,
    flight: Flight<Arc<Entry>, Error>,
    pub(super) generation: u64,
    /// How many callers wait for the result or are about to.
    interested: AtomicUsize,
    /// How many calls began to compute the same key beside this flight.
    beside: AtomicUsize,
    /// The results, with those that the cache does not keep, for as long as anybody holds the flight.
    given: OnceLock<ResultMap>,
}

impl RunFlight {
    pub(super) fn new(key: Key, generation: u64) -> Self {
        Self {
            key,
            flight: Flight::new(),
            generation,
            interested: AtomicUsize::new(0),
            beside: AtomicUsize::new(0),
            given: OnceLock::new(),
        }
    }

    /// Keeps the results for the waiters. The first results stand, as in the flight.
    pub(super) fn set_given(&self, results: &ResultMap) {
        // If results were set before, those are as good.
        let _ = self.given.set(results.clone());
    }

    /// Counts the caller as interested for as long as the guard lives.
    pub(crate) fn interest(&self) -> Interested<'_> {
        self.interested.fetch_add(1, Ordering::AcqRel);
        Interested(self)
    }

    /// How many calls began to compute the same key beside this flight.
    pub(crate) fn beside(&self) -> usize {
        self.beside.load(Ordering::Relaxed)
    }

    /// Counts one more such call; gives the number before.
    pub(crate) fn one_more_beside(&self) -> usize {
        self.beside.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn given(&self) -> Option<&ResultMap> {
        self.given.get()
    }
}

impl Deref for RunFlight {
    type Target = Flight<Arc<Entry>, Error>;

    fn deref(&self) -> &Self::Target {
        &self.flight
    }
}

/// A caller who wants the result of a flight.
pub(crate) struct Interested<'a>(&'a RunFlight);

impl Drop for Interested<'_> {
    fn drop(&mut self) {
        self.0.interested.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Awaited for RunFlight {
    fn is_over(&self) -> bool {
        self.flight.is_complete()
    }

    fn wake(&self) {
        self.flight.wake();
    }
}

impl Wake for RunFlight {
    fn wake(&self) {
        self.flight.wake();
    }

    fn is_wanted(&self) -> bool {
        self.interested.load(Ordering::Acquire) > 0
    }
}
