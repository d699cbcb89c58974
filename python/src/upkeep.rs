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

/// Takes the results of an app out of the store and of memory, or those of all apps.
#[pyfunction]
pub(crate) fn clear(py: Python<'_>, store: &Store, name: Option<String>) -> PyResult<()> {
    let opened = store.opened(py)?;
    let is_meant = |one: &Removable<'_>| name.as_ref().is_none_or(|name| one.app == name);
    py.detach(|| {
        opened.save()?;
        opened.take_out(&is_meant)?;
        opened.forget(name.as_deref());
        opened.save()
    })
    .map_err(failed)
}

/// Takes out the results that were used least recently, until no more than `bytes` and `items` are left, and none that
/// was last used more than `age` seconds ago. It is about results that `user` has saved.
#[pyfunction]
pub(crate) fn reduce_size(
    py: Python<'_>,
    store: &Store,
    bytes: Option<u64>,
    items: Option<usize>,
    age: Option<f64>,
    user: u32,
) -> PyResult<()> {
    let opened = store.opened(py)?;
    let reduced = py.detach(|| {
        opened.save()?;
        let mut left = opened.kept(user)?;
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
        opened.save()
    });
    reduced.map_err(failed)
}

/// The result of a key, in a tuple; `None` if there is none, or it is no longer given. Pickles of trusted users are
/// loaded, as by a call; `table::load` loads none, and reads what programs of other languages saved.
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
        .map_err(failed)?;
    let Some(found) = found else { return Ok(None) };
    let result = found.results.iter().find(|one| one.name == "result");
    let Some(payload) = result.and_then(|one| one.payload.as_ref()) else {
        return Ok(None);
    };
    let value = py.detach(|| payload.decode(&Codec::of::<Data>()));
    let value = value.map_err(|error| failed(error.into()))?;
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
    let found = found.map_err(failed)?;
    Ok(found.map(|found| found.record.run.to_string()))
}

/// Has the result of a key no longer given, in any program.
#[pyfunction]
pub(crate) fn forget(py: Python<'_>, store: &Store, key: [u8; 32]) -> PyResult<()> {
    let (opened, key) = (store.opened(py)?, Key::from_bytes(key));
    let forgotten = py.detach(|| {
        let reason = "cleared from Python";
        opened.save()?;
        // It fails if neither memory nor the store has one.
        _ = opened.sde.invalidate(&key, reason);
        opened.invalidate_all(&key, reason)?;
        opened.save()
    });
    forgotten.map_err(failed)
}

/// A key that the store has.
struct Kept {
    key: Key,
    bytes: u64,
    /// When it was saved or last used, in nanoseconds since 1970; zero if it is marked as invalid.
    used: u64,
}

impl Opened {
    /// Saves what this process has, and looks for what others have saved.
    fn save(&self) -> Result<(), sde::Error> {
        self.sde.checkpoint()?;
        self.sde.archive()?;
        Ok(self.store.refresh()?)
    }

    /// The entry of a key that counts, unless it is marked as invalid.
    fn find(&self, key: &Key) -> Result<Option<StoredEntry>, sde::Error> {
        self.save()?;
        let Some(found) = self.store.find(key)? else {
            return Ok(None);
        };
        let is_invalid = self.invalid()?.contains(&(*key, found.record.run));
        Ok((!is_invalid).then_some(found))
    }

    /// The computations that are marked as invalid.
    fn invalid(&self) -> Result<HashSet<(Key, RunId)>, sde::Error> {
        let mut invalid = HashSet::new();
        // Of marks of one computation the last counts: they come in their order.
        for mark in self.store.marks()? {
            let of = (mark.key, mark.run);
            match mark.undone {
                true => invalid.remove(&of),
                false => invalid.insert(of),
            };
        }
        Ok(invalid)
    }

    /// Marks all computations of a key that the store has.
    fn invalidate_all(&self, key: &Key, reason: &str) -> Result<(), sde::Error> {
        if let Some(found) = self.store.look(key)? {
            for one in found.others.iter().chain([&found]) {
                self.sde.invalidate_run(key, one.record.run, reason);
            }
        }
        Ok(())
    }

    /// Takes keys out of the store. One that can't be taken out now is marked as invalid, to be saved: its file is being
    /// written, or was until ten minutes ago, or another user owns it.
    fn take_out(&self, wanted: &dyn Fn(&Removable<'_>) -> bool) -> Result<(), sde::Error> {
        let left = RefCell::new(HashSet::new());
        let noted = |one: &Removable<'_>, stays: bool| {
            let is_wanted = wanted(one);
            if is_wanted && stays {
                left.borrow_mut().insert(*one.key);
            }
            is_wanted
        };
        if self.store.remove(|one| noted(one, one.stays))?.busy {
            self.store.would_remove(|one| noted(one, true))?;
        }
        let mut left = left.into_inner().into_iter();
        left.try_for_each(|key| self.invalidate_all(&key, "cleared from Python"))
    }

    /// Drops the results of an app from memory, or those of all apps.
    fn forget(&self, name: Option<&str>) {
        let all = self.sde.stats().apps.into_keys();
        for app in all.filter(|app| name.is_none_or(|name| app == name)) {
            // It fails only for an app that this program does not know, of which it has no result.
            _ = self.sde.clear_app(&app);
        }
    }

    /// All keys with entries that a user has saved, by what the files have.
    fn kept(&self, user: u32) -> Result<Vec<Kept>, sde::Error> {
        let invalid = self.invalid()?;
        let read = Inspection::open(self.store.path())?.read(|snapshot| {
            let (mut kept, mut used) = (HashMap::new(), HashMap::new());
            snapshot.walk(None, |segment, item| match item {
                Item::Entry(entry) if segment.author().is_none_or(|author| author == user) => {
                    let of = &entry.record;
                    let one: &mut (u64, u64) = kept.entry(of.key).or_default();
                    one.0 += entry.place.end - entry.place.start;
                    if !invalid.contains(&(of.key, of.run)) {
                        one.1 = one.1.max(entry.saved_at);
                    }
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
            let used = match saved_at {
                0 => 0,
                saved_at => saved_at.max(last.copied().unwrap_or_default()),
            };
            Kept { key, bytes, used }
        });
        Ok(kept.collect())
    }
}
