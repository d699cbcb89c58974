//! Plans, for programs and for people.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::app::Changed;
use crate::engine::handle::{Peek, PlannedRun};
use crate::engine::stats::write_rows;
use crate::error::printable;

/// What a program would do, by [`Sde::plan`](crate::Sde::plan), which has an example.
///
/// It shows as a table of the apps that fits 80 columns, with the reasons of what would be computed.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) runs: Vec<PlannedRun>,
    pub(super) is_complete: bool,
    pub(super) error: Option<String>,
    pub(super) threads: usize,
    pub(super) time_left: Option<Duration>,
}

impl Plan {
    /// The runs, in the order in which they are first asked for. A run that several calls share is there once.
    #[must_use]
    pub fn runs(&self) -> &[PlannedRun] {
        &self.runs
    }

    /// The runs that are not remembered: to be computed, or waited for.
    pub fn missing(&self) -> impl Iterator<Item = &PlannedRun> {
        self.runs.iter().filter(|run| run.is_missing())
    }

    /// Whether the program got all values that it asked for: then the plan has all that it does.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The text of the error with which the program ends, if nothing was missing before that.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The time that computing takes on the engine's threads, as far as costs are known; `None` if of no run.
    #[must_use]
    pub fn time(&self) -> Option<Duration> {
        self.ends().max()
    }

    /// The number of runs that would be computed in so much time, in order, on the engine's threads. Runs of unknown cost
    /// do not count.
    #[must_use]
    pub fn fits(&self, time: Duration) -> usize {
        self.ends().filter(|end| *end <= time).count()
    }

    /// When each run of known cost ends, if the threads take them in order.
    fn ends(&self) -> impl Iterator<Item = Duration> {
        let mut free_at = vec![Duration::ZERO; self.threads.max(1)];
        let costs = self.runs.iter().filter(|run| run.is_computed());
        costs.filter_map(|run| run.cost).filter_map(move |cost| {
            let thread = free_at.iter_mut().min()?;
            *thread = thread.saturating_add(cost);
            Some(*thread)
        })
    }

    fn count(&self, is: impl Fn(&PlannedRun) -> bool) -> usize {
        self.runs.iter().filter(|run| is(run)).count()
    }

    fn write_end(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let computed = self.count(PlannedRun::is_computed);
        if let Some(time) = self.time() {
            let (time, threads) = (about(time), threads(self.threads));
            write!(f, "\nComputing takes about {time} on {threads}")?;
            let unknown = self.count(|run| run.is_computed() && run.cost.is_none());
            match unknown {
                0 => f.write_str(".")?,
                _ => write!(
                    f,
                    ", and the time of {unknown} more, of which nothing is known."
                )?,
            }
        }
        if let Some(left) = self.time_left.filter(|_| computed > 0) {
            let (fits, left) = (self.fits(left), about(left));
            write!(
                f,
                "\nThe job has {left} left: {fits} of the {computed} to compute fit."
            )?;
        }
        match (&self.error, self.is_complete) {
            (Some(error), _) => write!(f, "\nThe program ends with an error: {}", printable(error)),
            (None, true) => f.write_str("\nAll is remembered: nothing is computed."),
            (None, false) => {
                f.write_str("\nWhat the program does with the missing values is not known.")
            }
        }
    }
}

/// A column of the table, with what it counts.
type Column = (&'static str, fn(&PlannedRun) -> bool);

const COLUMNS: [Column; 5] = [
    ("to compute", PlannedRun::is_computed),
    ("to wait for", |run| matches!(run.what, Peek::Wait { .. })),
    ("in store", |run| matches!(run.what, Peek::Load { .. })),
    ("in memory", |run| matches!(run.what, Peek::Hit { .. })),
    ("failed", |run| matches!(run.what, Peek::Failed { .. })),
];

/// No line of the table is longer.
const WIDTH: usize = 80;

/// The longest name of an app in it: the columns take the rest.
const NAME: usize = 21;

/// So many reasons are shown of an app.
const REASONS: usize = 4;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut apps: BTreeMap<&str, Vec<&PlannedRun>> = BTreeMap::new();
        for run in &self.runs {
            apps.entry(&run.app).or_default().push(run);
        }
        let columns = COLUMNS.iter().filter(|(_, is)| self.count(is) > 0);
        let columns: Vec<_> = columns.collect();
        let mut rows = vec![vec!["app".to_owned()]];
        rows[0].extend(columns.iter().map(|(heading, _)| (*heading).to_owned()));
        rows[0].push("time".to_owned());
        for (name, runs) in &apps {
            let count =
                |is: fn(&PlannedRun) -> bool| match runs.iter().filter(|run| is(run)).count() {
                    0 => "-".to_owned(),
                    count => count.to_string(),
                };
            let times = runs.iter().filter_map(|run| run.cost);
            let time = times.reduce(Duration::saturating_add);
            let mut row = vec![last(&printable(name), NAME)];
            row.extend(columns.iter().map(|(_, is)| count(*is)));
            row.push(time.map_or("-".to_owned(), about));
            rows.push(row);
        }
        if !apps.is_empty() {
            write_rows(f, &rows)?;
        }
        for (name, runs) in &apps {
            for reason in reasons(runs) {
                let line = format!("\n{}: {reason}", last(&printable(name), NAME));
                f.write_str(&first(&line, WIDTH + 1))?;
            }
        }
        self.write_end(f)
    }
}

/// Why runs of an app are computed, each reason with the number of runs, the most frequent first.
fn reasons(runs: &[&PlannedRun]) -> Vec<String> {
    let mut counts: BTreeMap<(String, bool), usize> = BTreeMap::new();
    for run in runs {
        if let Peek::Miss { why, nearest, .. } = &run.what {
            let reason = match nearest {
                Some(nearest) => {
                    let all = nearest.differences.iter();
                    let is_point = all.clone().all(|one| matches!(one.part, Changed::Input(_)));
                    let all = all.map(ToString::to_string);
                    (all.collect::<Vec<_>>().join("; "), is_point)
                }
                None => (printable(why), false),
            };
            *counts.entry(reason).or_default() += 1;
        }
    }
    let is_many = counts.len() > 1;
    // Inputs in which only one run differs make it a point of its own.
    let is_new = |(_, is_point): &(String, bool), count: usize| is_many && *is_point && count == 1;
    let single = counts
        .iter()
        .filter(|(reason, count)| is_new(reason, **count));
    let mut all = vec![(single.count(), "new points".to_owned())];
    let shared = counts
        .into_iter()
        .filter(|(reason, count)| !is_new(reason, *count));
    all.extend(shared.map(|((reason, _), count)| (count, reason)));
    all.retain(|(count, _)| *count > 0);
    all.sort_by(|a, b| b.cmp(a));
    let others: usize = all.iter().skip(REASONS).map(|(count, _)| count).sum();
    all.truncate(REASONS);
    let text = |(count, reason): (usize, String)| match count {
        1 if reason == "new points" => "1 new point".to_owned(),
        1 => reason,
        _ if reason == "new points" => format!("{count} {reason}"),
        _ => format!("{count} for {reason}"),
    };
    let mut texts: Vec<_> = all.into_iter().map(text).collect();
    if others > 0 {
        texts.push(format!("{others} for other reasons"));
    }
    texts
}

fn threads(count: usize) -> String {
    match count {
        1 => "1 thread".to_owned(),
        _ => format!("{count} threads"),
    }
}

/// The beginning of a text that is too long.
fn first(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// The end of a name that is too long: it tells more than the beginning.
fn last(text: &str, most: usize) -> String {
    match text.chars().count().checked_sub(most) {
        None | Some(0) => text.to_owned(),
        Some(over) => ['…']
            .into_iter()
            .chain(text.chars().skip(over + 1))
            .collect(),
    }
}

/// A time for people, with no more digits than an estimate has.
fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        _ if time.as_millis() < 1000 => format!("{time:.0?}"),
        0..=9 => format!("{time:.1?}"),
        10..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        7200..=172_799 => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86400, seconds % 86400 / 3600),
    }
}
