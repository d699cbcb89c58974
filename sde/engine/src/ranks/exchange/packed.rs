//! An entry as bytes, for other ranks.
//!
//! First its [header](EntryHeader), then the values one after another, then the head (record,
//! names, tags, lengths). The head comes last so that values go straight to where they are sent
//! from: their lengths are known when they have been written.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::received::ReceivedValue;
use crate::cache::{Entry, Record};
use crate::checkpoint::{StoredEntry, StoredResult};
use crate::error::{ArchiveError, Error, ErrorKind};
use crate::key::Key;
use crate::result_map::{Codec, Content, ErasedValue, Payload, Tags, Wire};

/// What each entry begins with; it has the same length whatever it says.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct EntryHeader {
    /// Which of the entries that are sent it is.
    #[serde(with = "postcard::fixint::le")]
    pub(super) number: u64,
    /// How many bytes come after this header.
    #[serde(with = "postcard::fixint::le")]
    pub(super) bytes: u64,
    /// How many of these are the head.
    #[serde(with = "postcard::fixint::le")]
    pub(super) head: u64,
}

impl EntryHeader {
    pub(super) const BYTES: usize = 24;
}

/// An entry as it came.
pub(crate) struct PackedEntry {
    /// How many of the bytes, the last ones, are the head.
    pub(super) head: u64,
    pub(super) bytes: Vec<u8>,
}

/// It comes after the values.
#[derive(Serialize, Deserialize)]
struct Head {
    record: Arc<Record>,
    results: Vec<HeadOfResult>,
}

#[derive(Serialize, Deserialize)]
struct HeadOfResult {
    name: String,
    tags: Tags,
    /// Its type and length, if it is sent.
    value: Option<(String, u64)>,
    has_files: bool,
}

/// Appends an entry. Values that can't be sent (`no_cache` ones, those without a codec, and
/// those of which `leave` says so) are named only.
pub(crate) fn pack(
    number: usize,
    entry: &Entry,
    wire: &dyn Wire,
    leave: impl Fn(&str, Tags) -> bool,
    to: &mut Vec<u8>,
) -> Result<(), ArchiveError> {
    let before = to.len();
    to.extend([0; EntryHeader::BYTES]);
    let values = to.len();
    let mut results = Vec::new();
    for named in entry.results.results() {
        let tags = named.tags.unwrap_or_default();
        let held = match &named.content {
            Content::Held(value) => Some(value.clone()),
            Content::Stored(stored) => stored.get().ok().cloned(),
            Content::Elsewhere(_) | Content::Gone(_) => None,
        };
        let codec = named.codec.filter(|_| !leave(&named.name, tags));
        let value = match held.zip(codec) {
            Some((value, codec)) => {
                let start = to.len();
                wire.encode(&value, &codec, to)?;
                Some((codec.type_name().to_owned(), (to.len() - start) as u64))
            }
            None => None,
        };
        results.push(HeadOfResult {
            name: named.name.to_string(),
            tags,
            value,
            has_files: named.has_files(),
        });
    }
    let head = Head {
        record: Arc::clone(&entry.record),
        results,
    };
    let start = to.len();
    wire.encode(&ErasedValue::new(head), &Codec::of::<Head>(), to)?;
    let header = EntryHeader {
        number: number as u64,
        bytes: (to.len() - values) as u64,
        head: (to.len() - start) as u64,
    };
    let written = postcard::to_slice(&header, &mut to[before..values]);
    written.map_err(|error| ArchiveError::Other(error.to_string()))?;
    Ok(())
}

/// Reads the entry of this key that another rank has sent. Its values stay bytes.
pub(crate) fn unpack(
    key: &Key,
    packed: PackedEntry,
    wire: &Arc<dyn Wire>,
) -> Result<StoredEntry, Error> {
    read(key, packed, wire).map_err(|source| {
        let doing = "reading what another rank sent".to_owned();
        ErrorKind::Archive { doing, source }.into()
    })
}

fn read(key: &Key, packed: PackedEntry, wire: &Arc<dyn Wire>) -> Result<StoredEntry, ArchiveError> {
    let cut = || ArchiveError::Damaged {
        why: "what another rank sent was cut short".to_owned(),
    };
    let bytes = Arc::new(packed.bytes);
    let head = usize::try_from(packed.head).ok();
    let values = head.and_then(|head| bytes.len().checked_sub(head));
    let values = values.ok_or_else(cut)?;
    let head = wire.decode(&bytes[values..], &Codec::of::<Head>())?;
    let head = head.downcast::<Head>().ok_or_else(cut)?;
    if head.record.key != *key {
        let why = "another rank sent another entry than it said".to_owned();
        return Err(ArchiveError::Damaged { why });
    }
    let mut next = 0;
    let mut results = Vec::with_capacity(head.results.len());
    for result in &head.results {
        let mut payload: Option<Arc<dyn Payload>> = None;
        if let Some((type_name, length)) = &result.value {
            let range = range(next, *length, values).ok_or_else(cut)?;
            next = range.end;
            payload = Some(Arc::new(ReceivedValue {
                bytes: Arc::clone(&bytes),
                range,
                type_name: type_name.clone(),
                has_files: result.has_files,
                wire: Arc::clone(wire),
            }));
        }
        results.push(StoredResult {
            name: result.name.clone(),
            tags: result.tags,
            payload,
        });
    }
    Ok(StoredEntry {
        record: Arc::clone(&head.record),
        results,
        // The rank that computed it archives it.
        archived: true,
    })
}

fn range(start: usize, length: u64, limit: usize) -> Option<Range<usize>> {
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= limit).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Unread;

    impl Wire for Unread {
        fn encode(&self, _: &ErasedValue, _: &Codec, _: &mut Vec<u8>) -> Result<(), ArchiveError> {
            unreachable!("nothing is written")
        }

        fn decode(&self, _: &[u8], _: &Codec) -> Result<ErasedValue, ArchiveError> {
            Ok(ErasedValue::new(0_u8))
        }
    }

    /// Input from a peer is not believed: a head longer than all, and one that is none.
    #[test]
    fn what_is_no_entry_is_an_error() {
        let wire: Arc<dyn Wire> = Arc::new(Unread);
        for head in [u64::MAX, 4, 3, 0] {
            let bytes = vec![0; 3];
            let packed = PackedEntry { head, bytes };
            let unpacked = read(&Key::from_bytes([1; 32]), packed, &wire);
            assert!(matches!(unpacked, Err(ArchiveError::Damaged { .. })));
        }
        assert_eq!(range(2, 3, 5), Some(2..5));
        for (start, length) in [(2, 4), (2, u64::MAX), (usize::MAX, 1)] {
            assert_eq!(range(start, length, 5), None);
        }
    }
}
