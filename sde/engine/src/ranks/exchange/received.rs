//! What other ranks have sent, until a run asks for it.
//!
//! A rank may get results of apps that it has not run yet, and then it does not know the types
//! of their values. So what arrives stays bytes, like what is in a store. When a run has asked for it,
//! the cache has it, and the bytes are let go: they last until their values are read.

use std::sync::Mutex;

use super::{KeyMap, PackedEntry, as_usize};
use crate::checkpoint::{StoredEntry, StoredResult};
use crate::event::RunId;
use crate::key::Key;
use crate::result_map::Tags;
use crate::sync::{MutexGuard, lock};

/// What has arrived.
#[derive(Default)]
pub(crate) struct Received(Mutex<KeyMap<Arrived>>);

#[derive(Clone)]
enum Arrived {
    Packed(PackedEntry),
    /// What came of it at different times, or remains of it.
    Unpacked(StoredEntry),
}

impl Arrived {
    /// `None` if what another rank has sent is no entry.
    fn unpack(&self) -> Option<StoredEntry> {
        match self {
            Self::Packed(entry) => entry.unpack().ok(),
            Self::Unpacked(entry) => Some(entry.clone()),
        }
    }
}

impl Arrived {
    fn bytes(&self) -> usize {
        match self {
            Self::Packed(entry) => as_usize(entry.offer().bytes()),
            Self::Unpacked(entry) => {
                let payloads = entry.results.iter().filter_map(|one| one.payload.as_ref());
                let lengths = payloads.map(|payload| as_usize(payload.stored_bytes()));
                lengths.fold(0, usize::saturating_add)
            }
        }
    }

    fn run(&self) -> RunId {
        match self {
            Self::Packed(entry) => entry.offer().run,
            Self::Unpacked(entry) => entry.record.run,
        }
    }
}

impl Received {
    /// Keeps entries, each with the values that came of it before and did not come now.
    pub(crate) fn put(&self, entries: Vec<PackedEntry>) {
        self.lock().reserve(entries.len());
        for entry in entries {
            let key = entry.offer().key;
            let now = match self.unpacked(&key) {
                Some(before) => Arrived::Unpacked(filled(entry.unpack().ok(), before)),
                None => Arrived::Packed(entry),
            };
            let _before = self.lock().insert(key, now);
        }
    }

    /// What arrived of a key. Unpacked with nothing locked: what decodes it is another crate's.
    fn unpacked(&self, key: &Key) -> Option<StoredEntry> {
        let arrived = self.lock().get(key).cloned();
        arrived.and_then(|arrived| arrived.unpack())
    }

    /// How many bytes were sent of what waits.
    pub(crate) fn bytes(&self) -> usize {
        let known = self.lock();
        known
            .values()
            .map(Arrived::bytes)
            .fold(0, usize::saturating_add)
    }

    /// What waits: its keys and runs.
    pub(crate) fn waiting(&self) -> Vec<(Key, RunId)> {
        let known = self.lock();
        known
            .iter()
            .map(|(key, entry)| (*key, entry.run()))
            .collect()
    }

    pub(crate) fn find(&self, key: &Key) -> Option<StoredEntry> {
        self.unpacked(key).filter(has_any)
    }

    /// The run that made an entry which is there with all that a run needs of it.
    pub(crate) fn run_of(&self, key: &Key) -> Option<RunId> {
        match self.lock().get(key)? {
            Arrived::Packed(entry) => entry.is_whole().then_some(entry.offer().run),
            Arrived::Unpacked(entry) => is_complete(entry).then_some(entry.record.run),
        }
    }

    /// Forgets an entry, since the cache has it now.
    pub(crate) fn forget(&self, key: &Key) {
        let _entry = self.lock().remove(key);
    }

    /// Drops values of an app, and the entries of which none remains.
    pub(crate) fn clean(&self, app: &str, goes: impl Fn(Tags) -> bool) {
        let known = self.lock().clone();
        let is_of = |entry: &Arrived| match entry {
            Arrived::Packed(entry) => entry.is_of(app),
            Arrived::Unpacked(entry) => *entry.record.app == *app,
        };
        for (key, entry) in known.iter().filter(|(_, entry)| is_of(entry)) {
            let mut cleaned = entry.unpack();
            let going = cleaned.iter_mut().flat_map(|entry| &mut entry.results);
            let going = going.filter(|result| goes(result.tags));
            going.for_each(|result| result.payload = None);
            let cleaned = cleaned.filter(has_any).map(Arrived::Unpacked);
            let _before = match cleaned {
                Some(cleaned) => self.lock().insert(*key, cleaned),
                None => self.lock().remove(key),
            };
        }
    }

    pub(crate) fn forget_all(&self) {
        let _all = std::mem::take(&mut *self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, KeyMap<Arrived>> {
        lock(&self.0)
    }
}

/// Whether it has all that a run needs: another rank may have sent only some values.
pub(crate) fn is_complete(entry: &StoredEntry) -> bool {
    let lacks = |result: &StoredResult| result.tags.is_needed() && result.payload.is_none();
    has_any(entry) && !entry.results.iter().any(lacks)
}

fn has_any(entry: &StoredEntry) -> bool {
    entry.results.iter().any(|result| result.payload.is_some())
}

/// An entry, if it is one, with the values that came of it before and that it lacks.
fn filled(entry: Option<StoredEntry>, before: StoredEntry) -> StoredEntry {
    let Some(mut entry) = entry else {
        return before;
    };
    let lacking = entry.results.iter_mut();
    for result in lacking.filter(|result| result.payload.is_none()) {
        let mut had = before.results.iter();
        let had = had.find(|had| had.name == result.name);
        result.payload = had.and_then(|had| had.payload.clone());
    }
    entry
}
