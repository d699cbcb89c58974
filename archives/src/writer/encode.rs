//! Encodes batches as frames.
//!
//! An entry's results and its intermediates are in separate frames, so that damage to one does not affect the
//! other. Each frame lists all results by name, even those with values elsewhere or not saved.

use std::any::TypeId;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use sde::archiver::{
    ArchiveError, Batch, Codec, Mark, SavedEntry, SavedResult, SavedScratch, Selection,
};
use sde::key::{BuildKeyHasher, Digest};
use sde::record::{AppId, Record, ValueSummary};
use sde::{Key, OutputFile};

use crate::catalog::Catalog;
use crate::catalog::contents::content_key;
use crate::catalog::index::Place;
use crate::cbor::metadata::to_bytes;
use crate::cbor::{self, Encoded};
use crate::format::class::{Class, Part};
use crate::format::frame::{FrameHeader, FrameKind};
use crate::format::id::now;
use crate::format::metadata::{
    Contents, InputKind, Provenance, ResultKind, ScratchBody, TypeInfo, ValuePlace, entry_rest,
    nanos,
};
use crate::format::stored_name::stored_name;
use crate::locks::lock;
use crate::retention::Retention;
use crate::writer::frame::{Body, EncodedProvenance, NewFrame, Payload, changed};

/// Values up to this size are in the body of their frame, and are read and checked with it. Entries of up to this many
/// bytes, with their output files, are copied from other stores.
pub(crate) const IN_BODY: u64 = 64 << 10;

/// The last encoded provenance of each app.
#[derive(Default)]
pub(crate) struct Provenances(Mutex<HashMap<AppId, LastOfApp, BuildKeyHasher>>);

struct LastOfApp {
    provenance: Provenance,
    /// The type of each result that has a value.
    types: Vec<Option<TypeId>>,
    encoded: Arc<EncodedProvenance>,
}

/// The most provenances remembered.
const MOST: usize = 1 << 12;

/// Encodes a batch.
pub(crate) struct BatchEncoder<'a> {
    catalog: &'a Catalog,
    provenances: &'a Provenances,
    retention: &'a Retention,
    copy_of: &'a CopyOf<'a>,
    /// The time when the batch is encoded.
    now: u64,
    /// The contents that are among the frames, or in the store.
    contents: HashSet<Key>,
    pub(crate) encoded: EncodedBatch,
}

/// A copy of a content that a save may refer to.
pub(crate) type CopyOf<'a> = dyn Fn(&Key) -> Option<Place> + 'a;

/// An encoded batch.
#[derive(Default)]
pub(crate) struct EncodedBatch {
    pub(crate) frames: Vec<NewFrame>,
    /// The errors of values that were left out.
    pub(crate) left_out: Vec<ArchiveError>,
    /// The contents left out of the frames, with the copy in the store.
    pub(crate) copies: Vec<(OutputFile, Place)>,
}

impl<'a> BatchEncoder<'a> {
    pub(crate) fn new(
        catalog: &'a Catalog,
        provenances: &'a Provenances,
        retention: &'a Retention,
        copy_of: &'a CopyOf<'a>,
    ) -> Self {
        Self {
            catalog,
            provenances,
            retention,
            copy_of,
            now: now(&*catalog.vfs),
            contents: HashSet::new(),
            encoded: EncodedBatch::default(),
        }
    }

    /// Encodes a batch, without the entries that `is_there` is true for.
    pub(crate) fn batch(&mut self, batch: &Batch, mut is_there: impl FnMut(&SavedEntry) -> bool) {
        for entry in batch.entries.iter().filter(|entry| !is_there(entry)) {
            let results: Vec<_> = entry.results().collect();
            for class in classes(entry.record(), &results, batch.selection) {
                self.entry(entry.record(), &results, class);
            }
        }
        batch.scratch.iter().for_each(|one| self.scratch(one));
        batch.marks.iter().for_each(|mark| self.mark(mark));
    }

    fn add(&mut self, frame: Result<NewFrame, String>) {
        match frame {
            Ok(frame) => self.encoded.frames.push(frame),
            Err(why) => self.encoded.left_out.push(ArchiveError::Other(format!(
                "an entry could not be saved, its metadata has no bytes: {why}"
            ))),
        }
    }

    fn entry(&mut self, record: &Record, results: &[SavedResult<'_>], class: Class) {
        let mut values = Values::default();
        let mut places = Vec::with_capacity(results.len());
        let mut contents = Contents::new();
        for result in results {
            let here = Class::of(result.tags) == Some(class);
            let value = result.value.filter(|_| here);
            let name = || name_of(record, result);
            let mut place = None;
            if let Some((value, codec)) = value {
                let (encoded, files) = OutputFile::shown_in(|| cbor::encode(value, &codec));
                if self.save_contents(&files, name) {
                    place = values.add(encoded, &codec, &mut self.encoded.left_out, name);
                    if !files.is_empty() {
                        contents.resize(results.len(), Vec::new());
                        contents[places.len()] = files.iter().map(OutputFile::digest).collect();
                    }
                }
            }
            places.push(place);
        }
        let bytes = places.iter().flatten().map(ValuePlace::length).sum();
        let is_kept = !contents.is_empty() || record.failure.is_some();
        if is_kept || self.retention.accepts(&record.app, class, bytes) {
            self.add(self.entry_frame((record, results), class, (&places, &contents), values));
        }
    }

    /// Adds the contents of output files that the store lacks. `false`, with an error noted, if a file was changed
    /// or deleted: then the result is not saved.
    fn save_contents(&mut self, files: &[OutputFile], name: impl Fn() -> String) -> bool {
        for file in files {
            let key = content_key(&file.digest());
            if self.contents.contains(&key) {
                continue;
            }
            if let Some(copy) = (self.copy_of)(&key) {
                self.encoded.copies.push((file.clone(), copy));
                self.contents.insert(key);
                continue;
            }
            if !file.is_unchanged().unwrap_or(false) {
                let why = format!("{} can't be saved: {}", name(), changed(file));
                self.encoded.left_out.push(ArchiveError::Other(why));
                return false;
            }
            self.add(content_frame(self.catalog, file));
            self.contents.insert(key);
        }
        true
    }

    fn entry_frame(
        &self,
        (record, results): (&Record, &[SavedResult<'_>]),
        class: Class,
        (places, contents): (&[Option<ValuePlace>], &Contents),
        values: Values,
    ) -> Result<NewFrame, String> {
        let saved_at = self.catalog.clock.stamp_at(self.now);
        let provenance = self.provenances.of(record, results)?;
        let mut rest = Vec::with_capacity(64 + values.short.len());
        let elements = entry_rest(&mut rest, record, saved_at, places, contents)?;
        rest.extend_from_slice(&values.short);
        let header = FrameHeader::new(FrameKind::Entry, class, record.key, saved_at);
        let body = Body::Entry {
            elements,
            provenance,
            rest,
        };
        NewFrame::with_payload(Part::Entries, header, body, Payload::Encoded(values.long))
    }

    fn scratch(&mut self, scratch: &SavedScratch) {
        let mut values = Values::default();
        let name = || format!("the scratch of {} [{}]", scratch.app, scratch.key.short());
        let encoded = cbor::encode(&scratch.value, &scratch.codec);
        let place = values.add(encoded, &scratch.codec, &mut self.encoded.left_out, name);
        let Some(value) = place else { return };
        let body = to_bytes(&ScratchBody {
            app: Arc::clone(&scratch.app),
            stored: type_info(&scratch.codec),
            value,
            took: nanos(scratch.took),
        });
        let frame = body.and_then(|mut body| {
            body.extend_from_slice(&values.short);
            let header = (FrameKind::Scratch, Class::Scratch, scratch.key);
            let header = FrameHeader::new(header.0, header.1, header.2, self.catalog.clock.stamp());
            let payload = Payload::Encoded(values.long);
            NewFrame::with_payload(Part::Scratch, header, Body::Bytes(body), payload)
        });
        self.add(frame);
    }

    fn mark(&mut self, mark: &Mark) {
        let saved_at = self.catalog.clock.stamp();
        let header = FrameHeader::new(FrameKind::Mark, Class::Result, mark.key, saved_at);
        let frame = to_bytes(mark)
            .and_then(|body| NewFrame::new(Part::Entries, header, Body::Bytes(body)))
            .map(|frame| frame.with_mark(mark.clone()));
        self.add(frame);
    }
}

/// The frame with the content of an output file.
pub(crate) fn content_frame(catalog: &Catalog, file: &OutputFile) -> Result<NewFrame, String> {
    let (key, saved_at) = (content_key(&file.digest()), catalog.clock.stamp());
    let header = FrameHeader::new(FrameKind::Content, Class::Result, key, saved_at);
    let (body, payload) = (Body::Bytes(Vec::new()), Payload::File(file.clone()));
    NewFrame::with_payload(Part::Entries, header, body, payload)
}

impl Provenances {
    /// The encoded provenance of an entry. It is compared with the last one of its app, which is cheaper than
    /// hashing.
    fn of(
        &self,
        record: &Record,
        results: &[SavedResult<'_>],
    ) -> Result<Arc<EncodedProvenance>, String> {
        let found = lock(&self.0)
            .get(&record.id)
            .filter(|last| last.is_of(record, results))
            .map(|last| Arc::clone(&last.encoded));
        if let Some(encoded) = found {
            return Ok(encoded);
        }
        // The lock is not held here, since the schema of a type is learned by running its own code.
        let provenance = provenance(record, results);
        let encoded = EncodedProvenance::new(provenance.bytes()?);
        let mut known = lock(&self.0);
        if known.len() >= MOST {
            known.clear();
        }
        let last = LastOfApp {
            provenance,
            types: results.iter().map(type_id).collect(),
            encoded: Arc::clone(&encoded),
        };
        known.insert(record.id, last);
        Ok(encoded)
    }
}

impl LastOfApp {
    fn is_of(&self, record: &Record, results: &[SavedResult<'_>]) -> bool {
        let Self {
            provenance, types, ..
        } = self;
        let same_result = |(kind, result): (&ResultKind, &SavedResult<'_>)| {
            *kind.name == *result.name && kind.tags == result.tags
        };
        provenance.process == record.run.process
            && (Arc::ptr_eq(provenance.shared(), &record.provenance)
                || *provenance.shared() == record.provenance)
            && are_of(&provenance.inputs, &record.inputs)
            && provenance.results.len() == results.len()
            && provenance.results.iter().zip(results).all(same_result)
            && types.iter().copied().eq(results.iter().map(type_id))
    }
}

/// The type of a result's value, which determines name and schema.
fn type_id(result: &SavedResult<'_>) -> Option<TypeId> {
    result.value.map(|(_, codec)| codec.type_id())
}

fn provenance(record: &Record, results: &[SavedResult<'_>]) -> Provenance {
    let result = |result: &SavedResult<'_>| ResultKind {
        name: Arc::from(result.name),
        tags: result.tags,
        stored: result.value.map(|(_, codec)| type_info(&codec)),
    };
    Provenance {
        app: Arc::clone(&record.app),
        code: record.code.clone(),
        id: record.id,
        setup: Arc::clone(&record.setup),
        dependencies: record.dependencies.clone(),
        process: record.run.process,
        host: Arc::clone(&record.host),
        user: Arc::clone(&record.user),
        target: Arc::clone(&record.target),
        job: Arc::clone(&record.job),
        inputs: record.inputs.iter().map(kind_of).collect(),
        results: results.iter().map(result).collect(),
        shared: Arc::clone(&record.provenance).into(),
    }
}

fn are_of(kinds: &[InputKind], inputs: &[ValueSummary]) -> bool {
    let is_of = |(kind, input): (&InputKind, &ValueSummary)| {
        kind.name == input.name
            && kind.scalar.as_deref() == type_of(input)
            && are_of(&kind.fields, &input.fields)
    };
    kinds.len() == inputs.len() && kinds.iter().zip(inputs).all(is_of)
}

fn kind_of(input: &ValueSummary) -> InputKind {
    InputKind {
        name: input.name.clone(),
        scalar: type_of(input).map(str::to_owned),
        fields: input.fields.iter().map(kind_of).collect(),
    }
}

fn type_of(input: &ValueSummary) -> Option<&'static str> {
    input.scalar.as_ref().map(sde::key::Scalar::type_name)
}

fn type_info(codec: &Codec) -> TypeInfo {
    TypeInfo {
        name: Arc::from(stored_name(codec.type_name())),
        schema: cbor::schema(codec),
    }
}

/// The classes of frames for an entry. An archive has the record of every entry, even without values, and no failure: one
/// is given up like an intermediate.
fn classes(
    record: &Record,
    results: &[SavedResult<'_>],
    selection: Selection,
) -> impl Iterator<Item = Class> + use<> {
    let has = |class: Class| {
        let of_class = |result: &SavedResult<'_>| {
            Class::of(result.tags) == Some(class) && result.value.is_some()
        };
        results.iter().any(of_class)
    };
    let has_failed = record.failure.is_some();
    let intermediate =
        selection == Selection::Checkpoint && (has_failed || has(Class::Intermediate));
    let result = has(Class::Result) || !intermediate && !has_failed;
    let classes = [
        result.then_some(Class::Result),
        intermediate.then_some(Class::Intermediate),
    ];
    classes.into_iter().flatten()
}

fn name_of(record: &Record, result: &SavedResult<'_>) -> String {
    let (app, key) = (&record.app, record.key.short());
    format!("result {:?} of {app} [{key}]", result.name)
}

/// The values of one frame.
#[derive(Default)]
struct Values {
    /// The bytes of the short values.
    short: Vec<u8>,
    long: Vec<Encoded>,
}

impl Values {
    /// Adds an encoded value; `None`, with an error noted, if encoding failed.
    fn add(
        &mut self,
        encoded: Result<Encoded, String>,
        codec: &Codec,
        left_out: &mut Vec<ArchiveError>,
        name: impl FnOnce() -> String,
    ) -> Option<ValuePlace> {
        let bytes = match encoded {
            Ok(bytes) => bytes,
            Err(why) => {
                left_out.push(ArchiveError::encode(name(), codec.type_name(), why));
                return None;
            }
        };
        let length = bytes.length();
        Some(match length <= IN_BODY {
            true => {
                bytes.append_to(&mut self.short);
                ValuePlace::Body(length)
            }
            false => {
                let digest = Digest::from_bytes(bytes.digest());
                self.long.push(bytes);
                ValuePlace::Payload(length, digest)
            }
        })
    }
}
