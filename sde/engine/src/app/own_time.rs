//! The own time of a body, without the runs that it makes.
//!
//! The time of a body from begin to end is the cost of getting its result back. Summed over all bodies it counts each
//! level of nesting again, and waits for other threads and the store. So each thread adds up the time of its body's
//! nested calls. Hits are left out: their time does not matter, but that of reading the clock would.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// The time that the body on top of this thread spent in calls and waits so far.
    static NESTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A call that a body makes, for as long as it lives.
pub(crate) struct NestedCall {
    start: Instant,
    before: Duration,
}

impl NestedCall {
    pub(crate) fn begin() -> Self {
        Self {
            start: Instant::now(),
            before: NESTED.get(),
        }
    }
}

/// Adds time that a body waited for helpers.
pub(crate) fn add_waiting(waited: Duration) {
    NESTED.set(NESTED.get() + waited);
}

impl Drop for NestedCall {
    fn drop(&mut self) {
        // Replaces times added by inner calls, which are part of this one.
        NESTED.set(self.before + self.start.elapsed());
    }
}

/// The time of a body that has begun.
pub(crate) struct BodyTime(NestedCall);

impl BodyTime {
    pub(crate) fn begin() -> Self {
        let time = Self(NestedCall::begin());
        NESTED.set(Duration::ZERO);
        time
    }

    /// The time since its begin, and its own time.
    pub(crate) fn end(self) -> (Duration, Duration) {
        let took = self.0.start.elapsed();
        (took, took.saturating_sub(NESTED.get()))
    }
}
