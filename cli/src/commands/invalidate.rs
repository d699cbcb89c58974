//! `sde invalidate`: says that results are wrong.

use std::collections::HashSet;
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
        let also = dependents.iter().filter(|_| self.dependents);
        self.mark(&path, meant.iter().chain(also))?;
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

    fn mark<'a>(
        &self,
        path: &Path,
        all: impl Iterator<Item = &'a Computed>,
    ) -> Result<(), Failure> {
        let mut options = StoreOptions::new().without_environment();
        if self.trust_others {
            options = options.trust_others();
        }
        let store = options.open(path);
        let store = store.map_err(|error| store::not_opened(path, error))?;
        let there = store.marks()?;
        let mut batch = Batch::new(Selection::Archive);
        batch.marks = all.map(|one| self.mark_of(one, &there)).collect();
        store.save(&batch)?;
        store.commit(Selection::Archive)?;
        store.finish();
        Ok(())
    }

    /// A mark that counts from now on, even if a clock was ahead when an earlier one was made.
    fn mark_of(&self, one: &Computed, there: &[Mark]) -> Mark {
        let of_run = |mark: &&Mark| (mark.key, mark.run) == (one.key, one.run);
        let before = there.iter().filter(of_run).map(|mark| mark.at).max();
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
        }
    }

    fn text(&self) -> String {
        format!("{} [{}]", self.app, self.key.short())
    }
}

/// The computations that called these keys, directly or through others. Each round reads all entries: few stores have long
/// chains, and memory is that of what is found.
fn dependents(store: &mut Snapshot, of: &[Computed]) -> Vec<Computed> {
    let mut keys: HashSet<Key> = of.iter().map(|one| one.key).collect();
    let mut known: HashSet<(Key, RunId)> = of.iter().map(|one| (one.key, one.run)).collect();
    let mut found = Vec::new();
    loop {
        let before = found.len();
        store.walk(Some(&Listed::is_entry), |_, item| {
            let Item::Entry(entry) = item else { return };
            let record = &entry.record;
            let rests = record.calls.iter().any(|(_, key)| keys.contains(key));
            if rests && record.failure.is_none() && known.insert((record.key, record.run)) {
                found.push(Computed::of(record));
            }
        });
        keys.extend(found[before..].iter().map(|one| one.key));
        if found.len() == before {
            return found;
        }
    }
}
