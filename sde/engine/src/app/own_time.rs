//! The own time of a body, without the runs that it makes.
//!
//! The time of a body from begin to end is the cost of getting its result back. Summed over all bodies it counts each
//! level of nesting again, and waits for other threads and the store. So each thread adds up the time of its body's
//! nested calls. Hits are left out: their time does not matter, but that of reading the clock would.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The time of a run over all its legs: those before the scratch state from which it went on, and this one.
#[derive(Default)]
pub(crate) struct RunClock {
    /// When the body began.
    began: OnceLock<Instant>,
    /// The time of the legs before, settled by the first state that is loaded or saved: a state that this leg has saved
    /// itself is no leg before.
    earlier: OnceLock<Duration>,
    /// The time that the body reports for this leg, in nanoseconds.
    said: AtomicU64,
}

impl RunClock {
    pub(crate) fn begin(&self) {
        // A body is begun once.
        let _ = self.began.set(Instant::now());
    }

    /// The run goes on from a state of a run that had taken this time.
    pub(crate) fn go_on_from(&self, took: Duration) {
        let _ = self.earlier.set(took);
    }

    pub(crate) fn say(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.said.fetch_max(nanos, Ordering::Relaxed);
    }

    /// The time of all legs, of which this one took so long as far as is known.
    pub(crate) fn all_legs(&self, this: Duration) -> Duration {
        let said = Duration::from_nanos(self.said.load(Ordering::Relaxed));
        let earlier = self.earlier.get().copied().unwrap_or_default();
        earlier.saturating_add(this.max(said))
    }

    /// The time so far, for a state that is saved now.
    pub(crate) fn at_state(&self) -> Duration {
        self.earlier.get_or_init(Duration::default);
        self.all_legs(self.began.get().map_or(Duration::ZERO, Instant::elapsed))
    }
}
