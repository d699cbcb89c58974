//! Signals by which tests put threads in order, so that none has to sleep.
//!
//! Every wait here is bounded, but only so that a mistake fails a test instead of hanging it: no
//! test takes its order from a time.

use std::any::Any;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After this long something has gone wrong, on however slow a machine.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A value that is never freed. A list has it, so a sanitizer does not take it for lost.
#[must_use]
pub fn for_ever<T: Any + Default + Sync>() -> &'static T {
    static ALL: Mutex<Vec<&(dyn Any + Sync)>> = Mutex::new(Vec::new());
    let one: &'static T = Box::leak(Box::default());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(one);
    one
}

/// A number that only grows, and that threads wait for. Copies are the same number, which is never freed: an app's
/// body takes one, and the test keeps one.
#[derive(Clone, Copy, Debug)]
pub struct Counter(&'static (Mutex<usize>, Condvar));

impl Default for Counter {
    fn default() -> Self {
        Self(for_ever())
    }
}

impl Counter {
    /// Zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one; gives the number before.
    pub fn add(&self) -> usize {
        let mut count = self.lock();
        *count += 1;
        self.0.1.notify_all();
        *count - 1
    }

    /// The number now.
    #[must_use]
    pub fn get(&self) -> usize {
        *self.lock()
    }

    /// Waits until the number is at least this.
    ///
    /// # Panics
    /// If that takes longer than [`LIMIT`].
    pub fn reach(&self, number: usize) {
        let deadline = Instant::now() + LIMIT;
        let mut count = self.lock();
        while *count < number {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} of {number} came", *count);
            let waited = self.0.1.wait_timeout(count, left);
            count = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A gate that holds up each thread that comes until it is opened, once and for all. Copies are the same gate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gate {
    arrived: Counter,
    opened: Counter,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Arrives, and waits for the gate to be open.
    ///
    /// # Panics
    /// If that takes longer than [`LIMIT`].
    pub fn pass(&self) {
        self.arrived.add();
        self.opened.reach(1);
    }

    /// Waits until so many have arrived.
    ///
    /// # Panics
    /// If that takes longer than [`LIMIT`].
    pub fn arrived(&self, number: usize) {
        self.arrived.reach(number);
    }

    /// Lets everybody through, now and later.
    pub fn open(&self) {
        self.opened.add();
    }
}

/// Calls `done` again and again until it says yes, for a state that nobody signals.
///
/// # Panics
/// If that takes longer than [`LIMIT`].
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "not in {LIMIT:?}: {what}");
        std::thread::yield_now();
    }
}
