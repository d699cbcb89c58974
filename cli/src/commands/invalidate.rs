//! `sde invalidate`: says that results are wrong.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::Args;
use sde::Key;
use sde::archiver::{Archiver, Batch, Mark, Selection};
use sde::record::{Record, RunId};
use sde_archives::inspect::{Inspection, Item, Listed, Snapshot};
use sde_archives::{DirStore, StoreOptions};
use serde_json::{Value as Json, json};

use crate::args::{self, Place};
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, text};
use sde_table::find::{Found, find_any, none};

/// Says that results are wrong: they are not used any more, and are computed again when they are next asked for
///
/// Means the computation of each key that counts now. What rests on it stays in use, and is named. Programs that run now go
/// on with what they have. An entry that only a store of SDE_ALSO has counts as wrong for programs that save to STORE.
#[derive(Args)]
pub struct Invalidate {
    #[command(flatten)]
    place: Place,
    /// The entries, by their keys or the beginnings of them
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Why: programs and `sde show` tell it
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "undo",
        conflicts_with = "undo"
    )]
    reason: Option<String>,
    /// Also what was computed from them, directly or through others
    #[arg(long)]
    dependents: bool,
    /// Takes it back
    #[arg(long)]
    undo: bool,
    /// Also in a store that belongs to someone else, or that others can write to
    #[arg(long)]
    trust_others: bool,
}

/// A computation.
#[derive(Clone)]
struct Computed {
    app: Arc<str>,
    key: Key,
    run: RunId,
    made_at: SystemTime,
    /// The other store that has it.
    of: Option<PathBuf>,
}

/// The most dependents that are listed.
const LISTED: usize = 20;

impl Invalidate {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let (path, keys) = self.place.with_all(&self.keys)?;
        if keys.is_empty() {
            return super::needed(None).map(drop);
        }
        let of_keys = |store: &mut Snapshot| {
            let found = keys.iter().map(|key| find_any(store, key));
            Ok(found.collect::<Result<Vec<_>, _>>()?)
        };
        let (read, found) = store::read(&path, of_keys)?;
        let own = self.open(&path)?;
        let marks = own.marks()?;
        // A store that can't be read was warned of when this one was opened.
        let others = args::other_stores().into_iter();
        let others: Vec<PathBuf> = others.filter(|dir| Inspection::open(dir).is_ok()).collect();
        let mut in_each = vec![(None, found)];
        for dir in &others {
            in_each.push((Some(dir), store::read(dir, of_keys)?.1));
        }
        let meant = keys.iter().enumerate().map(|(at, key)| {
            let in_each = in_each.iter().map(|(dir, found)| (*dir, &*found[at]));
            self.meant(key, in_each, &marks)
        });
        let meant = meant.collect::<Result<Vec<_>, _>>()?.concat();
        // What is in this store may rest on what is in others.
        let mut resting = Vec::new();
        for dir in others.iter().map(Some).chain([None]) {
            let from = || meant.iter().chain(&resting);
            let path = dir.unwrap_or(&path);
            let (_, more) = store::read(path, |store| Ok(dependents(store, from(), dir)))?;
            resting.extend(more);
        }
        let dependents = self.mark(&own, &marks, &meant, resting)?;
        match out.json {
            true => out.object(&self.object(&meant, &dependents))?,
            false => self.print(&meant, &dependents, out)?,
        }
        store::conclude(&read, out)
    }

    /// The computations of a key that count, of each store its own: all that are in use, or to take marks back, all that are
    /// not. One of another store would count in place of one that is marked.
    fn meant<'a>(
        &self,
        key: &str,
        in_each: impl Iterator<Item = (Option<&'a PathBuf>, &'a [Found])>,
        marks: &[Mark],
    ) -> Result<Vec<Computed>, Failure> {
        let first = in_each.filter_map(|(dir, found)| Some((dir, &found.first()?.entry.record)));
        let (failed, computed): (Vec<_>, Vec<_>) =
            first.partition(|(_, record)| record.failure.is_some());
        let computed = computed.into_iter();
        let mut all: Vec<_> = computed
            .map(|(dir, record)| Computed::of(record, dir))
            .collect();
        // Copies of one computation have one mark.
        let mut seen = HashSet::new();
        all.retain(|one| seen.insert((one.key, one.run)));
        let is_it = |one: &Computed| in_force(one, marks).is_some() == self.undo;
        let has_any = all.iter().any(is_it);
        match (has_any, all.first(), failed.first()) {
            (true, ..) => {
                all.retain(is_it);
                Ok(all)
            }
            (false, Some(one), _) if self.undo => Err(Failure::told(format!(
                "the computation of {} that counts is not marked as invalid; `sde show --all` has earlier ones",
                one.text()
            ))),
            (false, Some(_), _) => {
                all.truncate(1);
                Ok(all)
            }
            (false, None, Some((_, record))) => {
                let of = record
                    .failure
                    .as_ref()
                    .map_or(record.key, |failure| failure.of);
                let (app, of) = (&record.app, of.short());
                Err(Failure::told(format!(
                    "{app} [{of}] has no result, it failed; `sde gc --failed --key {of}` takes the failure out"
                )))
            }
            (false, None, None) => Err(none(key).into()),
        }
    }

    /// Opens the store to write marks to, with those that SDE_ALSO names to read.
    fn open(&self, path: &Path) -> Result<DirStore, Failure> {
        let mut options = StoreOptions::new().without_environment().also_from_env();
        if self.trust_others {
            options = options.trust_others();
        }
        options
            .open(path)
            .map_err(|error| store::not_opened(path, error))
    }

    /// Marks the computations, and the dependents if they are meant too. Gives the dependents: those without a mark, and to
    /// take back, those whose mark has the reason of one that is taken back.
    fn mark(
        &self,
        store: &DirStore,
        there: &[Mark],
        meant: &[Computed],
        mut dependents: Vec<Computed>,
    ) -> Result<Vec<Computed>, Failure> {
        let reason = |one: &Computed| in_force(one, there);
        let reasons: HashSet<&str> = meant.iter().filter_map(reason).collect();
        dependents.retain(|one| match (self.undo, reason(one)) {
            (true, reason) => reason.is_some_and(|reason| reasons.contains(reason)),
            // It is out of use already, and for a reason of its own.
            (false, reason) => reason.is_none(),
        });
        let also = dependents.iter().filter(|_| self.dependents);
        let all = meant.iter().chain(also);
        let mut batch = Batch::new(Selection::Archive);
        batch.marks = all.map(|one| self.mark_of(one, there)).collect();
        store.save(&batch)?;
        store.commit(Selection::Archive)?;
        store.finish();
        Ok(dependents)
    }

    /// A mark that counts from now on, even if a clock was ahead when an earlier one was made.
    fn mark_of(&self, one: &Computed, there: &[Mark]) -> Mark {
        let before = last_mark(one, there).map(|mark| mark.at);
        let after = before.and_then(|at| at.checked_add(Duration::from_nanos(1)));
        let now = SystemTime::now();
        let at = after.map_or(now, |after| after.max(now));
        let reason = self.reason.as_deref().unwrap_or_default();
        let mut mark = Mark::new(one.key, one.run, reason, at);
        mark.undone = self.undo;
        mark
    }

    fn object(&self, meant: &[Computed], dependents: &[Computed]) -> Json {
        let objects = |all: &[Computed]| -> Json {
            all.iter()
                .map(|one| json!({ "app": one.app, "key": one.key, "run": one.run.to_string() }))
                .collect()
        };
        json!({
            "reason": self.reason,
            "undone": self.undo,
            "entries": objects(meant),
            "dependents": objects(dependents),
            "with_dependents": self.dependents,
        })
    }

    fn print(
        &self,
        meant: &[Computed],
        dependents: &[Computed],
        out: &mut Output,
    ) -> Result<(), Failure> {
        let done = match self.undo {
            true => "used again",
            false => "not used any more",
        };
        for one in meant {
            out.line(format!("{} is {done}", one.text()))?;
        }
        if dependents.is_empty() {
            return Ok(());
        }
        let rest = text::count(dependents.len(), "entry rests", "entries rest");
        out.wrapped(
            match self.dependents {
                true => format!("{rest} on that, and {done}:"),
                false => format!("{rest} on that, left as before; --dependents means these too:"),
            },
            2,
        )?;
        for one in dependents.iter().take(LISTED) {
            out.line(format!("  {}", one.text()))?;
        }
        match dependents.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => out.line(format!("  and {more} more")),
        }
    }
}

impl Computed {
    fn of(record: &Record, of: Option<&PathBuf>) -> Self {
        Self {
            app: Arc::clone(&record.app),
            key: record.key,
            run: record.run,
            made_at: record.made_at,
            of: of.cloned(),
        }
    }

    fn text(&self) -> String {
        let of = self.of.as_ref();
        let of = of.map_or_else(String::new, |of| format!(" of {}", of.display()));
        format!("{} [{}]{of}", self.app, self.key.short())
    }
}

/// The reason of the mark of a computation, if it has one that was not taken back.
fn in_force<'a>(one: &Computed, marks: &'a [Mark]) -> Option<&'a str> {
    let last = last_mark(one, marks).filter(|mark| !mark.undone);
    last.map(|mark| &*mark.reason)
}

fn last_mark<'a>(of: &Computed, there: &'a [Mark]) -> Option<&'a Mark> {
    let of_run = |mark: &&Mark| (mark.key, mark.run) == (of.key, of.run);
    there.iter().filter(of_run).max_by_key(|mark| mark.at)
}

/// The computations that called these keys since they were computed, directly or through others. Each round reads all entries: few stores have long
/// chains, and memory is that of what is found.
fn dependents<'a>(
    store: &mut Snapshot,
    of: impl Iterator<Item = &'a Computed> + Clone,
    dir: Option<&PathBuf>,
) -> Vec<Computed> {
    let mut keys: HashMap<Key, SystemTime> = of.clone().map(|one| (one.key, one.made_at)).collect();
    let mut known: HashSet<(Key, RunId)> = of.map(|one| (one.key, one.run)).collect();
    let mut found = Vec::new();
    loop {
        let before = found.len();
        store.walk(Some(&Listed::is_entry), |_, item| {
            let Item::Entry(entry) = item else { return };
            let record = &entry.record;
            let ended = record.made_at + record.took;
            let is_since = |key| keys.get(key).is_some_and(|made_at| *made_at <= ended);
            let rests = record.calls.iter().any(|(_, key)| is_since(key));
            if rests && record.failure.is_none() && known.insert((record.key, record.run)) {
                found.push(Computed::of(record, dir));
            }
        });
        for one in &found[before..] {
            let since = keys.entry(one.key).or_insert(one.made_at);
            *since = one.made_at.min(*since);
        }
        if found.len() == before {
            return found;
        }
    }
}
