//! How long this process has run.

use std::time::Duration;

/// The time since the process was started; none where the system does not tell it.
pub(super) fn age() -> Duration {
    let read = || {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        of(&stat, &uptime)
    };
    read().unwrap_or_default()
}

/// The clock ticks that Linux counts in a second, on all its architectures that Rust knows.
const TICKS: f64 = 100.0;

fn of(stat: &str, uptime: &str) -> Option<Duration> {
    // The name of the program stands in brackets, and may have some. The start is the 20th number after it.
    let (_, numbers) = stat.rsplit_once(')')?;
    let start: f64 = numbers.split_whitespace().nth(19)?.parse().ok()?;
    let now: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(now - start / TICKS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_behind_the_programs_name() {
        let mut stat = "7 (a) b (c) S".to_owned();
        stat.extend(["0"; 18].map(|number| format!(" {number}")));
        stat.push_str(" 1250 99");
        assert_eq!(of(&stat, "20.00 1.0"), Some(Duration::from_secs_f64(7.5)));
        assert_eq!(of(&stat, "1.00 1.0"), None);
        assert_eq!(of("7 (a) S 0", "20.00 1.0"), None);
    }
}
