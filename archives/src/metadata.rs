//! What a frame says of its payloads, as CBOR.

use std::time::SystemTime;

use sde::key::Digest;
use sde::{Key, Record, RunId, Tags};
use serde::{Deserialize, Serialize};

/// The metadata of an entry: `R` is the whole [`Record`] or part of it.
#[derive(Serialize, Deserialize)]
pub(crate) struct EntryMetadata<R> {
    /// When it was saved, in nanoseconds since 1970.
    pub(crate) saved_at: u64,
    pub(crate) record: R,
    pub(crate) results: Vec<ResultMetadata>,
}

/// What a scan reads of a [`Record`].
#[derive(Deserialize)]
pub(crate) struct RecordHead {
    pub(crate) key: Key,
    pub(crate) run: RunId,
    pub(crate) made_at: SystemTime,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ResultMetadata {
    pub(crate) name: String,
    pub(crate) tags: Tags,
    /// `None` if the value was not saved.
    pub(crate) payload: Option<PayloadMetadata>,
}

/// Where the bytes of a value are, and how to know that they are those.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PayloadMetadata {
    /// Counted from the end of the metadata.
    pub(crate) at: u64,
    pub(crate) length: u64,
    /// Their BLAKE3 digest.
    pub(crate) checksum: Digest,
    /// The Rust type, as the compiler calls it: another one is not decoded.
    pub(crate) type_name: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ScratchMetadata {
    pub(crate) saved_at: u64,
    pub(crate) app: String,
    pub(crate) key: Key,
    pub(crate) payload: PayloadMetadata,
}

impl<R> EntryMetadata<R> {
    /// How many values it has.
    pub(crate) fn values(&self) -> usize {
        let saved = |result: &&ResultMetadata| result.payload.is_some();
        self.results.iter().filter(saved).count()
    }

    /// Whether it has all that belongs in an archive.
    pub(crate) fn is_archive(&self) -> bool {
        self.results
            .iter()
            .all(|result| result.payload.is_some() || !result.tags.is_archived())
    }
}

/// The part of a [`Record`] that says whose it is.
impl From<&Record> for RecordHead {
    fn from(record: &Record) -> Self {
        Self {
            key: record.key,
            run: record.run,
            made_at: record.made_at,
        }
    }
}
