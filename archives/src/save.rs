//! From a batch to frames.

use sde::key::Digest;
use sde::{ArchiveError, Batch, Codec, ErasedValue, Mark, SavedEntry, SavedScratch};

use crate::cbor::{self, Encoded};
use crate::id::Clock;
use crate::index::{EntryAt, Item};
use crate::metadata::{
    EntryMetadata, PayloadMetadata, RecordHead, ResultMetadata, ScratchMetadata,
};
use crate::segment::Kind;
use crate::writer::Appender;

/// Appends all of a batch. A value that has no bytes is left out and told of.
pub(crate) fn batch(
    batch: &Batch,
    to: &mut Appender<'_>,
    clock: &Clock,
    left_out: &mut Vec<ArchiveError>,
) -> Result<(), ArchiveError> {
    for one in &batch.entries {
        entry(one, to, clock, left_out)?;
    }
    for one in &batch.scratch {
        scratch(one, to, clock, left_out)?;
    }
    marks(&batch.marks, to, left_out)
}

/// Appends marks.
pub(crate) fn marks(
    marks: &[Mark],
    to: &mut Appender<'_>,
    left_out: &mut Vec<ArchiveError>,
) -> Result<(), ArchiveError> {
    for mark in marks {
        if let Some(bytes) = metadata(mark, left_out) {
            let item = Item::Mark(mark.clone());
            to.frame(Kind::Mark, &bytes, &[], |_| item)?;
        }
    }
    Ok(())
}

fn entry(
    entry: &SavedEntry,
    to: &mut Appender<'_>,
    clock: &Clock,
    left_out: &mut Vec<ArchiveError>,
) -> Result<(), ArchiveError> {
    let mut payloads = Payloads::default();
    let mut results = Vec::with_capacity(entry.results.len());
    for result in &entry.results {
        let payload = result.value.as_ref().and_then(|(value, codec)| {
            payloads.add(value, codec, left_out, || {
                let record = &entry.record;
                format!(
                    "result {:?} of {} [{}]",
                    result.name,
                    record.app,
                    record.key.short()
                )
            })
        });
        results.push(ResultMetadata {
            name: result.name.clone(),
            tags: result.tags,
            payload,
        });
    }
    let entry_metadata = EntryMetadata {
        saved_at: clock.stamp(),
        record: &entry.record,
        results,
    };
    let Some(bytes) = metadata(&entry_metadata, left_out) else {
        return Ok(());
    };
    to.frame(Kind::Entry, &bytes, &payloads.bytes, |place| {
        let head = RecordHead::from(&entry.record);
        Item::Entry(head.key, EntryAt::new(place, &head, &entry_metadata))
    })
}

fn scratch(
    scratch: &SavedScratch,
    to: &mut Appender<'_>,
    clock: &Clock,
    left_out: &mut Vec<ArchiveError>,
) -> Result<(), ArchiveError> {
    let mut payloads = Payloads::default();
    let payload = payloads.add(&scratch.value, &scratch.codec, left_out, || {
        format!("the scratch of {} [{}]", scratch.app, scratch.key.short())
    });
    let Some(payload) = payload else {
        return Ok(());
    };
    let scratch = ScratchMetadata {
        saved_at: clock.stamp(),
        app: scratch.app.to_string(),
        key: scratch.key,
        payload,
    };
    let Some(bytes) = metadata(&scratch, left_out) else {
        return Ok(());
    };
    to.frame(Kind::Scratch, &bytes, &payloads.bytes, |place| {
        Item::scratch(place, &scratch)
    })
}

/// The bytes of metadata; `None`, and told of, if there are none (a time before
/// 1970 is enough). That must not keep all else from being saved.
fn metadata<T: serde::Serialize>(
    metadata: &T,
    left_out: &mut Vec<ArchiveError>,
) -> Option<Vec<u8>> {
    let why = match cbor::to_bytes(metadata) {
        Ok(bytes) if u32::try_from(bytes.len()).is_ok() => return Some(bytes),
        Ok(bytes) => format!("it has {} bytes", bytes.len()),
        Err(why) => why,
    };
    left_out.push(ArchiveError::Other(format!(
        "an entry could not be saved, its metadata has no bytes: {why}"
    )));
    None
}

/// The payloads of one frame.
#[derive(Default)]
struct Payloads {
    bytes: Vec<Encoded>,
    length: u64,
}

impl Payloads {
    /// Encodes a value; `None`, and told of, if that can't be done.
    fn add(
        &mut self,
        value: &ErasedValue,
        codec: &Codec,
        left_out: &mut Vec<ArchiveError>,
        name: impl FnOnce() -> String,
    ) -> Option<PayloadMetadata> {
        let bytes = match cbor::encode(value, codec) {
            Ok(bytes) => bytes,
            Err(why) => {
                left_out.push(ArchiveError::Encode {
                    name: name(),
                    type_name: codec.type_name(),
                    why,
                });
                return None;
            }
        };
        let at = self.length;
        let length = bytes.length();
        let checksum = Digest::from_bytes(bytes.digest());
        self.length += length;
        self.bytes.push(bytes);
        Some(PayloadMetadata {
            at,
            length,
            checksum,
            type_name: codec.type_name().to_owned(),
        })
    }
}
