//! Writes the selected frames to new segments, and reads them back.
//!
//! Each source is read from end to end, once, and its kept frames are written in order. Frames are digested both
//! when they are read and when they are read back: no original is dropped for a copy that differs.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sde::archiver::ArchiveError;

use super::selected::Selected;
use super::source::Source;
use crate::catalog::scan::{self, FoundFrame};
use crate::catalog::{Catalog, Written};
use crate::cbor::metadata::from_bytes;
use crate::format::class::Part;
use crate::format::frame::{self, FrameHeader, FrameKind};
use crate::format::index_block::{IndexBlock, Row};
use crate::format::metadata::{ProvenanceId, inline_provenance, split_entry};
use crate::format::segment::{SEGMENT_HEADER, Segment, checksum};
use crate::locks::lock;
use crate::read::error::ReadError;
use crate::vfs::{VfsFile, pieces};
use crate::writer::frame::{Body, EncodedProvenance, NewFrame, Payload};
use crate::writer::group_commit::{GroupCommit, Save};
use crate::writer::segment_writer::WriterConfig;

/// The target of a rewrite: segments of its own.
pub(crate) struct Output {
    writer: GroupCommit,
    /// Whether its segments stay open for the next rewrite.
    stays_open: bool,
    /// The frames written since the last read-back.
    written: Arc<Mutex<Vec<Written>>>,
}

/// A sealed segment, and its index.
pub(crate) type Sealed = (Arc<Segment>, IndexBlock);

/// Digests of the frames in the segments of each part.
type Digests = [blake3::Hasher; 2];

impl Output {
    pub(crate) fn new(config: WriterConfig, stays_open: bool) -> Self {
        let written = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&written);
        Self {
            writer: GroupCommit::new(config, move |new| lock(&noted).push(new)),
            stays_open,
            written,
        }
    }

    /// Writes the selected frames, makes them durable and reads them back. Gives those in segments that stay open,
    /// and the sealed segments. After an error new segments are given up, and removed unless segments stay open.
    pub(crate) fn write(
        &self,
        catalog: &Catalog,
        sources: &[Source],
        selected: &Selected,
    ) -> Result<(Vec<Written>, Vec<Sealed>), ArchiveError> {
        lock(&self.written).clear();
        let mut rewriting = Rewriting {
            output: self,
            catalog,
            save: self.writer.begin(),
            frames: Vec::new(),
            bytes: 0,
            digests: Digests::default(),
            back: Digests::default(),
            written: Vec::new(),
            sealed: Vec::new(),
        };
        let done = rewriting.run(sources, selected);
        let Rewriting {
            written, sealed, ..
        } = rewriting;
        let Err(error) = done else {
            return Ok((written, sealed));
        };
        let begun = lock(&self.written)
            .iter()
            .map(|one| one.segment.path.clone())
            .collect::<Vec<_>>();
        let sealed = sealed.into_iter().map(|(one, _)| one.path.clone());
        let open = self.open().into_iter().map(|(one, _)| one.path.clone());
        let begun: HashSet<PathBuf> = begun.into_iter().chain(sealed).chain(open).collect();
        // These segments may have other faults, so nothing more is written to them.
        self.writer.forget();
        if !self.stays_open {
            // A segment that can't be removed holds copies, and does no harm.
            begun
                .iter()
                .for_each(|path| drop(self.config().vfs.remove(path)));
        }
        Err(error)
    }

    pub(crate) fn config(&self) -> &WriterConfig {
        self.writer.config()
    }

    /// Seals segments of at least this length.
    pub(crate) fn seal(&self, length: u64, to: &mut Vec<Sealed>) -> Result<(), ArchiveError> {
        self.writer
            .seal(length, |segment, block| to.push((segment, block)))
    }

    /// The segments being written, and their durable ends.
    pub(crate) fn open(&self) -> Vec<(Arc<Segment>, u64)> {
        self.writer.unsealed()
    }

    /// Digests frames as readers find them.
    fn read_back(&self, one: &Written, to: &mut Digests) -> Result<(), ArchiveError> {
        let (vfs, segment) = (&self.config().vfs, &one.segment);
        let failed = |error| ArchiveError::io("reading back", &segment.path, error);
        let lost = || failed(io::ErrorKind::InvalidData.into());
        let header = scan::open(&**vfs, &segment.path).map_err(failed)?;
        if !matches!(header, Some(Ok(found)) if found.id == segment.id) {
            return Err(lost());
        }
        let file = vfs.open(&segment.path).map_err(failed)?;
        for row in &one.rows {
            let found = frame::read_at(&*file, segment, row.at()).map_err(failed)?;
            let (header, body) = found.ok_or_else(lost)?;
            if Row::new(&header, row.at()) != *row {
                return Err(lost());
            }
            let payload = row.at() + header.length();
            let length = header.payload(&body).ok_or_else(lost)?;
            let place = (&*file, payload, length);
            add(&mut to[segment.part.number()], &header, &body, place).map_err(failed)?;
        }
        Ok(())
    }

    /// Whether a segment's index can be read.
    fn is_sealed(&self, segment: &Segment) -> io::Result<bool> {
        let file = self.config().vfs.open(&segment.path)?;
        Ok(IndexBlock::read(segment, &*file, file.length()?)?.is_some())
    }
}

fn is_same(one: &Digests, other: &Digests) -> bool {
    one.iter()
        .zip(other)
        .all(|(one, other)| one.finalize() == other.finalize())
}

/// Adds a frame to a digest. Provenances and uses are left out: each segment has its own.
fn add(
    to: &mut blake3::Hasher,
    header: &FrameHeader,
    body: &[u8],
    (file, at, length): (&dyn VfsFile, u64, u64),
) -> io::Result<()> {
    let content = header.content(body);
    if matches!(header.kind(), Some(FrameKind::Provenance | FrameKind::Uses)) {
        return Ok(());
    }
    to.update(&header.identity());
    let is_entry = header.kind() == Some(FrameKind::Entry);
    match split_entry(content).filter(|_| is_entry) {
        Some((elements, provenance, rest)) => {
            let id = provenance.unwrap_or_else(checksum);
            to.update(&[elements]).update(&id).update(rest);
        }
        None => {
            to.update(content);
        }
    }
    pieces(file, at, length, |piece| {
        to.update(piece);
        Ok(())
    })
}

/// A rewrite in progress.
struct Rewriting<'a> {
    output: &'a Output,
    catalog: &'a Catalog,
    save: Save<'a>,
    frames: Vec<NewFrame>,
    bytes: u64,
    /// The digest of the frames read.
    digests: Digests,
    /// The digest of the frames read back.
    back: Digests,
    /// The frames written to segments that stay open.
    written: Vec<Written>,
    sealed: Vec<Sealed>,
}

impl Rewriting<'_> {
    fn run(&mut self, sources: &[Source], selected: &Selected) -> Result<(), ArchiveError> {
        for part in Part::ALL {
            for (number, source) in sources.iter().enumerate() {
                if source.segment.part == part && selected.keeps_any(number) {
                    self.source(source, &selected.places(source, number))?;
                }
            }
        }
        self.frames.extend(NewFrame::of_uses(&selected.uses)?);
        let last = std::mem::take(&mut self.frames);
        let save = std::mem::replace(&mut self.save, self.output.writer.begin());
        save.finish(last)?;
        let stays_open = self.output.stays_open;
        self.seal(if stays_open {
            self.output.config().segment_size
        } else {
            0
        })?;
        match is_same(&self.back, &self.digests) {
            true => Ok(()),
            false => Err(ArchiveError::Other(format!(
                "what was written to {} reads otherwise; nothing was replaced, see whether the disk is sound",
                self.output.config().dir.display()
            ))),
        }
    }

    /// Seals segments of at least this length, and reads back what was written: what was written by now before that, since
    /// an index takes memory for each of its rows, and so do the rows to read back.
    fn seal(&mut self, length: u64) -> Result<(), ArchiveError> {
        self.read_back()?;
        let before = self.sealed.len();
        self.output.seal(length, &mut self.sealed)?;
        for (segment, _) in &self.sealed[before..] {
            let failed = |error| ArchiveError::io("reading back", &segment.path, error);
            if !self.output.is_sealed(segment).map_err(failed)? {
                return Err(failed(io::ErrorKind::InvalidData.into()));
            }
        }
        self.read_back()
    }

    fn read_back(&mut self) -> Result<(), ArchiveError> {
        let written = std::mem::take(&mut *lock(&self.output.written));
        for one in &written {
            self.output.read_back(one, &mut self.back)?;
        }
        if self.output.stays_open {
            self.written.extend(written);
        }
        Ok(())
    }

    /// Copies the frames at some places of a segment.
    fn source(&mut self, source: &Source, places: &[u64]) -> Result<(), ArchiveError> {
        let segment = &source.segment;
        let failed = |error| ArchiveError::io("reading", &segment.path, error);
        let vfs = &self.catalog.vfs;
        let file: Arc<dyn VfsFile> = Arc::from(vfs.open(&segment.path).map_err(failed)?);
        let mut provenances = HashMap::new();
        let mut places = places.iter().peekable();
        let mut refused = None;
        let from = SEGMENT_HEADER as u64;
        let scanned = scan::scan_with(&**vfs, segment, from, |found, body| {
            note_provenance(&mut provenances, found, body);
            while places.next_if(|at| **at < found.at).is_some() {}
            if places.next_if(|at| **at == found.at).is_none() {
                return Ok(());
            }
            let put = self.frame(&file, segment, &mut provenances, found, body);
            put.map_err(|error| {
                refused = Some(error);
                io::ErrorKind::Other.into()
            })
        });
        match refused {
            Some(error) => Err(error),
            None => scanned.map(drop).map_err(failed),
        }
    }

    fn frame(
        &mut self,
        file: &Arc<dyn VfsFile>,
        segment: &Segment,
        provenances: &mut HashMap<ProvenanceId, Arc<EncodedProvenance>>,
        found: &FoundFrame,
        body: &[u8],
    ) -> Result<(), ArchiveError> {
        let header = found.header;
        let content = header.content(body);
        let length = found.end - found.payload;
        let place = (&**file, found.payload, length);
        let digest = &mut self.digests[segment.part.number()];
        add(digest, &header, body, place)
            .map_err(|error| ArchiveError::io("reading", &segment.path, error))?;
        let body = self.body(&header, content, provenances)?;
        let payload = Payload::Copied {
            from: Arc::clone(file),
            at: found.payload,
            length,
        };
        let frame = NewFrame::with_payload(segment.part, header, body, payload);
        let mut frame = frame.map_err(ArchiveError::Other)?;
        if header.kind() == Some(FrameKind::Mark)
            && let Ok((mark, _)) = from_bytes(content)
        {
            frame = frame.with_mark(mark);
        }
        self.bytes += frame.bytes() + length;
        self.frames.push(frame);
        if self.bytes >= self.output.config().piece() {
            self.bytes = 0;
            self.save.piece(std::mem::take(&mut self.frames))?;
            self.seal(self.output.config().segment_size)?;
        }
        Ok(())
    }

    /// An entry may refer to a provenance in its new segment. One whose provenance is missing is copied unchanged.
    fn body(
        &self,
        header: &FrameHeader,
        content: &[u8],
        provenances: &mut HashMap<ProvenanceId, Arc<EncodedProvenance>>,
    ) -> Result<Body, ArchiveError> {
        let is_entry = header.kind() == Some(FrameKind::Entry);
        let Some((elements, provenance, rest)) = split_entry(content).filter(|_| is_entry) else {
            return Ok(Body::Bytes(content.to_vec()));
        };
        let provenance = match provenance {
            Err(bytes) => EncodedProvenance::new(bytes.to_vec()),
            Ok(id) => match provenances.get(&id) {
                Some(known) => Arc::clone(known),
                None => match self.catalog.provenance_bytes(&id) {
                    Ok(bytes) => {
                        let encoded = EncodedProvenance::new(bytes);
                        provenances.insert(id, Arc::clone(&encoded));
                        encoded
                    }
                    Err(ReadError::Damaged(_)) => return Ok(Body::Bytes(content.to_vec())),
                    Err(error) => return Err(error.into()),
                },
            },
        };
        Ok(Body::Entry {
            elements,
            provenance,
            rest: rest.to_vec(),
        })
    }
}

/// Remembers a provenance from a frame of its own, or from the body of an entry.
fn note_provenance(
    to: &mut HashMap<ProvenanceId, Arc<EncodedProvenance>>,
    found: &FoundFrame,
    body: &[u8],
) {
    let content = found.header.content(body);
    let bytes = match found.header.kind() {
        Some(FrameKind::Provenance) => Some(content),
        Some(FrameKind::Entry) => inline_provenance(content),
        _ => None,
    };
    if let Some(bytes) = bytes {
        to.entry(checksum(bytes))
            .or_insert_with(|| EncodedProvenance::new(bytes.to_vec()));
    }
}
