//! Reads single frames, and the values in them.

use std::sync::Arc;
use std::time::Duration;

use sde::Key;
use sde::archiver::{ArchiveError, StoredEntry, StoredResult};
use sde::record::Record;

use super::error::ReadError;
use super::payload::{PayloadFacts, StoredPayload, StoredValue, ValueSource};
use crate::catalog::Catalog;
use crate::catalog::index::Place;
use crate::catalog::scan::{self, FoundFrame};
use crate::format::class::Class;
use crate::format::frame::{self, FrameHeader, FrameKind};
use crate::format::index_block::{Rows, prefix};
use crate::format::metadata::{
    EntryBody, Provenance, ProvenanceId, ScratchBody, TypeInfo, ValuePlace, inline_provenance,
    provenance_key,
};
use crate::format::precedence::Precedence;
use crate::format::segment::{SEGMENT_HEADER, Segment, checksum};
use crate::locks::lock;
use crate::vfs::{Vfs, VfsFile};

/// Values up to this size are checked when their entry is found, so that a damaged one counts as missing. Larger
/// ones are checked when they are decoded.
pub(crate) const CHECKED_WHEN_FOUND: u64 = 16 << 20;

/// The number of provenances kept in memory.
const PROVENANCES: usize = 1 << 12;

/// A frame that is whole, apart from its payload, which is not checked.
pub(crate) struct Frame<'a> {
    pub(crate) vfs: &'a Arc<dyn Vfs>,
    pub(crate) segment: &'a Arc<Segment>,
    pub(crate) at: u64,
    pub(crate) header: FrameHeader,
    pub(crate) body: Vec<u8>,
}

impl<'a> Frame<'a> {
    /// Reads a frame of this kind at a place.
    pub(crate) fn read(
        vfs: &'a Arc<dyn Vfs>,
        place: &'a Place,
        kind: FrameKind,
    ) -> Result<Self, ReadError> {
        let segment = &place.segment;
        let file = vfs.open(&segment.path);
        let file = file.map_err(|error| ReadError::io(segment, error))?;
        Self::read_from(&*file, (vfs, segment), place.at, kind)
    }

    /// Reads a frame of this kind at a place of an open file.
    pub(crate) fn read_from(
        file: &dyn VfsFile,
        (vfs, segment): (&'a Arc<dyn Vfs>, &'a Arc<Segment>),
        at: u64,
        kind: FrameKind,
    ) -> Result<Self, ReadError> {
        let found = frame::read_at(file, segment, at);
        let found = found.map_err(|error| ReadError::io(segment, error))?;
        let found = found.filter(|(header, _)| header.kind() == Some(kind));
        let (header, body) = found.ok_or_else(|| {
            let why = "its frame is damaged, or the file was cut short";
            ReadError::Damaged(why.to_owned())
        })?;
        Ok(Self {
            vfs,
            segment,
            at,
            header,
            body,
        })
    }

    pub(super) fn of_key(self, key: &Key) -> Result<Self, ReadError> {
        match self.header.key == *key {
            true => Ok(self),
            false => Err(ReadError::OtherKey),
        }
    }

    pub(crate) fn content(&self) -> &[u8] {
        self.header.content(&self.body)
    }

    /// Its length with the payload.
    pub(crate) fn bytes(&self) -> u64 {
        self.payload().end - self.at
    }

    /// The range of its payload in the file.
    pub(crate) fn payload(&self) -> std::ops::Range<u64> {
        let start = self.at.saturating_add(self.header.length());
        let length = self.header.payload(&self.body).unwrap_or(0);
        start..start.saturating_add(length)
    }

    /// The sources of its values, in the order of `places`. Short values end the body.
    pub(crate) fn sources<'p>(
        &self,
        places: impl IntoIterator<Item = Option<&'p ValuePlace>> + Clone,
    ) -> Result<Vec<Option<ValueSource>>, ReadError> {
        let outside = || ReadError::Damaged("a value lies outside of its frame".to_owned());
        let short = places
            .clone()
            .into_iter()
            .flatten()
            .map(|place| match place {
                ValuePlace::Body(length) => *length,
                ValuePlace::Payload(..) => 0,
            });
        let short = short.fold(0, u64::saturating_add);
        let content = self.content().len() as u64;
        let mut in_body = content.checked_sub(short).ok_or_else(outside)?;
        in_body += self.body.len() as u64 - content;
        let payload = self.payload();
        let mut in_payload = payload.start;
        let mut source = |place: &ValuePlace| {
            Ok(match *place {
                ValuePlace::Body(length) => {
                    let at = in_body;
                    in_body += length;
                    ValueSource::Body {
                        frame: self.at,
                        at,
                        length,
                    }
                }
                ValuePlace::Payload(length, digest) => {
                    let at = in_payload;
                    in_payload = at.saturating_add(length);
                    if in_payload > payload.end {
                        return Err(outside());
                    }
                    ValueSource::Payload { at, length, digest }
                }
            })
        };
        let places = places.into_iter();
        places
            .map(|place| place.map(&mut source).transpose())
            .collect()
    }

    /// One of its values.
    pub(crate) fn value(&self, source: ValueSource, stored: &TypeInfo) -> StoredValue {
        StoredValue::new((self.vfs, self.segment), source, stored, &self.body)
    }

    /// A value for the engine, checked if it has at most `checked` bytes; `None`, with a warning, if it is known to
    /// be damaged. An error if the file is gone.
    fn sound(
        &self,
        payload: StoredValue,
        of: String,
        facts: PayloadFacts,
        checked: u64,
    ) -> Result<Option<Arc<dyn sde::archiver::Payload>>, ReadError> {
        let sound = match self.segment.is_damaged(payload.place().start) {
            true => Err(ReadError::Damaged(
                "it was found to be damaged before".to_owned(),
            )),
            false if payload.length() <= checked => payload.verify(|_| ()),
            false => Ok(()),
        };
        match sound {
            Ok(()) => Ok(Some(Arc::new(StoredPayload::new(payload, facts, of)))),
            Err(ReadError::Gone) => Err(ReadError::Gone),
            Err(error) => {
                let error = ArchiveError::from(error);
                let path = self.segment.path.display();
                sde::warning!("{of} in {path} can't be used: {error}");
                Ok(None)
            }
        }
    }
}

/// An entry's frame, with its decoded body.
pub(crate) struct EntryFrame<'a> {
    pub(crate) frame: Frame<'a>,
    pub(crate) body: EntryBody,
    pub(crate) provenance: Arc<Provenance>,
}

impl<'a> EntryFrame<'a> {
    pub(crate) fn read(catalog: &'a Catalog, place: &'a Place) -> Result<Self, ReadError> {
        let frame = Frame::read(&catalog.vfs, place, FrameKind::Entry)?;
        let segment = &place.segment;
        Self::of(frame, |id| catalog.provenance(id, segment))
    }

    pub(crate) fn of(
        frame: Frame<'a>,
        shared: impl FnOnce(&ProvenanceId) -> Result<Arc<Provenance>, ReadError>,
    ) -> Result<Self, ReadError> {
        let cannot = |why| ReadError::Damaged(format!("its body can't be read: {why}"));
        let (provenance, body) = EntryBody::read(frame.content()).map_err(cannot)?;
        let provenance = match provenance {
            Err(bytes) => Arc::new(Provenance::read(bytes).map_err(cannot)?),
            Ok(id) => shared(&id)?,
        };
        if body.values.len() != provenance.results.len() {
            let why = "its values are not those of its provenance";
            return Err(ReadError::Damaged(why.to_owned()));
        }
        Ok(Self {
            frame,
            body,
            provenance,
        })
    }

    pub(crate) fn record(&self) -> Record {
        let header = &self.frame.header;
        self.body
            .record(&self.provenance, header.key, header.saved_at)
    }

    pub(crate) fn precedence(&self) -> Precedence {
        let saved_at = self.frame.header.saved_at;
        let made = (self.body.run(&self.provenance), self.body.made_at(saved_at));
        let results = self.provenance.results.iter().zip(&self.body.values);
        let results = results.map(|(kind, value)| (kind.tags, value.is_some()));
        Precedence::of(made, saved_at, results)
    }

    /// Whether it has all results that belong in an archive.
    fn is_archive(&self) -> bool {
        let mut results = self.provenance.results.iter().zip(&self.body.values);
        self.frame.header.class() == Class::Result
            && results.all(|(kind, value)| value.is_some() || !kind.tags.is_archived())
    }

    /// For each result its value, if it has one.
    pub(crate) fn values(&self) -> Result<Vec<Option<StoredValue>>, ReadError> {
        let places = self.body.values.iter().map(Option::as_ref);
        let sources = self.frame.sources(places)?.into_iter();
        let with_type = sources.zip(&self.provenance.results);
        Ok(with_type
            .map(|(source, kind)| Some(self.frame.value(source?, kind.stored.as_ref()?)))
            .collect())
    }
}

impl Catalog {
    /// A provenance by its digest, for an entry in this segment.
    pub(crate) fn provenance(
        &self,
        id: &ProvenanceId,
        segment: &Segment,
    ) -> Result<Arc<Provenance>, ReadError> {
        if let Some(known) = self.remembered(id) {
            return Ok(known);
        }
        let read = match self.provenance_bytes(id) {
            Err(error @ ReadError::Damaged(_)) => {
                return self.inline_provenance(id, segment).ok_or(error);
            }
            bytes => Provenance::read(&bytes?).map_err(ReadError::Damaged),
        };
        Ok(self.remember(*id, read?))
    }

    pub(crate) fn remembered(&self, id: &ProvenanceId) -> Option<Arc<Provenance>> {
        lock(&self.provenances).get(id).cloned()
    }

    pub(crate) fn remember(&self, id: ProvenanceId, provenance: Provenance) -> Arc<Provenance> {
        let provenance = Arc::new(provenance);
        let mut known = lock(&self.provenances);
        if known.len() >= PROVENANCES {
            known.clear();
        }
        known.insert(id, Arc::clone(&provenance));
        provenance
    }

    /// Reads a segment, once, for provenances that its entries have in their own bodies.
    fn inline_provenance(&self, id: &ProvenanceId, segment: &Segment) -> Option<Arc<Provenance>> {
        if !lock(&self.read_for_provenances).insert(segment.id) {
            return None;
        }
        let mut found = None;
        let each = |frame: &FoundFrame, body: &[u8]| {
            let content = frame.header.content(body);
            let is_entry = frame.header.kind() == Some(FrameKind::Entry);
            let bytes = inline_provenance(content).filter(|_| is_entry);
            if let Some((bytes, read)) = bytes.and_then(|it| Some((it, Provenance::read(it).ok()?)))
            {
                let own = checksum(bytes);
                let remembered = self.remember(own, read);
                found = found.take().or((own == *id).then_some(remembered));
            }
            Ok(())
        };
        let from = SEGMENT_HEADER as u64;
        // A segment that can't be read yields none.
        let _ = scan::scan_with(&*self.vfs, segment, from, each);
        found
    }

    /// The bytes of a provenance, from any whole copy.
    pub(crate) fn provenance_bytes(&self, id: &ProvenanceId) -> Result<Vec<u8>, ReadError> {
        let mut failed = None;
        for copy in self.known(|index| index.provenances(&provenance_key(id))) {
            let frame = Frame::read(&self.vfs, &copy.place, FrameKind::Provenance);
            match frame {
                Ok(frame) if checksum(frame.content()) == *id => {
                    return Ok(frame.content().to_vec());
                }
                Ok(_) => {}
                Err(ReadError::Gone) => failed = Some(ReadError::Gone),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(match failed {
            Some(error @ (ReadError::Gone | ReadError::Io(_))) => error,
            _ => ReadError::Damaged("what says how it was made is missing".to_owned()),
        })
    }
}

/// A provenance from a whole copy in a segment with these rows.
pub(crate) fn provenance_of(
    file: &dyn VfsFile,
    segment: &Segment,
    rows: &Rows,
    id: &ProvenanceId,
) -> Option<Provenance> {
    let of_key = rows.find(prefix(&provenance_key(id)));
    let mut copies = of_key.filter(|row| row.kind() == Some(FrameKind::Provenance));
    copies.find_map(|row| {
        let (header, body) = frame::read_at(file, segment, row.at()).ok()??;
        let content = header.content(&body);
        let is_it = checksum(content) == *id;
        Provenance::read(content).ok().filter(|_| is_it)
    })
}

/// An entry for the engine, and its precedence. Results found damaged get no payload, with a warning.
pub(crate) fn entry(
    catalog: &Catalog,
    place: &Place,
    key: &Key,
) -> Result<(Precedence, StoredEntry), ReadError> {
    let frame = Frame::read(&catalog.vfs, place, FrameKind::Entry)?.of_key(key)?;
    let entry = EntryFrame::of(frame, |id| catalog.provenance(id, &place.segment))?;
    let mut precedence = entry.precedence();
    let values = entry.values()?;
    let results = entry.provenance.results.iter().zip(values).enumerate();
    let results = results.map(|(number, (kind, value))| {
        let has_files = !entry.body.contents_of(number).is_empty();
        let of = || format!("result {:?} of {}", kind.name, key.short());
        let was_saved = value.is_some();
        let facts = PayloadFacts {
            has_files,
            ..PayloadFacts::default()
        };
        let sound = |value| entry.frame.sound(value, of(), facts, CHECKED_WHEN_FOUND);
        let payload = value.map_or(Ok(None), sound)?;
        if was_saved && payload.is_none() && kind.tags.is_archived() {
            precedence.has_results = false;
        }
        Ok(StoredResult::new(&*kind.name, kind.tags, payload))
    });
    let results = results.collect::<Result<_, ReadError>>()?;
    let mut stored = StoredEntry::new(entry.record(), results);
    stored.archived = entry.is_archive();
    stored.is_of_others = place.segment.is_of_others;
    Ok((precedence, stored))
}

/// A scratch state for the engine, if its bytes are whole. All of it is checked, however long: once it is decoded
/// it is too late to go back to the state before.
pub(crate) fn scratch(
    catalog: &Catalog,
    place: &Place,
    key: &Key,
) -> Result<Option<Arc<dyn sde::archiver::Payload>>, ReadError> {
    let frame = Frame::read(&catalog.vfs, place, FrameKind::Scratch)?.of_key(key)?;
    let (body, value) = scratch_body(&frame)?;
    let of = format!("the scratch of {}", key.short());
    let facts = PayloadFacts {
        took: Duration::from_nanos(body.took),
        ..PayloadFacts::default()
    };
    frame.sound(value, of, facts, u64::MAX)
}

/// The decoded body of a scratch state, and its value.
pub(crate) fn scratch_body(frame: &Frame<'_>) -> Result<(ScratchBody, StoredValue), ReadError> {
    let body = ScratchBody::read(frame.content())
        .map_err(|why| ReadError::Damaged(format!("its body can't be read: {why}")))?;
    let source = frame.sources([Some(&body.value)])?.pop().flatten();
    let none = || ReadError::Damaged("it has no value".to_owned());
    let value = frame.value(source.ok_or_else(none)?, &body.stored);
    Ok((body, value))
}

#[cfg(test)]
mod tests {
    use sde::{SavePolicy, Sde, inputs};

    use super::*;
    use crate::format::class::Part;
    use crate::store::DirStore;
    use crate::writer::frame::{Body, NewFrame};

    #[sde::app]
    fn half(number: f64) -> f64 {
        number / 2.0
    }

    /// Neither a frame with a wrong key nor an entry with another provenance in its body is believed.
    #[test]
    fn no_provenance_is_taken_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let store = DirStore::open(dir.path()).unwrap();
        let builder = Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest);
        let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
        sde.run(&half, &inputs! { number: 3.0 }).unwrap();
        let other = [9; 16];
        let key = provenance_key(&other);
        let header = FrameHeader::new(FrameKind::Provenance, Class::Result, key, 0);
        let frame = NewFrame::new(Part::Entries, header, Body::Bytes(vec![0xf6]));
        let writer = &store.0.writer;
        writer.begin().finish(vec![frame.unwrap()]).unwrap();
        let catalog = &store.0.catalog;
        assert!(catalog.provenance_bytes(&other).is_err());
        let (segment, _) = writer.unsealed().remove(0);
        assert!(catalog.inline_provenance(&other, &segment).is_none());
    }
}
