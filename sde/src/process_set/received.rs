//! What other ranks have sent, until a run asks for it.
//!
//! A rank may get results of apps that it has not run yet, and then it does not know the types
//! of their values. So what arrives stays bytes, like what is in a store.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cache::Record;
use crate::checkpoint::{StoredEntry, StoredResult};
use crate::error::ArchiveError;
use crate::key::Key;
use crate::result_map::{Codec, ErasedValue, Payload, Tags, Wire};

/// What has arrived.
#[derive(Default)]
pub(crate) struct Received(Mutex<HashMap<Key, ReceivedEntry>>);

/// An entry of another rank.
#[derive(Clone)]
pub(crate) struct ReceivedEntry {
    pub(crate) record: Record,
    pub(crate) results: Vec<ReceivedResult>,
}

#[derive(Clone)]
pub(crate) struct ReceivedResult {
    pub(crate) name: String,
    pub(crate) tags: Tags,
    pub(crate) value: Option<Arc<ReceivedValue>>,
}

/// The bytes of a value, among others that arrived with it.
pub(crate) struct ReceivedValue {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) range: Range<usize>,
    pub(crate) type_name: String,
    pub(crate) wire: Arc<dyn Wire>,
}

impl Received {
    pub(crate) fn put(&self, entry: ReceivedEntry) {
        self.lock().insert(entry.record.key, entry);
    }

    /// An entry as a store would have it.
    pub(crate) fn find(&self, key: &Key) -> Option<StoredEntry> {
        self.lock()
            .get(key)
            .cloned()
            .map(ReceivedEntry::into_stored)
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.lock().contains_key(key)
    }

    /// Forgets those of which `which` says so.
    pub(crate) fn forget_if(&self, which: impl Fn(&Record) -> bool) {
        self.lock().retain(|_, entry| !which(&entry.record));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, ReceivedEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReceivedEntry {
    pub(crate) fn into_stored(self) -> StoredEntry {
        let results = self.results.into_iter().map(|result| StoredResult {
            name: result.name,
            tags: result.tags,
            payload: result.value.map(|value| value as _),
        });
        StoredEntry {
            record: self.record,
            results: results.collect(),
            // Whoever computed it archives it.
            archived: true,
        }
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
}
