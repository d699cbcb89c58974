//! What each process did for each app: as it told, or as the entries show that it left, whichever is more.
//!
//! A process tells at its commits and its end, so one that was killed has told too little, or nothing. Its entries are
//! there all the same. The totals and the rows of the table are sums of this alone, so that they agree.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sde::record::RunId;
use sde::{AppStats, Key};
use sde_archives::inspect::{Computation, Resolved, SavedJournal};

use crate::time;

/// The part of an entry that is kept in memory.
pub struct RunFacts {
    pub app: Arc<str>,
    pub bytes: u64,
    /// The time from begin to end, the runs that it made included.
    pub took: Duration,
    /// The runs that it called itself.
    pub calls: Box<[Key]>,
    pub host: Arc<str>,
    /// The run that failed, of a failure.
    pub failed: Option<Key>,
}

/// A process.
pub struct Done {
    pub process: u64,
    /// What it told last; `None` if it told nothing.
    pub journal: Option<Box<SavedJournal>>,
    pub started_at: Timestamp,
    pub host: Arc<str>,
    pub apps: BTreeMap<Arc<str>, AppStats>,
}

/// The processes, the one that began last first.
pub fn all(found: &mut Resolved<RunFacts>) -> Vec<Done> {
    let told = std::mem::take(&mut found.journals).into_iter();
    let told = told.map(|saved| (saved.journal.process, Done::told(saved)));
    let mut all: HashMap<u64, Done> = told.collect();
    let mut left: HashMap<(u64, Arc<str>), AppStats> = HashMap::new();
    for one in &found.all {
        let process = one.precedence.run.process;
        let done = all.entry(process).or_insert_with(|| Done::silent(one));
        if done.journal.is_none() {
            done.started_at = done.started_at.min(time::of(one.precedence.made_at));
        }
        let of = left.entry((process, Arc::clone(&one.of.app))).or_default();
        *match one.of.failed {
            None => &mut of.computed,
            Some(_) => &mut of.failures,
        } += 1;
        of.time_spent = of.time_spent.saturating_add(own_time(one, &found.all));
    }
    for ((process, app), left) in left {
        let told = all.get_mut(&process).map(|done| done.apps.entry(app));
        if let Some(told) = told.map(|told| told.or_default())
            && (left.computed > told.computed || left.failures > told.failures)
        {
            told.computed = told.computed.max(left.computed);
            told.failures = told.failures.max(left.failures);
            told.time_spent = told.time_spent.max(left.time_spent);
        }
    }
    let mut all: Vec<Done> = all.into_values().collect();
    all.sort_by_key(|done| std::cmp::Reverse((done.started_at, done.process)));
    all
}

impl Done {
    fn told(saved: Box<SavedJournal>) -> Self {
        let apps = saved.journal.apps.iter();
        Self {
            process: saved.journal.process,
            started_at: time::of(saved.journal.started),
            host: saved.about.host.as_str().into(),
            apps: apps.map(|(app, of)| (app.as_str().into(), *of)).collect(),
            journal: Some(saved),
        }
    }

    fn silent(one: &Computation<RunFacts>) -> Self {
        Self {
            process: one.precedence.run.process,
            journal: None,
            started_at: time::of(one.precedence.made_at),
            host: Arc::clone(&one.of.host),
            apps: BTreeMap::new(),
        }
    }

    /// The sum over its apps.
    pub fn total(&self) -> AppStats {
        let apps = self.apps.values();
        apps.fold(AppStats::default(), |sum, one| sum.plus(*one))
    }
}

/// The time of a computation without the runs that it made itself, as far as their entries are there.
fn own_time(of: &Computation<RunFacts>, all: &[Computation<RunFacts>]) -> Duration {
    let run = of.precedence.run;
    // Numbers are given at the begin. One of an earlier number was not made by this run, but found.
    let is_its_own = |other: RunId| other.process == run.process && other.number > run.number;
    let nested = of.of.calls.iter().map(|key| {
        let first = all.partition_point(|one| one.key < *key);
        let of_key = all[first..].iter().take_while(|one| one.key == *key);
        let made = of_key.filter(|one| is_its_own(one.precedence.run));
        made.map(|one| one.of.took).sum::<Duration>()
    });
    of.of.took.saturating_sub(nested.sum())
}
