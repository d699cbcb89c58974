//! The statistics of an engine, and their table.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Engine;
use crate::cache::{AppStats, Memory, MemoryUse};
use crate::checkpoint::Journal;
use crate::error::printable;

/// Counts and times so far, for each app and in all.
///
/// Prints as a table, the apps that took the most time first:
///
/// ```
/// use sde::{Handle, Sde};
///
/// #[sde::app]
/// fn square(x: u64) -> u64 {
///     x * x
/// }
///
/// #[sde::app]
/// fn sum_of_squares(sde: &Handle, below: u64) -> Result<u64, sde::Error> {
///     let mut sum = 0;
///     for x in 0..below {
///         sum += *square.call(sde, x)?;
///     }
///     Ok(sum)
/// }
///
/// let sde = Sde::new();
/// sum_of_squares.call(&sde, 4)?;
/// sum_of_squares.call(&sde, 4)?;
/// println!("{}", sde.stats());
/// // app             computed  in memory    time   saved
/// // sum_of_squares         1          1   8.4µs  24.1µs
/// // square                 4          0   1.3µs       -
/// // all                    5          1   9.7µs  24.1µs
/// # assert!(sde.stats().to_string().starts_with("app             computed  in memory"));
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The counts of each app, by its name.
    pub apps: BTreeMap<String, AppStats>,
    /// The sum over all apps.
    pub total: AppStats,
    /// The memory of the entries that count for all apps together, if that has a
    /// [budget](crate::Builder::memory_budget).
    pub memory: Option<MemoryUse>,
    /// The memory of the entries of each app with a [budget of its own](crate::Builder::memory_budget_of).
    pub memory_of: BTreeMap<String, MemoryUse>,
    /// The bytes that the threads' tables of [recent hits](crate::last_value::Recent) take.
    pub recent_bytes: usize,
}

impl Engine {
    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats {
            recent_bytes: self.recent.bytes(),
            memory: self.caches.memory.as_deref().map(Memory::usage),
            ..Stats::default()
        };
        if let Some(memory) = &mut stats.memory {
            memory.received_bytes = self.sets.received.bytes();
        }
        for (app, memory) in &self.caches.budgets {
            let used = memory.as_deref().map(Memory::usage);
            stats.memory_of.extend(used.map(|used| (app.clone(), used)));
        }
        for cache in self.caches.all() {
            let app = cache.counters.sum();
            stats.total = stats.total.plus(app);
            stats.apps.insert(cache.name.to_string(), app);
        }
        stats
    }

    /// The record of this process that a store keeps.
    pub(super) fn journal(&self) -> Journal {
        let mut apps = self.stats().apps;
        apps.retain(|_, of| *of != AppStats::default());
        Journal {
            process: self.process,
            started: self.started,
            rank: self.rank,
            apps,
        }
    }

    /// Logs the last line of a job: how its runs went.
    pub(super) fn tell_the_end(&self) {
        if tracing::enabled!(target: "sde", tracing::Level::INFO) {
            let total = self.stats().total;
            let (computed, loaded, failed) = (total.computed, total.loads, total.failures);
            let remembered = total.hits();
            tracing::info!(target: "sde", computed, loaded, remembered, failed, "ends");
        }
    }
}

/// A column: its heading, whether it is left out when its total is 0, and its count.
type Column = (&'static str, bool, fn(&AppStats) -> u64);

const COUNTS: [Column; 10] = [
    ("computed", false, |of| of.computed),
    ("in memory", false, AppStats::hits),
    ("loaded", true, |of| of.loads),
    ("waited", true, |of| of.waits),
    ("failed", true, |of| of.failures),
    ("twice", true, |of| of.duplicates),
    ("evicted", true, |of| of.evicted),
    ("of others", true, |of| of.waited_for_others),
    ("beside others", true, |of| of.beside_others),
    ("other bits", true, |of| of.differing),
];

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = COUNTS.iter();
        let counts: Vec<_> = counts
            .filter(|(_, is_rare, count)| !is_rare || count(&self.total) > 0)
            .collect();
        let row = |name: &str, of: &AppStats| {
            let mut row = vec![printable(name)];
            row.extend(counts.iter().map(|(_, _, count)| count(of).to_string()));
            row.extend([time(of.time_spent), time(of.time_saved)]);
            row
        };
        let headings = counts.iter().map(|(heading, _, _)| *heading);
        let headings = ["app"].into_iter().chain(headings).chain(["time", "saved"]);
        let mut apps: Vec<_> = self.apps.iter().collect();
        apps.sort_by_key(|(_, of)| Reverse(of.time_spent));
        let mut rows = vec![headings.map(str::to_owned).collect()];
        rows.extend(apps.iter().map(|(name, of)| row(name, of)));
        rows.push(row("all", &self.total));
        write_rows(f, &rows)?;
        let of_all = self.memory.iter().map(|used| ("all", used));
        let of_apps = self.memory_of.iter().map(|(app, used)| (&**app, used));
        for (app, used) in of_all.chain(of_apps) {
            let of_app = match app {
                "all" => String::new(),
                app => format!(" of {}", printable(app)),
            };
            let (bytes, limit) = (bytes(used.bytes), bytes(used.limit));
            let entries = match used.entries {
                1 => "1 entry".to_owned(),
                several => format!("{several} entries"),
            };
            write!(f, "\nmemory{of_app}: {entries} with {bytes} of {limit}")?;
        }
        Ok(())
    }
}

/// The first column begins on the left, the others end on the right.
pub(super) fn write_rows(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let width = |column: usize| {
        let texts = rows.iter().map(|row| row[column].chars().count());
        texts.max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..rows[0].len()).map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            f.write_str("\n")?;
        }
        write!(f, "{:<1$}", row[0], widths[0])?;
        for (text, width) in row.iter().zip(&widths).skip(1) {
            write!(f, "  {text:>width$}")?;
        }
    }
    Ok(())
}

fn time(time: Duration) -> String {
    if time.is_zero() {
        "-".to_owned()
    } else {
        format!("{time:.1?}")
    }
}

/// A number of bytes for people.
pub(super) fn bytes(bytes: usize) -> String {
    match bytes {
        usize::MAX => "any number".to_owned(),
        bytes if bytes >= 10 << 30 => format!("{} GiB", bytes >> 30),
        bytes if bytes >= 10 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes.div_ceil(1 << 10)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_costliest_app_first_and_no_column_of_noughts() {
        let app = |computed, map_hits, failures, micros| AppStats {
            computed,
            map_hits,
            failures,
            time_spent: Duration::from_micros(micros),
            ..AppStats::default()
        };
        let mut stats = Stats::default();
        for (name, of) in [
            ("fast", app(1000, 20, 0, 15)),
            ("a\u{1b}[2J slow one", app(3, 0, 2, 2_500_000)),
        ] {
            stats.apps.insert(name.to_owned(), of);
            stats.total = stats.total.plus(of);
        }
        let expected = "\
app                  computed  in memory  failed    time  saved
a\\u{1b}[2J slow one         3          0       2    2.5s      -
fast                     1000         20       0  15.0µs      -
all                      1003         20       2    2.5s      -";
        assert_eq!(stats.to_string(), expected);
        assert_eq!(Stats::default().to_string().lines().count(), 2);
    }
}
