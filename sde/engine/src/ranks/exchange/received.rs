//! What other ranks have sent, until a run asks for it.
//!
//! A rank may get results of apps that it has not run yet, and then it does not know the types
//! of their values. So what arrives stays bytes, like what is in a store. When a run has asked for it,
//! the cache has it, and the bytes are let go: they last until their values are read.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::checkpoint::{StoredEntry, StoredResult};
use crate::error::ArchiveError;
use crate::key::Key;
use crate::result_map::{Codec, ErasedValue, Payload, Tags, Wire};
use crate::sync::lock;

/// What has arrived.
#[derive(Default)]
pub(crate) struct Received(Mutex<HashMap<Key, StoredEntry>>);

/// The bytes of a value, among others that arrived with it.
pub(crate) struct ReceivedValue {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) range: Range<usize>,
    pub(crate) type_name: String,
    pub(crate) has_files: bool,
    pub(crate) wire: Arc<dyn Wire>,
}

impl Received {
    /// Keeps an entry, with the values that came of it before and did not come now. One without
    /// any value is nothing to keep.
    pub(crate) fn put(&self, mut entry: StoredEntry) {
        let mut entries = self.lock();
        if let Some(before) = entries.get(&entry.record.key) {
            fill(&mut entry, before);
        }
        if has_any(&entry) {
            entries.insert(entry.record.key, entry);
        }
    }

    pub(crate) fn find(&self, key: &Key) -> Option<StoredEntry> {
        self.lock().get(key).cloned()
    }

    /// Whether an entry is there with all that a run needs of it.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.lock().get(key).is_some_and(is_complete)
    }

    /// Forgets an entry, since the cache has it now.
    pub(crate) fn forget(&self, key: &Key) {
        let _entry = self.lock().remove(key);
    }

    /// How many are waiting.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().len()
    }

    /// Drops values of an app, and the entries of which none is left.
    pub(crate) fn clean(&self, app: &str, goes: impl Fn(Tags) -> bool) {
        self.lock().retain(|_, entry| {
            if *entry.record.app == *app {
                let going = entry.results.iter_mut();
                let going = going.filter(|result| goes(result.tags));
                going.for_each(|result| result.payload = None);
            }
            has_any(entry)
        });
    }

    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, StoredEntry>> {
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

/// Takes over the values that another has and it lacks.
fn fill(entry: &mut StoredEntry, before: &StoredEntry) {
    let lacking = entry.results.iter_mut();
    for result in lacking.filter(|result| result.payload.is_none()) {
        let mut had = before.results.iter();
        let had = had.find(|had| had.name == result.name);
        result.payload = had.and_then(|had| had.payload.clone());
    }
}

impl Payload for ReceivedValue {
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        let bytes = self.bytes.get(self.range.clone());
        let bytes = bytes.ok_or_else(|| ArchiveError::Damaged {
            why: "what another rank sent was cut short".to_owned(),
        })?;
        self.wire.decode(bytes, codec)
    }

    fn may_be(&self, codec: &Codec) -> bool {
        self.type_name == codec.type_name()
    }

    fn stored_bytes(&self) -> u64 {
        self.range.len() as u64
    }

    fn has_files(&self) -> bool {
        self.has_files
    }
}
