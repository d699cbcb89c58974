//! `sde exec --each FILE.csv --dry-run`: what rows would do, why, and how long that takes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use sde::{Key, Peek, Sde};
use sde_archives::DirStore;
use sde_archives::inspect::{Computations, Entry, Listed, Snapshot, Standing};
use sde_command::{Command, Rules, Verdict};

use super::super::{Exec, tell, told};
use super::rows::Rows;
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, text, time};
use sde_table::runs::{self, Contents, Run};

/// The most rows that are told one by one, of each kind.
const TOLD: usize = 10;

/// What a row would do, and why.
#[derive(Clone)]
enum Would {
    BeGiven,
    Run(String),
    Fail(String),
}

/// What a store has of the apps of some runs.
#[derive(Default)]
struct Known {
    /// What is done with each run that is there.
    runs: HashMap<Key, Would>,
    /// The failures of others that would be given.
    failed: HashMap<Key, Would>,
    took: Vec<Duration>,
}

impl Known {
    fn of(&self, key: &Key) -> Option<&Would> {
        self.runs.get(key).or_else(|| self.failed.get(key))
    }
}

type KeyedCommand = Result<(Command, Key, String), String>;

impl Exec {
    pub fn tell_each(&self, rows: &Rows, all: &[Self], out: &mut Output) -> Result<u8, Failure> {
        let store = self.looked_in()?;
        let mut sde = Sde::builder();
        if let Some(store) = &store {
            sde = sde.store(store.clone());
        }
        let (sde, keys) = (sde.build().map_err(told)?, Sde::new());
        let commands: Vec<_> = all.iter().map(|one| one.keyed(&keys)).collect();
        let mut known = Known::default();
        for store in store.iter().flat_map(DirStore::looks_in) {
            self.add_known(&mut known, store, &commands)?;
        }
        let mut would = Vec::new();
        let mut run = HashSet::new();
        for command in &commands {
            would.push(match command {
                Err(why) => Would::Fail(why.clone()),
                Ok((command, key, _)) => match known.of(key) {
                    Some(would) => {
                        run.extend(matches!(would, Would::Run(_)).then_some(*key));
                        would.clone()
                    }
                    None => Would::Run(match run.insert(*key) {
                        true if run.len() <= TOLD => nearest(command, &sde)?,
                        true => String::new(),
                        false => "another row has this run".to_owned(),
                    }),
                },
            });
        }
        print(rows, &would, out)?;
        let runs = run.len();
        let at_once = self.jobs.map_or(1, usize::from);
        if runs > 0 {
            out.wrapped(how_long(runs, at_once, &known.took), 2)?;
        }
        out.flush()?;
        Ok(0)
    }

    /// The command, with its key and its app; else why it can't run.
    fn keyed(&self, sde: &Sde) -> KeyedCommand {
        let (command, _) = self.command().map_err(Failure::text)?;
        let peeked = command.peek(sde).map_err(|error| tell::chain(&error))?;
        let app = command.app().map_err(|error| tell::chain(&error))?;
        Ok((command, peeked.key(), app))
    }

    /// Adds what a store has of these runs, and how long runs of their apps took.
    fn add_known(
        &self,
        known: &mut Known,
        store: &Path,
        commands: &[KeyedCommand],
    ) -> Result<(), Failure> {
        let commands = || commands.iter().flatten();
        let apps: BTreeSet<&str> = commands().map(|(.., app)| &**app).collect();
        let rules: HashMap<Key, Rules> = commands()
            .filter_map(|(command, key, _)| Some((*key, command.rules().ok()?)))
            .collect();
        store::read(store, |store| {
            for entry in entries(store, &apps) {
                known.took.push(entry.record.took);
                let failure = entry.record.failure.as_ref();
                let key = failure.map_or(entry.record.key, |failure| failure.of);
                let Some(rules) = rules.get(&key) else {
                    continue;
                };
                if let Some(would) = self.would(store, &entry, rules)? {
                    let found = match failure {
                        None => &mut known.runs,
                        Some(_) => &mut known.failed,
                    };
                    found.entry(key).or_insert(would);
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn would(
        &self,
        store: &mut Snapshot,
        entry: &Entry,
        rules: &Rules,
    ) -> Result<Option<Would>, Failure> {
        if let Some(failure) = &entry.record.failure {
            let is_given = self.keep_failures && failure.lasts == sde::Failure::Ordinary;
            let why = format!("it failed: {}", failure.message);
            return Ok(is_given.then_some(Would::Fail(why)));
        }
        let Some(Run::Whole(run)) = Run::of(entry) else {
            return Ok(None);
        };
        if self.again {
            return Ok(Some(Would::Run("--again".to_owned())));
        }
        let contents = Contents::of(store, run.digests());
        let judged = runs::judge(&run, rules, &contents)?;
        let then = runs::judge(&run, &runs::rules_then(entry)?, &contents)?;
        let why = judged.failures.first();
        let why = why.map(ToString::to_string).unwrap_or_default();
        Ok(Some(match judged.verdict(&then, self.keep_failures) {
            Verdict::Given => Would::BeGiven,
            Verdict::Again => Would::Run(format!("it failed: {why}")),
            Verdict::Kept => Would::Fail(format!("it failed: {why}")),
            _ => Would::Fail(format!("it did not fail so before, --again runs it: {why}")),
        }))
    }
}

/// The runs of some apps that count.
fn entries(store: &mut Snapshot, apps: &BTreeSet<&str>) -> Vec<Entry> {
    let mut found = Computations::default();
    let wanted = |listed: &Listed| listed.is_entry() || listed.is_mark();
    store.walk(Some(&wanted), |_, item| {
        found.add(item, |entry| {
            apps.contains(&*entry.record.app).then(|| vec![entry])
        });
    });
    let found = found.resolve(Vec::append);
    store.gone |= found.gone;
    let current = found
        .all
        .into_iter()
        .filter(|one| one.standing == Standing::Current);
    current.filter_map(|mut one| one.of.pop()).collect()
}

/// Why a run that is not in the store is not: the run that is most like it.
fn nearest(command: &Command, sde: &Sde) -> Result<String, Failure> {
    match command.peek(sde) {
        Ok(Peek::Miss { why, nearest, .. }) => Ok(match nearest {
            Some(nearest) => format!("{why}; {nearest}"),
            None => why,
        }),
        Ok(other) => Ok(other.to_string()),
        Err(error) => Err(Failure::told(tell::chain(&error))),
    }
}

fn print(rows: &Rows, would: &[Would], out: &mut Output) -> Result<(), Failure> {
    let count = |is: fn(&Would) -> bool| would.iter().filter(|one| is(one)).count();
    out.wrapped(
        format!(
            "{}: {}, {} would be given, {} would run, {} would fail",
            rows.name,
            text::count(would.len(), "row", "rows"),
            count(|one| matches!(one, Would::BeGiven)),
            count(|one| matches!(one, Would::Run(_))),
            count(|one| matches!(one, Would::Fail(_))),
        ),
        2,
    )?;
    for is_run in [true, false] {
        let told = would
            .iter()
            .zip(&rows.rows)
            .filter_map(|(would, row)| match would {
                Would::Run(why) if is_run => Some((row.line, "would run", why)),
                Would::Fail(why) if !is_run => Some((row.line, "would fail", why)),
                _ => None,
            });
        for (line, what, why) in told.take(TOLD) {
            let why = why.lines().next().unwrap_or_default();
            out.wrapped(format!("line {line} {what}: {why}"), 2)?;
        }
    }
    Ok(())
}

fn how_long(runs: usize, at_once: usize, took: &[Duration]) -> String {
    let runs_of = text::count(runs, "run", "runs");
    let Some(typical) = time::median(took) else {
        return format!("{runs_of}, {at_once} at a time; how long they take is not known");
    };
    let rounds = u32::try_from(runs.div_ceil(at_once)).unwrap_or(u32::MAX);
    format!(
        "about {}: {runs_of}, {at_once} at a time, of {} (the median of {})",
        text::duration(typical.saturating_mul(rounds).as_secs_f64()),
        text::duration(typical.as_secs_f64()),
        text::count(took.len(), "run", "runs"),
    )
}
