//! What joblib's interface does with a store: results found by their keys, cleared, and reduced to limits.
//!
//! Each function saves what this process has first, so that the store has all that it is about.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use sde::archiver::{Archiver, Codec, StoredEntry};
use sde::record::RunId;
use sde::store::Removable;
use sde::store::inspect::{Inspection, Item};
use sde::{Data, Key};

use crate::store::{Opened, Store};
use crate::{Unreadable, failed, read};

/// Takes the results of an app out of the store and of memory, or those of all apps. A result that can't be taken out now
/// is marked as invalid: another process is writing its file, or another user owns it.
#[pyfunction]
pub(crate) fn clear(py: Python<'_>, store: &Store, name: Option<String>) -> PyResult<()> {
    let opened = store.opened(py)?;
    let cleared = py.detach(|| {
        opened.save()?;
        let is_meant = |one: &Removable<'_>| name.as_ref().is_none_or(|name| one.app == name);
        let left = opened.take_out(&is_meant)?;
        for (key, run) in &left {
            opened.sde.invalidate_run(key, *run, "cleared from Python");
        }
        opened.forget(name.as_deref());
        match left.is_empty() {
            true => Ok(()),
            false => opened.save(),
        }
    });
    cleared.map_err(|error| failed(&error))
}

/// Takes out the results that were used least recently, until no more than `bytes` and `items` are left, and none that
/// was last used more than `age` seconds ago.
#[pyfunction]
pub(crate) fn reduce_size(
    py: Python<'_>,
    store: &Store,
    bytes: Option<u64>,
    items: Option<usize>,
    age: Option<f64>,
) -> PyResult<()> {
    let opened = store.opened(py)?;
    let reduced = py.detach(|| {
        opened.save()?;
        let mut left = opened.kept()?;
        left.sort_by_key(|one| one.used);
        let age = age.and_then(|age| Duration::try_from_secs_f64(age).ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        // None is as old as a time before 1970.
        let oldest = now.zip(age).and_then(|(now, age)| now.checked_sub(age));
        let (mut all, mut number) = (left.iter().map(|one| one.bytes).sum::<u64>(), left.len());
        let goes = left.iter().take_while(|one| {
            let goes = bytes.is_some_and(|most| all > most)
                || items.is_some_and(|most| number > most)
                || oldest.is_some_and(|oldest| u128::from(one.used) <= oldest.as_nanos());
            (all, number) = (all - one.bytes, number - 1);
            goes
        });
        let goes: HashSet<Key> = goes.map(|one| one.key).collect();
        if goes.is_empty() {
            return Ok(());
        }
        opened.take_out(&|one| goes.contains(one.key))?;
        opened.forget(None);
        Ok(())
    });
    reduced.map_err(|error: sde::Error| failed(&error))
}

/// The result of a key, in a tuple; `None` if there is none, or it is no longer given.
#[pyfunction]
pub(crate) fn load<'py>(
    py: Python<'py>,
    store: &Store,
    key: [u8; 32],
    is_writable: bool,
) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
    let opened = store.opened(py)?;
    let found = py
        .detach(|| opened.find(&Key::from_bytes(key)))
        .map_err(|error| failed(&error))?;
    let Some(found) = found else { return Ok(None) };
    let result = found.results.iter().find(|one| one.name == "result");
    let Some(payload) = result.and_then(|one| one.payload.as_ref()) else {
        return Ok(None);
    };
    let value = py.detach(|| payload.decode(&Codec::of::<Data>()));
    let value = value.map_err(|error| failed(&error.into()))?;
    let data = value
        .downcast_ref::<Data>()
        .ok_or_else(|| Unreadable::new_err("is of another type than results of Python"))?;
    let how = read::How {
        is_writable,
        is_of_others: found.is_of_others,
    };
    read::object(py, data, how).map(|object| Some((object,)))
}

/// The computation of a key that [`load`] would give a result of.
#[pyfunction]
pub(crate) fn made_by(py: Python<'_>, store: &Store, key: [u8; 32]) -> PyResult<Option<String>> {
    let opened = store.opened(py)?;
    let found = py.detach(|| opened.find(&Key::from_bytes(key)));
    let found = found.map_err(|error| failed(&error))?;
    Ok(found.map(|found| found.record.run.to_string()))
}

/// Has the result of a key no longer given, in any program.
#[pyfunction]
pub(crate) fn forget(py: Python<'_>, store: &Store, key: [u8; 32]) -> PyResult<()> {
    let (opened, key) = (store.opened(py)?, Key::from_bytes(key));
    let forgotten = py.detach(|| {
        let reason = "cleared from Python";
        // It fails if neither memory nor the store has one. The store may have another than memory.
        _ = opened.sde.invalidate(&key, reason);
        if let Some(found) = opened.find(&key)? {
            opened.sde.invalidate_run(&key, found.record.run, reason);
        }
        opened.save()
    });
    forgotten.map_err(|error| failed(&error))
}

/// A key that the store has.
struct Kept {
    key: Key,
    bytes: u64,
    /// When it was saved or last used, in nanoseconds since 1970.
    used: u64,
}

impl Opened {
    fn save(&self) -> Result<(), sde::Error> {
        self.sde.checkpoint()?;
        self.sde.archive()
    }

    /// The entry of a key that counts, unless it is marked as invalid.
    fn find(&self, key: &Key) -> Result<Option<StoredEntry>, sde::Error> {
        self.save()?;
        self.store.refresh()?;
        let Some(found) = self.store.find(key)? else {
            return Ok(None);
        };
        let mut marks = self.store.marks()?;
        marks.retain(|mark| (mark.key, mark.run) == (*key, found.record.run));
        // The last counts: they come in their order.
        let is_invalid = marks.last().is_some_and(|mark| !mark.undone);
        Ok((!is_invalid).then_some(found))
    }

    /// Takes keys out of the store; gives the computations of those that can't be taken out now.
    fn take_out(
        &self,
        wanted: &dyn Fn(&Removable<'_>) -> bool,
    ) -> Result<Vec<(Key, RunId)>, sde::Error> {
        let left = RefCell::new(Vec::new());
        let noted = |one: &Removable<'_>, stays: bool| {
            let is_wanted = wanted(one);
            if let (true, Some(entry)) = (is_wanted && stays, one.entry) {
                left.borrow_mut().push((*one.key, entry.record.run));
            }
            is_wanted
        };
        if self.store.remove(|one| noted(one, one.stays))?.busy {
            self.store.would_remove(|one| noted(one, true))?;
        }
        Ok(left.into_inner())
    }

    /// Drops the results of an app from memory, or those of all apps.
    fn forget(&self, name: Option<&str>) {
        let all = self.sde.stats().apps.into_keys();
        for app in all.filter(|app| name.is_none_or(|name| app == name)) {
            // It fails only for an app that this program does not know, of which it has no result.
            _ = self.sde.clear_app(&app);
        }
    }

    /// All keys with entries, by what the files have.
    fn kept(&self) -> Result<Vec<Kept>, sde::Error> {
        let read = Inspection::open(self.store.path())?.read(|snapshot| {
            let (mut kept, mut used) = (HashMap::new(), HashMap::new());
            snapshot.walk(None, |_, item| match item {
                Item::Entry(entry) => {
                    let of = entry.record.key;
                    let one: &mut (u64, u64) = kept.entry(of).or_default();
                    one.0 += entry.place.end - entry.place.start;
                    one.1 = one.1.max(entry.saved_at);
                }
                Item::Uses { uses, .. } => uses.iter().for_each(|one| {
                    let last: &mut u64 = used.entry(one.prefix).or_default();
                    *last = (*last).max(one.last);
                }),
                _ => {}
            });
            Ok::<_, sde::archiver::ArchiveError>((kept, used))
        });
        let (kept, used) = read?.1?;
        let kept = kept.into_iter().map(|(key, (bytes, saved_at))| {
            let [a, b, c, d, e, f, g, h, ..] = *key.as_bytes();
            let last = used.get(&u64::from_be_bytes([a, b, c, d, e, f, g, h]));
            Kept {
                key,
                bytes,
                used: saved_at.max(last.copied().unwrap_or_default()),
            }
        });
        Ok(kept.collect())
    }
}
