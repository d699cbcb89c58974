//! Entries received from other ranks, which wait for a run to ask for them.
//!
//! A rank may receive results of apps that it has not run yet, and then does not know the types of their values. So
//! received entries stay bytes, as in a store. Once a run has asked for one, the cache has it, and this map drops it;
//! the bytes last until the values are read.

use std::sync::Mutex;

use super::{KeyMap, PackedEntry, Sent, as_usize};
use crate::checkpoint::{StoredEntry, StoredResult};
use crate::event::RunId;
use crate::key::Key;
use crate::result_map::Tags;
use crate::sync::{MutexGuard, lock};

/// The entries that have arrived.
#[derive(Default)]
pub(crate) struct Received(Mutex<KeyMap<Arrived>>);

#[derive(Clone)]
enum Arrived {
    Packed(PackedEntry),
    /// An entry with values of several exchanges, or one that lost some of its values.
    Unpacked(StoredEntry),
}

impl Arrived {
    /// `None` if the bytes are no entry.
    fn unpack(&self) -> Option<StoredEntry> {
        match self {
            Self::Packed(entry) => entry.unpack().ok(),
            Self::Unpacked(entry) => Some(entry.clone()),
        }
    }

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
    /// Adds entries, each with the values that arrived for it before and are missing now.
    pub(crate) fn put(&self, entries: Vec<PackedEntry>) {
        self.lock().reserve(entries.len());
        for entry in entries {
            let key = entry.offer().key;
            let now = match self.find(&key) {
                Some(before) => Arrived::Unpacked(filled(entry.unpack().ok(), before)),
                None => Arrived::Packed(entry),
            };
            let _before = self.lock().insert(key, now);
        }
    }

    /// The entry of a key. Decodes it without the lock, since the wire is another crate's code.
    pub(crate) fn find(&self, key: &Key) -> Option<StoredEntry> {
        let arrived = self.lock().get(key).cloned();
        arrived.and_then(|arrived| arrived.unpack()).filter(has_any)
    }

    /// The number of bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        let known = self.lock();
        let lengths = known.values().map(Arrived::bytes);
        lengths.fold(0, usize::saturating_add)
    }

    /// The keys and runs of the entries that wait.
    pub(crate) fn waiting(&self) -> Vec<(Key, RunId)> {
        let known = self.lock();
        let runs = known.iter().map(|(key, entry)| (*key, entry.run()));
        runs.collect()
    }

    /// The run of an entry that has all values a run needs.
    pub(crate) fn run_of(&self, key: &Key) -> Option<RunId> {
        match self.lock().get(key)? {
            Arrived::Packed(entry) => {
                let offer = entry.offer();
                (offer.sent == Sent::Whole).then_some(offer.run)
            }
            Arrived::Unpacked(entry) => is_complete(entry).then_some(entry.record.run),
        }
    }

    /// Removes an entry that the cache has now.
    pub(crate) fn forget(&self, key: &Key) {
        let _entry = self.lock().remove(key);
    }

    /// Drops values of an app, and entries that have none left.
    pub(crate) fn clear(&self, app: &str, goes: impl Fn(Tags) -> bool) {
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

/// Whether an entry has all values that a run needs: another rank may have sent only some.
pub(crate) fn is_complete(entry: &StoredEntry) -> bool {
    let lacks = |result: &StoredResult| result.tags.is_needed() && result.payload.is_none();
    has_any(entry) && !entry.results.iter().any(lacks)
}

fn has_any(entry: &StoredEntry) -> bool {
    entry.results.iter().any(|result| result.payload.is_some())
}

/// The entry, with the values that it lacks taken from `before`; `before` itself if there is none.
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
