//! The time of the job that the program runs in: when it ends, and how much is left.
//!
//! The end is found once, when an engine is built for a program: [`limit`] reads what the environment says, and
//! [`batch`] asks the batch system. Asking for the time left afterwards is arithmetic with the monotonic clock, so that a
//! jump of the time of day changes nothing.

mod batch;
mod estimate;
mod limit;
mod process;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

pub(crate) use estimate::Costs;
pub(crate) use limit::BadLimit;

/// The job of an engine.
#[derive(Debug)]
pub(crate) struct Job {
    /// When the engine was built.
    opened: Instant,
    /// How long the process had run by then.
    age: Duration,
    /// When the job ends, in nanoseconds after that; [`NO_END`] if it is not known to end.
    end: AtomicU64,
    /// When people told the program to end, likewise; they may take that back.
    told: AtomicU64,
}

const NO_END: u64 = u64::MAX;

impl Job {
    /// A job that ends when so much time is over; `None` for one that is not known to end.
    pub(crate) fn ending_in(left: Option<Duration>) -> Self {
        let job = Self {
            opened: Instant::now(),
            age: process::age(),
            end: AtomicU64::new(NO_END),
            told: AtomicU64::new(NO_END),
        };
        if let Some(left) = left {
            job.lower(left);
        }
        job
    }

    /// The job that this process belongs to, and what is to be warned of. Only one of several ranks asks the batch
    /// system, so that it is not asked a thousand times at once.
    ///
    /// # Errors
    /// If `SDE_TIME_LIMIT` can't be read.
    pub(crate) fn of_environment(asks: bool) -> Result<(Self, Option<String>), BadLimit> {
        let around = limit::Around {
            variable: &|name| std::env::var_os(name),
            now: SystemTime::now(),
            age: process::age(),
        };
        let (left, warning) = match around.time_left()? {
            None if asks => batch::time_left(&around),
            said => (said, None),
        };
        Ok((Self::ending_in(left), warning))
    }

    /// How much time is left: none once the end has come, or the program was told to stop. `None` if the job is not known to end.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        Some(self.after_opening()?.saturating_sub(self.opened.elapsed()))
    }

    /// The time from the start of the process to the end.
    pub(crate) fn whole(&self) -> Option<Duration> {
        Some(self.after_opening()? + self.age)
    }

    /// The time from the start of the process to the end of the job, whatever people told; all there is without an end.
    pub(crate) fn length(&self) -> Duration {
        match self.end.load(Ordering::Relaxed) {
            NO_END => Duration::MAX,
            end => Duration::from_nanos(end) + self.age,
        }
    }

    /// Has the job end then, if it would end later.
    pub(crate) fn end_by(&self, at: Instant) {
        self.lower(at.saturating_duration_since(self.opened));
    }

    /// Sets when people told the program to end, or with `None` that they took it back.
    pub(crate) fn tell_end(&self, at: Option<Instant>) {
        let told = at.map_or(NO_END, |at| self.nanos(at));
        self.told.store(told, Ordering::Relaxed);
    }

    /// Whether the end is that which people told the program.
    pub(crate) fn is_stopped(&self) -> bool {
        self.told.load(Ordering::Relaxed) < self.end.load(Ordering::Relaxed)
    }

    fn after_opening(&self) -> Option<Duration> {
        let [end, told] = [&self.end, &self.told].map(|end| end.load(Ordering::Relaxed));
        let end = end.min(told);
        (end != NO_END).then(|| Duration::from_nanos(end))
    }

    fn nanos(&self, at: Instant) -> u64 {
        let after_opening = at.saturating_duration_since(self.opened);
        u64::try_from(after_opening.as_nanos()).unwrap_or(NO_END)
    }

    fn lower(&self, after_opening: Duration) {
        let end = u64::try_from(after_opening.as_nanos()).unwrap_or(NO_END);
        self.end.fetch_min(end, Ordering::Relaxed);
    }
}
