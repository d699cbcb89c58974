//! What fits the time that is left.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The costs of an app's latest computations, by when they were begun.
#[derive(Debug, Default)]
pub(crate) struct Costs(BTreeMap<(SystemTime, Run), Duration>);

/// A process, and the number of a computation there.
type Run = (u64, u64);

/// How many of them count.
const LATEST: usize = 50;

/// With fewer known costs there is no estimate.
const FEWEST: usize = 3;

/// The share of the job's whole time that must be left, where the cost of an item is not known: a twentieth.
const SHARE: u32 = 20;

impl Costs {
    /// Notes a computation: once, however often it is told of.
    pub(crate) fn note(&mut self, made_at: SystemTime, run: Run, took: Duration) {
        self.0.insert((made_at, run), took);
        if self.0.len() > LATEST {
            self.0.pop_first();
        }
    }

    /// The time that the next item may take: the 90th percentile by nearest rank, and a fifth more. `None` if too few are known.
    pub(crate) fn estimate(&self) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.0.values().copied().collect();
        if sorted.len() < FEWEST {
            return None;
        }
        sorted.sort_unstable();
        let rank = (9 * sorted.len()).div_ceil(10);
        let cost = *sorted.get(rank - 1)?;
        Some(cost.saturating_add(cost / 5))
    }

    /// The mean of the costs; `None` if none is known.
    pub(crate) fn mean(&self) -> Option<Duration> {
        let sum = self
            .0
            .values()
            .fold(Duration::ZERO, |sum, cost| sum.saturating_add(*cost));
        let count = u32::try_from(self.0.len()).ok()?;
        sum.checked_div(count)
    }

    /// How long items may still begin, of a job that has so much time left of its whole time: none if nothing fits any more.
    pub(crate) fn closes_in(&self, left: Duration, whole: Duration) -> Duration {
        left.saturating_sub(self.estimate().unwrap_or(whole / SHARE))
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Costs of so many seconds, one after another.
    fn costs(all: impl IntoIterator<Item = u64>) -> Costs {
        let mut costs = Costs::default();
        for (number, took) in (1..).zip(all) {
            let at = UNIX_EPOCH + seconds(number);
            costs.note(at, (0, number), seconds(took));
        }
        costs
    }

    #[test]
    fn the_estimate_is_the_90th_percentile_of_the_latest_and_a_fifth_more() {
        assert_eq!(costs([10, 20]).estimate(), None);
        assert_eq!(costs([10, 30, 20]).estimate(), Some(seconds(36)));
        assert_eq!(
            costs((1..=10).map(|n| 10 * n)).estimate(),
            Some(seconds(108))
        );
        assert_eq!(
            costs((1..=11).map(|n| 10 * n)).estimate(),
            Some(seconds(120))
        );
        assert_eq!(
            costs((1..=50).map(|n| 10 * n)).estimate(),
            Some(seconds(540))
        );
        let forgotten = [1000; 100].into_iter().chain([10; 50]);
        assert_eq!(costs(forgotten).estimate(), Some(seconds(12)));
        let huge = Costs(
            (0..3)
                .map(|n| ((UNIX_EPOCH, (0, n)), Duration::MAX))
                .collect(),
        );
        assert_eq!(huge.estimate(), Some(Duration::MAX));
    }

    #[test]
    fn the_latest_are_those_that_began_last_each_once() {
        let mut costs = costs([10, 20, 30]);
        for _ in 0..2 {
            costs.note(UNIX_EPOCH, (9, 1), seconds(40));
        }
        assert_eq!(costs.0.len(), 4);
        (0..47).for_each(|n| costs.note(UNIX_EPOCH + seconds(9), (9, n), seconds(1)));
        assert_eq!(costs.0.len(), LATEST);
        assert_eq!(costs.0.values().max(), Some(&seconds(30)));
    }

    #[test]
    fn nothing_begins_that_does_not_fit() {
        let whole = seconds(1000);
        let closes = |costs: &Costs, left| costs.closes_in(seconds(left), whole);
        let (unknown, known) = (costs([500, 500]), costs([10, 10, 10]));
        assert_eq!(closes(&unknown, 51), seconds(1));
        assert_eq!(
            [closes(&unknown, 50), closes(&unknown, 0)],
            [Duration::ZERO; 2]
        );
        assert_eq!(closes(&known, 13), seconds(1));
        assert_eq!([closes(&known, 12), closes(&known, 0)], [Duration::ZERO; 2]);
        // Also where they cost nothing.
        assert_eq!(closes(&costs([0, 0, 0]), 0), Duration::ZERO);
    }

    /// Workers that take items whose costs vary by ten, with a clock that is counted: each has at most one item in hand
    /// when the time is up, and few have any.
    #[test]
    fn each_worker_is_over_by_one_item_at_most() {
        let whole = 1000;
        let mut random = 1_u64;
        let mut over = 0;
        for job in 0..100 {
            let mut costs = Costs::default();
            let mut free_at = [0_u64; 4];
            loop {
                let worker = (0..4).min_by_key(|worker| free_at[*worker]).unwrap_or(0);
                let now = free_at[worker];
                if costs.closes_in(seconds(whole).saturating_sub(seconds(now)), seconds(whole))
                    == Duration::ZERO
                {
                    break;
                }
                assert!(now < whole);
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let took = 2 + (random >> 33) % 19;
                free_at[worker] += took;
                // It is known when it ends; to know it at once is no better.
                costs.note(UNIX_EPOCH + seconds(now), (job, random), seconds(took));
            }
            assert!(free_at.iter().all(|end| *end < whole + 20));
            over += free_at.iter().filter(|end| **end > whole).count();
        }
        assert_eq!(over, 0, "the estimate is above nearly all costs");
    }
}
