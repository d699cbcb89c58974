//! Saying that a remembered result is wrong.
//!
//! A node with bad memory, a library with a bug: the results made there are not to
//! be used, though nothing in their keys says so. A mark names one computation
//! and a reason. It is saved with the next checkpoint or archive, can be taken
//! back, and does not touch what the run will give when it is made again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use super::Engine;
use crate::cache::AppCache;
use crate::checkpoint::Mark;
use crate::entry::{Entry, RecordHead};
use crate::error::{Error, ErrorKind, printable};
use crate::event::RunId;
use crate::key::Key;
use crate::machine;
use crate::sync::{read, unpoisoned, write};

/// The marks in force.
#[derive(Default)]
pub(super) struct Invalidations {
    /// Whether there is any, for the many programs that have none.
    any: AtomicBool,
    reasons: RwLock<Reasons>,
}

type Reasons = BTreeMap<(Key, RunId), String>;

impl Invalidations {
    fn change<R>(&self, change: impl FnOnce(&mut Reasons) -> R) -> R {
        let mut reasons = write(&self.reasons);
        let done = change(&mut reasons);
        self.any.store(!reasons.is_empty(), Ordering::Release);
        done
    }

    pub(super) fn apply(&self, mark: &Mark) {
        self.change(|reasons| {
            if mark.undone {
                reasons.remove(&(mark.key, mark.run))
            } else {
                reasons.insert((mark.key, mark.run), mark.reason.clone())
            }
        });
    }

    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    fn reason(&self, record: &RecordHead) -> Option<String> {
        if !self.any() {
            return None;
        }
        let reasons = read(&self.reasons);
        reasons.get(&(record.key, record.run)).cloned()
    }

    pub(super) fn any_of(&self, key: Key) -> bool {
        if !self.any() {
            return false;
        }
        let run = |process, number| RunId { process, number };
        let all = (key, run(0, 0))..=(key, run(u64::MAX, u64::MAX));
        let reasons = read(&self.reasons);
        reasons.range(all).next().is_some()
    }

    /// All of them, to be saved once more.
    pub(super) fn all(&self) -> Vec<Mark> {
        let reasons = read(&self.reasons);
        let marks = reasons.iter().map(|((key, run), reason)| Mark {
            key: *key,
            run: *run,
            reason: reason.clone(),
            at: machine::now(),
            undone: false,
        });
        marks.collect()
    }

    /// Adds the marks of another store; gives the marks that only this engine has.
    pub(super) fn add(&self, more: Self) -> Vec<(Key, RunId)> {
        let more = unpoisoned(more.reasons.into_inner());
        self.change(|reasons| {
            let only_here = reasons.keys().filter(|marked| !more.contains_key(*marked));
            let only_here = only_here.copied().collect();
            reasons.extend(more);
            only_here
        })
    }

    pub(super) fn remove(&self, marked: &[(Key, RunId)]) {
        self.change(|reasons| marked.iter().for_each(|of| drop(reasons.remove(of))));
    }
}

/// The result of [`Sde::invalidate`](crate::Sde::invalidate).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Invalidated {
    /// The computation that is not used any more.
    pub run: RunId,
    /// The entries in memory that were computed from it, directly or through
    /// others, as app and key. They are still used: invalidate those that matter.
    pub dependents: Vec<(Arc<str>, Key)>,
}

impl Engine {
    /// Why an entry was marked, if it was.
    pub(super) fn invalid(&self, record: &RecordHead) -> Option<String> {
        let reason = self.invalidations.reason(record)?;
        Some(format!("it was invalidated: {}", printable(&reason)))
    }

    pub(super) fn mark(&self, key: &Key, reason: &str, undone: bool) -> Result<RunId, Error> {
        let run = self.run_of(key)?;
        self.mark_run(*key, run, reason, undone);
        Ok(run)
    }

    pub(super) fn mark_run(&self, key: Key, run: RunId, reason: &str, undone: bool) {
        let mark = Mark {
            key,
            run,
            reason: reason.to_owned(),
            at: machine::now(),
            undone,
        };
        self.invalidations.apply(&mark);
        self.raise_epoch();
        if self.archiver().is_some() {
            self.pending.add_mark(mark);
        }
    }

    fn run_of(&self, key: &Key) -> Result<RunId, Error> {
        // A decided entry comes first: callers are about to get it.
        let of = |cache: &Arc<AppCache>| cache.decided(key).or_else(|| cache.entry(key));
        let in_memory = self.caches.all().find_map(of);
        if let Some(entry) = in_memory.or_else(|| self.sets.entry(key).next()) {
            return Ok(entry.record.run);
        }
        let Some(archiver) = self.archiver() else {
            return Err(ErrorKind::NoEntry { key: *key }.into());
        };
        match archiver.find(key) {
            Ok(Some(stored)) => Ok(stored.record.run),
            Ok(None) => Err(ErrorKind::NoEntry { key: *key }.into()),
            Err(source) => {
                let store = archiver.describe();
                let doing = format!("looking for the entry [{}] in {store}", key.short());
                Err(ErrorKind::Archive { doing, source }.into())
            }
        }
    }

    pub(super) fn dependents(&self, key: &Key) -> Vec<(Arc<str>, Key)> {
        let entries: Vec<Arc<Entry>> = self.entries().collect();
        let mut callers: HashMap<Key, Vec<&RecordHead>> = HashMap::new();
        for entry in &entries {
            for (_, callee) in &entry.record.calls {
                callers.entry(*callee).or_default().push(&entry.record);
            }
        }
        let mut found = Vec::new();
        let mut seen = HashSet::from([*key]);
        let mut next = vec![*key];
        while let Some(callee) = next.pop() {
            for record in callers.get(&callee).into_iter().flatten() {
                if seen.insert(record.key) {
                    found.push((Arc::clone(&record.app), record.key));
                    next.push(record.key);
                }
            }
        }
        found
    }
}
