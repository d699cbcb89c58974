//! The time that a body takes itself, without the runs that it makes.
//!
//! What a body took from its begin to its end is what it would cost to have its result again. Added up over all
//! bodies it is more than the time that has passed, once for each level of nesting, and it has in it what was waited for: other
//! threads, the store. So each thread adds up how long the calls took that its body made, those apart that were hits: these
//! take no time that would matter, and reading the clock would.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// What the body on top of this thread has called so far.
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

/// Adds what a body waited for helpers.
pub(crate) fn add_waiting(waited: Duration) {
    NESTED.set(NESTED.get() + waited);
}

impl Drop for NestedCall {
    fn drop(&mut self) {
        // In place of what was added meanwhile, which is part of it.
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

    /// What it took, and what of that it took itself.
    pub(crate) fn end(self) -> (Duration, Duration) {
        let took = self.0.start.elapsed();
        (took, took.saturating_sub(NESTED.get()))
    }
}
