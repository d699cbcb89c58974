//! What a lease says after its first three lines: since when the process is at work, and at which runs.
//!
//! A line for each run has its key, when it was announced in nanoseconds since 1970, and the name of its app. What is
//! not understood is passed over: the file may be read while it is written.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sde::Key;

use crate::format::id::nanos;

/// A run that goes on.
pub(super) struct Begun {
    pub(super) key: Key,
    pub(super) app: String,
    pub(super) since: SystemTime,
}

/// The longest text that is written and read.
pub(super) const LONGEST: u64 = 64 << 10;

const SINCE: &str = "since ";
const RUN: &str = "run ";

impl Begun {
    pub(super) fn now(key: Key, app: &str) -> Self {
        Self {
            key,
            app: app.chars().filter(|c| !c.is_control()).collect(),
            since: SystemTime::now(),
        }
    }
}

pub(super) fn of(since: SystemTime, runs: &[Arc<Begun>]) -> String {
    let mut text = format!("{SINCE}{}\n", nanos(since));
    for Begun { key, app, since } in runs.iter().map(|run| &**run) {
        let before = text.len();
        let _ = writeln!(text, "{RUN}{key} {} {app}", nanos(*since));
        // The first lines of the lease, and this, have room.
        if text.len() as u64 > LONGEST - 1024 {
            text.truncate(before);
            break;
        }
    }
    text
}

/// Reads the text of a lease from its fourth line on.
pub(super) fn read(text: &str) -> (Option<SystemTime>, Vec<Begun>) {
    let (mut since, mut runs) = (None, Vec::new());
    let lines = text.split_inclusive('\n').skip(3);
    for line in lines.filter_map(|line| line.strip_suffix('\n')) {
        if let Some(at) = line.strip_prefix(SINCE) {
            since = time(at);
        } else if let Some(run) = line.strip_prefix(RUN) {
            runs.extend(read_run(run));
        }
    }
    (since, runs)
}

fn read_run(line: &str) -> Option<Begun> {
    let mut parts = line.splitn(3, ' ');
    let key = parts.next()?.parse().ok()?;
    let since = time(parts.next()?)?;
    let app = parts.next()?.chars().filter(|c| !c.is_control()).collect();
    Some(Begun { key, app, since })
}

fn time(nanos: &str) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_nanos(nanos.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_not() {
        let key = Key::from_bytes([7; 32]);
        let begun = Arc::new(Begun::now(key, "an app\n\u{1b}[2J of mine"));
        let first = "host\n7\nmachine\n";
        let text = format!("{first}{}", of(begun.since, &[Arc::clone(&begun)]));
        let (since, runs) = read(&text);
        assert_eq!(since, Some(begun.since));
        assert_eq!(
            (runs.len(), runs[0].key, runs[0].since),
            (1, key, begun.since)
        );
        assert_eq!(runs[0].app, "an app[2J of mine");
        for end in 0..text.len() {
            assert!(read(&text[..end]).1.is_empty(), "{end}");
        }
        assert!(read("a\nb\nc\nrun x 1 a\nrun\nsince -\n").1.is_empty());
    }

    #[test]
    fn of_very_many_runs_some_are_told() {
        let run = || Arc::new(Begun::now(Key::from_bytes([7; 32]), "app"));
        let runs: Vec<_> = (0..2000).map(|_| run()).collect();
        let text = format!("a\nb\nc\n{}", of(SystemTime::now(), &runs));
        assert!(text.len() < LONGEST as usize);
        assert!((100..2000).contains(&read(&text).1.len()));
    }
}
