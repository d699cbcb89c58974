//! Cases, rounds and ratios.

use crate::Spread;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a slice is tried until its threads run together.
const ATTEMPTS: usize = 20;

/// The lengths and numbers of measurements.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The number of times that each case is timed.
    pub rounds: usize,
    /// The duration of each timing.
    pub slice: Duration,
    /// The operations before each timing, untimed, on each thread: a case should find its own data in the
    /// processor's caches, not those of the case before.
    pub warm_up: u64,
}

impl Settings {
    /// For reported numbers: 101 rounds of 0.2 ms. Such short slices mostly end before the
    /// system takes the core away, so that the median is of undisturbed slices even on a busy machine.
    pub fn thorough() -> Self {
        Self {
            rounds: 101,
            slice: Duration::from_micros(200),
            warm_up: 0,
        }
    }

    /// To check that it runs: 3 rounds of 0.02 ms.
    pub fn quick() -> Self {
        Self {
            rounds: 3,
            slice: Duration::from_micros(20),
            warm_up: 0,
        }
    }

    /// Thorough under `cargo bench`, which passes `--bench`; quick under `cargo test`.
    pub fn from_args() -> Self {
        if std::env::args().any(|arg| arg == "--bench") {
            Self::thorough()
        } else {
            Self::quick()
        }
    }
}

/// One thread's work in one slice of time.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The number of the thread in its case, from 0.
    pub thread: usize,
    /// The number of the first operation, so that a pattern in time goes on over the slices.
    pub first: u64,
    /// The number of operations.
    pub count: u64,
}

/// Does `operation` as often as `run` says, with a number that grows, and hides the result from the
/// compiler so that the operation can't be left out.
#[inline(always)]
pub fn repeat<T>(run: Run, mut operation: impl FnMut(u64) -> T) {
    for number in run.first..run.first + run.count {
        black_box(operation(black_box(number)));
    }
}

struct Case<'a> {
    name: String,
    threads: usize,
    work: Box<dyn Fn(Run) + Sync + 'a>,
    /// Operations in a slice, determined before the first round.
    count: u64,
    warm_up: u64,
    done: u64,
    /// Nanoseconds for an operation, by round.
    times: Vec<f64>,
}

/// Cases to be timed against one another.
pub struct Comparison<'a> {
    settings: Settings,
    cases: Vec<Case<'a>>,
}

impl<'a> Comparison<'a> {
    /// A comparison without cases.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            cases: Vec::new(),
        }
    }

    /// Adds a case: `work` is called on `threads` threads at once and does as its [`Run`] says,
    /// most simply with [`repeat`]. Data that it needs should be made before, outside.
    pub fn case(
        &mut self,
        name: impl Into<String>,
        threads: usize,
        work: impl Fn(Run) + Sync + 'a,
    ) -> &mut Self {
        let name = name.into();
        let work = Box::new(work);
        self.cases.push(Case {
            name,
            threads,
            work,
            count: 1,
            warm_up: self.settings.warm_up,
            done: 0,
            times: Vec::new(),
        });
        self
    }

    /// Times all cases in turn, round after round.
    pub fn run(mut self) -> Measured {
        for case in &mut self.cases {
            case.find_count(self.settings.slice);
        }
        let cases = self.cases.len();
        for round in 0..self.settings.rounds {
            for turn in 0..cases {
                // Each round begins with another case, so that the order of cases has no influence.
                let case = &mut self.cases[(round + turn) % cases];
                let time = case.time();
                case.times.push(time);
            }
        }
        Measured {
            cases: self
                .cases
                .into_iter()
                .map(|case| (case.name, case.times))
                .collect(),
        }
    }
}

impl Case<'_> {
    /// Doubles the count until it fills the slice; this also warms up.
    fn find_count(&mut self, slice: Duration) {
        let slice = slice.as_secs_f64() * 1e9;
        while self.time() * (self.count as f64) < slice / 2.0 && self.count < 1 << 32 {
            self.count *= 2;
        }
    }

    /// Nanoseconds for an operation, in one slice; with several threads, the mean over them. Where
    /// the machine has no free core for one of them, they take turns and don't run together:
    /// such a slice is repeated, a few times.
    fn time(&mut self) -> f64 {
        for _ in 1..ATTEMPTS {
            let (time, together) = self.slice();
            if together {
                return time;
            }
        }
        self.slice().0
    }

    /// One slice, and whether its threads ran together.
    fn slice(&mut self) -> (f64, bool) {
        let (warm_up, count) = (self.warm_up, self.count);
        let first = self.done + warm_up;
        self.done = first + count;
        let work = &self.work;
        let warm = |thread| {
            work(Run {
                thread,
                first: first - warm_up,
                count: warm_up,
            });
        };
        let timed = |thread| {
            let begin = Instant::now();
            work(Run {
                thread,
                first,
                count,
            });
            (begin, Instant::now())
        };
        let times = if self.threads == 1 {
            warm(0);
            vec![timed(0)]
        } else {
            on_threads(self.threads, warm, timed)
        };
        let total: Duration = times.iter().map(|time| time.1 - time.0).sum();
        let time = total.as_secs_f64() * 1e9 / (count as f64 * self.threads as f64);
        (time, together(&times))
    }
}

/// Whether the threads ran together for most of the time in which any of them ran.
fn together(times: &[(Instant, Instant)]) -> bool {
    let begins = || times.iter().map(|time| time.0);
    let ends = || times.iter().map(|time| time.1);
    let any = ends().max().zip(begins().min());
    let all = ends().min().zip(begins().max());
    let length = |span: Option<(Instant, Instant)>| {
        span.map_or(0.0, |(end, begin)| {
            end.saturating_duration_since(begin).as_secs_f64()
        })
    };
    length(all) >= 0.7 * length(any)
}

/// The results of `work` on each of these threads, which begin it together after all have done
/// `warm`.
fn on_threads<T: Send>(
    threads: usize,
    warm: impl Fn(usize) + Sync,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let start = Start::new(threads);
    let (start, warm, work) = (&start, &warm, &work);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    warm(number);
                    start.together();
                    work(number)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Lets threads begin together. They spin: a thread that sleeps at a barrier wakes long after the
/// others have begun, and the measurement is of threads that disturb one another.
struct Start {
    missing: AtomicUsize,
}

impl Start {
    fn new(threads: usize) -> Self {
        Self {
            missing: AtomicUsize::new(threads),
        }
    }

    fn together(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        while self.missing.load(Ordering::Acquire) != 0 {
            std::hint::spin_loop();
        }
    }
}

/// The times of a comparison.
#[derive(Debug)]
pub struct Measured {
    cases: Vec<(String, Vec<f64>)>,
}

impl Measured {
    /// From cases with a name and a number for each round.
    pub(crate) fn of(cases: Vec<(String, Vec<f64>)>) -> Self {
        Self { cases }
    }

    /// The names of the cases, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().map(|case| case.0.as_str())
    }

    /// Nanoseconds for one operation in one thread. `None` if no case has that name.
    pub fn nanoseconds(&self, name: &str) -> Option<Spread> {
        Spread::of(self.times(name)?.to_vec())
    }

    /// How many times as long `name` takes as `reference` did in the same round. `None` if one of
    /// them is no case.
    pub fn ratio(&self, name: &str, reference: &str) -> Option<Spread> {
        self.of_each_round([name, reference], |[time, reference]| time / reference)
    }

    /// A number made from the times of several cases in the same round. `None` if one of them is no
    /// case.
    pub fn of_each_round<const N: usize>(
        &self,
        names: [&str; N],
        number: impl Fn([f64; N]) -> f64,
    ) -> Option<Spread> {
        let mut times = [&[][..]; N];
        for (times, name) in times.iter_mut().zip(names) {
            *times = self.times(name)?;
        }
        let rounds = times.iter().map(|times| times.len()).min()?;
        let numbers = (0..rounds).map(|round| number(times.map(|times| times[round])));
        Spread::of(numbers.collect())
    }

    fn times(&self, name: &str) -> Option<&[f64]> {
        self.cases
            .iter()
            .find(|case| case.0 == name)
            .map(|case| case.1.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Run, Settings, repeat};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_thread_does_every_operation_and_numbers_go_on() {
        let (sum, expected) = (AtomicU64::new(0), AtomicU64::new(0));
        let next = AtomicU64::new(0);
        let mut comparison = Comparison::new(Settings::quick());
        comparison.case("threads", 2, |run: Run| {
            repeat(run, |_| sum.fetch_add(1, Ordering::Relaxed));
            expected.fetch_add(run.count, Ordering::Relaxed);
        });
        comparison.case("numbers", 1, |run: Run| {
            assert_eq!(
                run.first,
                next.swap(run.first + run.count, Ordering::Relaxed)
            );
        });
        let measured = comparison.run();
        assert_eq!(sum.into_inner(), expected.into_inner());
        assert_eq!(measured.names().collect::<Vec<_>>(), ["threads", "numbers"]);
        assert!(measured.nanoseconds("threads").is_some());
        assert!(measured.ratio("threads", "none").is_none());
    }
}
