//! Values whose file may be gone when they are read.
//!
//! A result is given out before it is read. Before somebody asks for it, a compaction may move it and remove the
//! file in which it was found. The store still has it, so it is looked up again, once. If it was found damaged,
//! another copy may be whole.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sde::archiver::{ArchiveError, Codec, Payload, StoredEntry};
use sde::key::Digest;
use sde::record::RunId;
use sde::{ErasedValue, Key};

use crate::resolve::resolve;
use crate::store::{DirStore, Inner};

/// A value, with the information to look it up again.
struct RelocatablePayload {
    payload: Arc<dyn Payload>,
    /// Weak, since a map that a user keeps must not keep the store open.
    store: Weak<Inner>,
    key: Key,
    what: What,
}

/// Which value of a key.
enum What {
    Result(RunId, String),
    /// Any state, since each leads to the same bits.
    State,
}

impl DirStore {
    /// Wraps an entry's values, so that they are looked up again if need be.
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

    /// Wraps a scratch state, so that it is looked up again if need be.
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
    /// Looks the value up again.
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

    fn took(&self) -> Duration {
        self.payload.took()
    }

    fn digest(&self) -> Option<Digest> {
        self.payload.digest()
    }

    fn digest_of(&self, value: &ErasedValue, codec: &Codec) -> Option<Digest> {
        self.payload.digest_of(value, codec)
    }
}
