//! Values whose file is gone by the time that they are asked for.
//!
//! A result is given out before it is read. Until somebody asks for it a compaction may have put it
//! elsewhere, and removed the file in which it was found. It is still in the store, so it is looked
//! for again, once; and if it is damaged where it was found, another copy may be whole.

use std::sync::{Arc, Weak};

use sde::key::Digest;
use sde::{ArchiveError, Codec, ErasedValue, Key, Payload, RunId, StoredEntry};

use crate::resolve::resolve;
use crate::store::{DirStore, Inner};

/// A value, and what it is, so that it can be found again.
struct RelocatablePayload {
    payload: Arc<dyn Payload>,
    /// A map that somebody keeps must not keep the store open.
    store: Weak<Inner>,
    key: Key,
    what: What,
}

/// What of a key it is.
enum What {
    Result(RunId, String),
    /// Any state is as good.
    State,
}

impl DirStore {
    /// Has the values of an entry looked for again if they are not where they were found.
    pub(crate) fn relocatable(&self, mut entry: StoredEntry) -> StoredEntry {
        for result in &mut entry.results {
            if let Some(payload) = result.payload.take() {
                result.payload = Some(Arc::new(RelocatablePayload {
                    payload,
                    store: Arc::downgrade(&self.0),
                    key: entry.record.key,
                    what: What::Result(entry.record.run, result.name.clone()),
                }));
            }
        }
        entry
    }

    /// Has a scratch state looked for again if it is not where it was found.
    pub(crate) fn relocatable_state(
        &self,
        payload: Arc<dyn Payload>,
        key: Key,
    ) -> Arc<dyn Payload> {
        Arc::new(RelocatablePayload {
            payload,
            store: Arc::downgrade(&self.0),
            key,
            what: What::State,
        })
    }
}

impl RelocatablePayload {
    /// Where the store has the value now.
    fn again(&self) -> Option<Arc<dyn Payload>> {
        let store = DirStore::inner(self.store.upgrade()?);
        store.refresh().ok()?;
        let What::Result(run, name) = &self.what else {
            return store.scratch(&self.key, 0).ok()?.0;
        };
        let found = resolve(&store.0.catalog, &self.key).ok()?;
        let entry = found.entry.filter(|entry| entry.record.run == *run)?;
        let mut results = entry.results.into_iter();
        results.find(|result| result.name == *name)?.payload
    }
}

impl Payload for RelocatablePayload {
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        self.payload.decode(codec).or_else(|error| {
            let again = self.again().filter(|payload| payload.may_be(codec));
            again.map_or(Err(error), |payload| payload.decode(codec))
        })
    }

    fn may_be(&self, codec: &Codec) -> bool {
        self.payload.may_be(codec)
    }

    fn stored_bytes(&self) -> u64 {
        self.payload.stored_bytes()
    }

    fn has_files(&self) -> bool {
        self.payload.has_files()
    }

    fn digest(&self) -> Option<Digest> {
        self.payload.digest()
    }

    fn digest_of(&self, value: &ErasedValue, codec: &Codec) -> Option<Digest> {
        self.payload.digest_of(value, codec)
    }
}
