//! From a batch to frames.
//!
//! The results of one entry go to the class of their tags, each class with a record of
//! its own: whoever has one class only still knows whose results they are. A frame
//! lists all results by name, also those whose values are elsewhere or not saved.

use sde::key::Digest;
use sde::{
    ArchiveError, Batch, Codec, ErasedValue, Mark, SavedEntry, SavedResult, SavedScratch, Selection,
};

use crate::ahead::Ahead;
use crate::cbor::{self, Encoded};
use crate::class::Class;
use crate::frame::NewFrame;
use crate::id::Clock;
use crate::metadata::{
    EntryMetadata, PayloadMetadata, ResultMetadata, ScratchMetadata, stored_name,
};
use crate::segment::FrameKind;

/// How much is encoded at most before it is handed on to be written.
const PART: u64 = 32 << 20;

/// What turns a batch into frames, and hands them on before they fill the memory.
pub(crate) struct Framer<'scope, 'env: 'scope> {
    clock: &'env Clock,
    save: Ahead<'scope, 'env>,
    frames: Vec<NewFrame>,
    bytes: u64,
    part: u64,
    /// Why each value was left out that has no bytes.
    pub(crate) left_out: Vec<ArchiveError>,
}

impl<'scope, 'env> Framer<'scope, 'env> {
    /// Parts are as long as a segment, if that is not long.
    pub(crate) fn new(clock: &'env Clock, save: Ahead<'scope, 'env>, segment_size: u64) -> Self {
        Self {
            part: PART.min(segment_size),
            clock,
            save,
            frames: Vec::new(),
            bytes: 0,
            left_out: Vec::new(),
        }
    }

    /// All of a batch, but for the entries that `lacks` says a class has already.
    pub(crate) fn batch(
        &mut self,
        batch: &Batch,
        lacks: impl Fn(Class, &SavedEntry) -> bool,
    ) -> Result<(), ArchiveError> {
        for entry in &batch.entries {
            for class in classes(entry, batch.selection) {
                if lacks(class, entry) {
                    self.entry(entry, class)?;
                }
            }
        }
        for scratch in &batch.scratch {
            self.scratch(scratch)?;
        }
        for mark in &batch.marks {
            self.mark(mark)?;
        }
        Ok(())
    }

    /// Writes what is left and makes all of it durable.
    pub(crate) fn finish(
        self,
    ) -> Result<(Vec<crate::frame::Written>, Vec<ArchiveError>), ArchiveError> {
        let written = self.save.finish(self.frames)?;
        Ok((written, self.left_out))
    }

    fn add(&mut self, frame: Result<NewFrame, String>) -> Result<(), ArchiveError> {
        match frame {
            Ok(frame) => {
                self.bytes += frame.bytes();
                self.frames.push(frame);
            }
            Err(why) => self.left_out.push(ArchiveError::Other(format!(
                "an entry could not be saved, its metadata has no bytes: {why}"
            ))),
        }
        if self.bytes >= self.part {
            self.bytes = 0;
            self.save.part(std::mem::take(&mut self.frames))?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &SavedEntry, class: Class) -> Result<(), ArchiveError> {
        let mut payloads = Payloads::default();
        let mut results = Vec::with_capacity(entry.results.len());
        for result in &entry.results {
            let here = Class::of(result.tags) == Some(class);
            let value = result.value.as_ref().filter(|_| here);
            let payload = value.and_then(|(value, codec)| {
                let name = || name_of(entry, result);
                payloads.add(value, codec, &mut self.left_out, name)
            });
            results.push(ResultMetadata {
                name: result.name.to_string(),
                tags: result.tags,
                payload,
            });
        }
        let metadata = cbor::to_bytes(&EntryMetadata {
            record: &entry.record,
            results,
        });
        let frame = metadata
            .and_then(|metadata| NewFrame::new(class, FrameKind::Entry, metadata, payloads.bytes))
            .map(|frame| frame.of(entry.record.key, self.clock.stamp()));
        self.add(frame)
    }

    fn scratch(&mut self, scratch: &SavedScratch) -> Result<(), ArchiveError> {
        let mut payloads = Payloads::default();
        let name = || format!("the scratch of {} [{}]", scratch.app, scratch.key.short());
        let payload = payloads.add(&scratch.value, &scratch.codec, &mut self.left_out, name);
        let Some(payload) = payload else {
            return Ok(());
        };
        let metadata = cbor::to_bytes(&ScratchMetadata {
            app: scratch.app.to_string(),
            payload,
        });
        let frame = metadata
            .and_then(|metadata| {
                NewFrame::new(Class::Scratch, FrameKind::Scratch, metadata, payloads.bytes)
            })
            .map(|frame| frame.of(scratch.key, self.clock.stamp()));
        self.add(frame)
    }

    /// Marks lie with the results: an archive that is copied alone must know what is not
    /// to be used.
    fn mark(&mut self, mark: &Mark) -> Result<(), ArchiveError> {
        let frame = cbor::to_bytes(mark)
            .and_then(|metadata| {
                NewFrame::new(Class::Result, FrameKind::Mark, metadata, Vec::new())
            })
            .map(|frame| {
                frame
                    .of(mark.key, self.clock.stamp())
                    .with_mark(mark.clone())
            });
        self.add(frame)
    }
}

/// The classes that an entry has something for. An archive has the record of every
/// entry, also of one that has no values in it.
pub(crate) fn classes(
    entry: &SavedEntry,
    selection: Selection,
) -> impl Iterator<Item = Class> + use<> {
    let has = |class: Class| {
        let of_class =
            |result: &SavedResult| Class::of(result.tags) == Some(class) && result.value.is_some();
        entry.results.iter().any(of_class)
    };
    let result = has(Class::Result) || selection == Selection::Archive;
    let intermediate = selection == Selection::Checkpoint && has(Class::Intermediate);
    let bare = selection == Selection::Checkpoint && !result && !intermediate;
    let classes = [
        (result || bare).then_some(Class::Result),
        intermediate.then_some(Class::Intermediate),
    ];
    classes.into_iter().flatten()
}

fn name_of(entry: &SavedEntry, result: &SavedResult) -> String {
    let record = &entry.record;
    let (app, key) = (&record.app, record.key.short());
    format!("result {:?} of {app} [{key}]", result.name)
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
            type_name: stored_name(codec.type_name()).into_owned(),
            schema: cbor::schema(codec),
        })
    }
}
