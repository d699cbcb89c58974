//! An entry as bytes, for other ranks.
//!
//! First its length and that of its head, then the values one after another, then the head (record,
//! names, tags, lengths). The head comes last so that values go straight to where they are sent
//! from: their lengths are known when they have been written.

use std::ops::Range;
use std::sync::Arc;

use super::received::{ReceivedEntry, ReceivedResult, ReceivedValue};
use crate::cache::{Entry, Record};
use crate::error::ArchiveError;
use crate::result_map::{Codec, Content, ErasedValue, Tags, Wire};

/// What the two lengths take.
pub(super) const LENGTHS: usize = 16;

#[derive(serde::Serialize, serde::Deserialize)]
struct Head {
    record: Record,
    results: Vec<HeadOfResult>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct HeadOfResult {
    name: String,
    tags: Tags,
    /// Its type and length, if it is sent.
    value: Option<(String, u64)>,
}

/// Appends an entry. Values that can't be sent (`no_cache` ones, those without a codec, and
/// those of which `leave` says so) are named only.
pub(crate) fn pack(
    entry: &Entry,
    wire: &dyn Wire,
    leave: impl Fn(&str, Tags) -> bool,
    to: &mut Vec<u8>,
) -> Result<(), ArchiveError> {
    let before = to.len();
    to.extend([0; LENGTHS]);
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
        });
    }
    let head = Head {
        record: entry.record.clone(),
        results,
    };
    let start = to.len();
    wire.encode(&ErasedValue::new(head), &Codec::of::<Head>(), to)?;
    let lengths = [to.len() - before - LENGTHS, to.len() - start];
    let lengths = lengths.map(|length| (length as u64).to_le_bytes());
    to[before..before + LENGTHS].copy_from_slice(lengths.as_flattened());
    Ok(())
}

/// Reads the entry at a place; gives also where the next one begins.
pub(crate) fn unpack(
    bytes: &Arc<Vec<u8>>,
    at: usize,
    wire: &Arc<dyn Wire>,
) -> Result<(ReceivedEntry, usize), ArchiveError> {
    let cut = || ArchiveError::Damaged {
        why: "what another rank sent was cut short".to_owned(),
    };
    let number = |at: usize| -> Result<usize, ArchiveError> {
        let number = bytes.get(at..at + 8).and_then(|b| b.first_chunk());
        let number = number.copied().map(u64::from_le_bytes).ok_or_else(cut)?;
        usize::try_from(number).map_err(|_| cut())
    };
    let (all, head_length) = (number(at)?, number(at + 8)?);
    let start = at + LENGTHS;
    let end = start.checked_add(all).filter(|end| *end <= bytes.len());
    let end = end.ok_or_else(cut)?;
    let head = end.checked_sub(head_length).ok_or_else(cut)?;
    let head = bytes.get(head.max(start)..end).ok_or_else(cut)?;
    let head = wire.decode(head, &Codec::of::<Head>())?;
    let head = head.downcast::<Head>().ok_or_else(cut)?;
    let mut next = start;
    let mut results = Vec::with_capacity(head.results.len());
    for result in &head.results {
        let value = match &result.value {
            Some((type_name, length)) => {
                let range = range(next, *length, end).ok_or_else(cut)?;
                next = range.end;
                Some(Arc::new(ReceivedValue {
                    bytes: Arc::clone(bytes),
                    range,
                    type_name: type_name.clone(),
                    wire: Arc::clone(wire),
                }))
            }
            None => None,
        };
        results.push(ReceivedResult {
            name: result.name.clone(),
            tags: result.tags,
            value,
        });
    }
    let record = head.record.clone();
    Ok((ReceivedEntry { record, results }, end))
}

fn range(start: usize, length: u64, limit: usize) -> Option<Range<usize>> {
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= limit).then_some(start..end)
}
