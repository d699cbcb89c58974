//! What the environment says of the job's end.

use std::ffi::OsString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The limit that people set.
const LIMIT: &str = "SDE_TIME_LIMIT";

/// The end of the job, which Slurm sets.
const SLURM_END: &str = "SLURM_JOB_END_TIME";

/// What is around the process: its environment, the time of day, how long it has run.
pub(super) struct Around<'a> {
    pub(super) variable: &'a dyn Fn(&str) -> Option<OsString>,
    pub(super) now: SystemTime,
    pub(super) age: Duration,
}

impl Around<'_> {
    /// A variable that is set to some text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let value = (self.variable)(name)?;
        let text = value.to_string_lossy().trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The time left, if the environment says it. `Duration::MAX` is a job without end.
    pub(super) fn time_left(&self) -> Result<Option<Duration>, BadLimit> {
        if let Some(limit) = self.text(LIMIT) {
            return self.read(&limit).map(Some).ok_or(BadLimit(limit));
        }
        let end = self.text(SLURM_END).and_then(|end| end.parse().ok());
        Ok(end.map(|end| self.until(end)))
    }

    fn read(&self, limit: &str) -> Option<Duration> {
        if limit == "none" {
            return Some(Duration::MAX);
        }
        if let Some(end) = limit.strip_prefix('@') {
            return Some(self.until(end.parse().ok()?));
        }
        let from_start = match limit.matches(':').count() {
            0 => with_units(limit)?,
            2 => clock(limit)?,
            _ => return None,
        };
        Some(from_start.saturating_sub(self.age))
    }

    /// The time until this second since 1970: none if it is over.
    pub(super) fn until(&self, second: u64) -> Duration {
        let now = self.now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Duration::from_secs(second).saturating_sub(now)
    }
}

/// A limit that can't be read.
#[derive(Debug)]
pub(crate) struct BadLimit(String);

impl BadLimit {
    /// What is refused.
    pub(crate) fn what(&self) -> String {
        format!("the time limit {LIMIT}={:?}", self.0)
    }

    /// What to give instead.
    pub(crate) const INSTEAD: &'static str = "it is the time from the program's start, such as `90`, `90s`, `15m`, \
        `1h30m` or `HH:MM:SS`, or an end, such as `@1767225600`, in seconds since 1970, or `none`";
}

/// A duration such as `90`, which are seconds, or `1d2h30m5s`.
fn with_units(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let (mut sum, mut rest, mut above) = (0_u64, text, u64::MAX);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, with_unit) = rest.split_at(end);
        let unit = match with_unit.chars().next()? {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return None,
        };
        // Each unit once, the largest first.
        if unit >= above {
            return None;
        }
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        (above, rest) = (unit, &with_unit[1..]);
    }
    Some(Duration::from_secs(sum))
}

/// A duration such as `1-02:03:04`, with days before it, or `02:03:04`, or `03:04`.
pub(super) fn clock(text: &str) -> Option<Duration> {
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let parts = time.split(':').count();
    if !(2..=3).contains(&parts) {
        return None;
    }
    let read = |text: &str| text.parse::<u64>().ok();
    let seconds = time.split(':').try_fold(0_u64, |sum, part| {
        sum.checked_mul(60)?.checked_add(read(part)?)
    });
    let days = read(days)?.checked_mul(86_400)?;
    Some(Duration::from_secs(days.checked_add(seconds?)?))
}
