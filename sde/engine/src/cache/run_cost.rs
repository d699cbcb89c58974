//! The time that runs of one app take without nested runs, as far as this process has seen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::entry::nanos;

/// A shorter run is not worth announcing to other processes.
pub(crate) const SHORT: Duration = Duration::from_millis(20);

/// The time that bodies of an app took. Nested runs are left out: they are shared themselves.
#[derive(Default)]
pub(crate) struct RunCost {
    /// An average in nanoseconds in which the latest run counts for a quarter; 0 before the first.
    average: AtomicU64,
    longest: AtomicU64,
    /// The longest time that the app expected of a run, in nanoseconds.
    expected: AtomicU64,
}

impl RunCost {
    /// Notes the time of a run. If two threads do at once, one time may be lost.
    pub(crate) fn note(&self, took: Duration) {
        let took = nanos(took).max(1);
        let average = match self.average.load(Ordering::Relaxed) {
            0 => took,
            before => before - before / 4 + took / 4,
        };
        self.average.store(average, Ordering::Relaxed);
        self.longest.fetch_max(took, Ordering::Relaxed);
    }

    /// Notes the time that the app expects of a run.
    pub(crate) fn expect(&self, time: Duration) {
        self.expected.fetch_max(nanos(time), Ordering::Relaxed);
    }

    /// The average time of a run, or the expected time if that is longer; `None` if neither is known.
    pub(crate) fn average(&self) -> Option<Duration> {
        self.at_least_as_expected(&self.average)
    }

    fn at_least_as_expected(&self, seen: &AtomicU64) -> Option<Duration> {
        let expected = self.expected.load(Ordering::Relaxed);
        let most = seen.load(Ordering::Relaxed).max(expected);
        (most > 0).then(|| Duration::from_nanos(most))
    }

    /// Whether a run is known to be worth announcing before it begins.
    pub(crate) fn is_long(&self) -> bool {
        self.average().is_some_and(|average| average >= SHORT)
    }

    /// The longest time of a run, or the expected time if that is longer; `None` if neither is known.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.at_least_as_expected(&self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_follows_and_the_longest_stays() {
        let cost = RunCost::default();
        assert_eq!((cost.average(), cost.longest()), (None, None));
        cost.note(Duration::from_micros(8));
        assert_eq!(cost.average(), Some(Duration::from_micros(8)));
        cost.note(Duration::ZERO);
        assert_eq!(cost.average(), Some(Duration::from_micros(6)));
        assert_eq!(cost.longest(), Some(Duration::from_micros(8)));
        assert!(!cost.is_long());
        cost.expect(Duration::from_secs(1));
        cost.note(Duration::ZERO);
        assert!(cost.is_long());
        assert_eq!(cost.longest(), Some(Duration::from_secs(1)));
    }
}
