//! Comparisons of work that takes a good part of a second, and needs something made for each time.
//!
//! A checkpoint can be made only once: the next one needs new results and a new store, and making these
//! must not be timed. So a case itself gives the time of the part that
//! counts. Otherwise it is a [`Comparison`](crate::Comparison): the cases take
//! turns, and ratios are taken within a round.
//!
//! ```
//! use sde_benches::Tries;
//! use std::time::{Duration, Instant};
//!
//! let mut tries = Tries::new(3, Duration::from_secs(10));
//! for length in [1000, 2000] {
//!     tries.case(format!("sort {length}"), move || {
//!         let mut numbers: Vec<u64> = (0..length).rev().map(|i| i * i % 101).collect();
//!         let begin = Instant::now();
//!         numbers.sort_unstable();
//!         begin.elapsed()
//!     });
//! }
//! assert!(tries.run().ratio("sort 2000", "sort 1000").is_some());
//! ```

use crate::Measured;
use std::time::{Duration, Instant};

/// Cases to be timed against one another, each of which times itself.
pub struct Tries<'a> {
    rounds: usize,
    limit: Duration,
    cases: Vec<Case<'a>>,
}

struct Case<'a> {
    name: String,
    work: Box<dyn FnMut() -> Duration + 'a>,
    /// Nanoseconds, by round.
    times: Vec<f64>,
}

impl<'a> Tries<'a> {
    /// Tries with this many rounds, and one before that does not count. No round begins after
    /// `limit`, except for the first two.
    pub fn new(rounds: usize, limit: Duration) -> Self {
        Self {
            rounds,
            limit,
            cases: Vec::new(),
        }
    }

    /// Adds a case: `work` does it once and gives the time of the part that counts.
    pub fn case(&mut self, name: impl Into<String>, work: impl FnMut() -> Duration + 'a) {
        self.cases.push(Case {
            name: name.into(),
            work: Box::new(work),
            times: Vec::new(),
        });
    }

    /// Runs all cases in turn, round after round.
    pub fn run(mut self) -> Measured {
        let begin = Instant::now();
        let cases = self.cases.len();
        for round in 0..=self.rounds {
            if round > 1 && begin.elapsed() > self.limit {
                break;
            }
            for turn in 0..cases {
                // Each round begins with another case, so that the order of cases has no influence.
                let case = &mut self.cases[(round + turn) % cases];
                let took = (case.work)().as_secs_f64() * 1e9;
                if round > 0 {
                    case.times.push(took);
                }
            }
        }
        let cases = self.cases.into_iter();
        Measured::of(cases.map(|case| (case.name, case.times)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Tries;
    use std::time::Duration;

    #[test]
    fn each_round_has_each_case_and_the_first_does_not_count() {
        let (mut one, mut two) = (0, 0);
        let mut tries = Tries::new(3, Duration::MAX);
        tries.case("one", || {
            one += 1;
            Duration::from_nanos(one)
        });
        tries.case("two", || {
            two += 10;
            Duration::from_nanos(two)
        });
        let measured = tries.run();
        assert_eq!(measured.nanoseconds("one").unwrap().median, 3.0);
        assert_eq!(measured.ratio("two", "one").unwrap().median, 10.0);
        assert_eq!((one, two), (4, 40));
    }

    #[test]
    fn no_more_is_begun_when_the_time_is_over() {
        let mut done = 0;
        let mut tries = Tries::new(100, Duration::ZERO);
        tries.case("one", || {
            done += 1;
            Duration::ZERO
        });
        tries.run();
        assert_eq!(done, 2);
    }
}
