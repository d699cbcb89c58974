//! `sde invalidate`: says that results are wrong.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::Args;
use sde::Key;
use sde::archiver::{Archiver, Batch, Mark, Selection};
use sde::record::{Record, RunId};
use sde_archives::StoreOptions;
use sde_archives::inspect::{Item, Listed, Snapshot};
use serde_json::{Value as Json, json};

use crate::args::Place;
use crate::failure::Failure;
use crate::find::find;
use crate::output::Output;
use crate::{store, text};

/// Says that results are wrong: they are not used any more, and are computed again when they are next asked for
///
/// Means the computation of each key that counts now. What rests on it stays in use, and is named. Programs that run now go
/// on with what they have.
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
struct Computed {
    app: Arc<str>,
    key: Key,
    run: RunId,
    made_at: SystemTime,
}

/// The most dependents that are listed.
const LISTED: usize = 20;

impl Invalidate {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let (path, keys) = self.place.with_all(&self.keys)?;
        if keys.is_empty() {
            return super::needed(None).map(drop);
        }
        let (read, (meant, dependents)) = store::read(&path, |store| {
            let meant = keys.iter().map(|key| self.meant(store, key));
            let meant = meant.collect::<Result<Vec<_>, _>>()?;
            let dependents = dependents(store, &meant);
            Ok((meant, dependents))
        })?;
        let dependents = self.mark(&path, &meant, dependents)?;
        match out.json {
            true => out.object(&self.object(&meant, &dependents))?,
            false => self.print(&meant, &dependents, out)?,
        }
        store::conclude(&read, out)
    }

    /// The computation of a key that counts.
    fn meant(&self, store: &mut Snapshot, key: &str) -> Result<Computed, Failure> {
        let found = find(store, key)?.swap_remove(0);
        let record = &found.entry.record;
        let (app, short) = (&record.app, record.key.short());
        if let Some(failure) = &record.failure {
            let of = failure.of.short();
            return Err(Failure::told(format!(
                "{app} [{of}] has no result, it failed; `sde gc --failed --key {of}` takes the failure out"
            )));
        }
        if self.undo && found.mark.is_none() {
            return Err(Failure::told(format!(
                "the computation of {app} [{short}] that counts is not marked as invalid; `sde show --all` has earlier ones"
            )));
        }
        Ok(Computed::of(record))
    }

    /// Marks the computations, and the dependents if they are meant too. Gives the dependents: those without a mark, and to
    /// take back, those whose mark has the reason of one that is taken back.
    fn mark(
        &self,
        path: &Path,
        meant: &[Computed],
        mut dependents: Vec<Computed>,
    ) -> Result<Vec<Computed>, Failure> {
        let mut options = StoreOptions::new().without_environment();
        if self.trust_others {
            options = options.trust_others();
        }
        let store = options.open(path);
        let store = store.map_err(|error| store::not_opened(path, error))?;
        let there = store.marks()?;
        let in_force = |one: &Computed| {
            let last = last_mark(one, &there).filter(|mark| !mark.undone);
            last.map(|mark| &*mark.reason)
        };
        let reasons: HashSet<&str> = meant.iter().filter_map(in_force).collect();
        dependents.retain(|one| match (self.undo, in_force(one)) {
            (true, reason) => reason.is_some_and(|reason| reasons.contains(reason)),
            // It is out of use already, and for a reason of its own.
            (false, reason) => reason.is_none(),
        });
        let also = dependents.iter().filter(|_| self.dependents);
        let all = meant.iter().chain(also);
        let mut batch = Batch::new(Selection::Archive);
        batch.marks = all.map(|one| self.mark_of(one, &there)).collect();
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
    fn of(record: &Record) -> Self {
        Self {
            app: Arc::clone(&record.app),
            key: record.key,
            run: record.run,
            made_at: record.made_at,
        }
    }

    fn text(&self) -> String {
        format!("{} [{}]", self.app, self.key.short())
    }
}

fn last_mark<'a>(of: &Computed, there: &'a [Mark]) -> Option<&'a Mark> {
    let of_run = |mark: &&Mark| (mark.key, mark.run) == (of.key, of.run);
    there.iter().filter(of_run).max_by_key(|mark| mark.at)
}

/// The computations that called these keys since they were computed, directly or through others. Each round reads all entries: few stores have long
/// chains, and memory is that of what is found.
fn dependents(store: &mut Snapshot, of: &[Computed]) -> Vec<Computed> {
    let mut keys: HashMap<Key, SystemTime> = of.iter().map(|one| (one.key, one.made_at)).collect();
    let mut known: HashSet<(Key, RunId)> = of.iter().map(|one| (one.key, one.run)).collect();
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
                found.push(Computed::of(record));
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
