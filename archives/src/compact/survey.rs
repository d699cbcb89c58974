//! What is in the segments that a compaction may take the place of.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use sde::{Key, Mark};

use crate::catalog::Catalog;
use crate::catalog::index::Place;
use crate::catalog::scan::{self, FoundFrame};
use crate::cbor::metadata::from_bytes;
use crate::format::class::Part;
use crate::format::frame::{FrameHeader, FrameKind};
use crate::format::id::nanos;
use crate::format::metadata::{EntryBody, Provenance, ProvenanceId, inline_provenance};
use crate::format::precedence::Precedence;
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::read::frame::{EntryFrame, Frame, scratch_body};
use crate::read::trouble::Trouble;
use crate::store::uses::{self, Use, UsesOf};
use crate::vfs::pieces;
use crate::vfs::{Vfs, VfsFile};
use crate::writer::frame::EncodedProvenance;

/// A segment that nobody writes to any more, as far as is known.
pub(crate) struct Candidate {
    pub(crate) segment: Arc<Segment>,
    /// Up to here it is whole frames: what comes after, if anything, its writer may still finish.
    pub(crate) length: u64,
    /// Whether its writer has ended it. If not, it is taken for dead.
    pub(crate) sealed: bool,
    /// Whether a frame in it is not whole, but for what was cut short at its end.
    pub(crate) damaged: bool,
    pub(crate) frames: Vec<FrameInfo>,
    /// What was found there, in frames of its own or in entries.
    pub(crate) provenances: HashMap<ProvenanceId, Arc<EncodedProvenance>>,
}

/// One frame.
pub(crate) struct FrameInfo {
    pub(crate) at: u64,
    pub(crate) end: u64,
    pub(crate) header: FrameHeader,
    pub(crate) content: FrameContent,
}

/// What a frame holds, as far as it matters for whether it is kept.
#[derive(Debug, PartialEq)]
pub(crate) enum FrameContent {
    Entry(EntryFacts),
    /// A state that is whole, of this app.
    Scratch(Arc<str>),
    Mark(Mark),
    Uses(Vec<(u64, Use)>),
    /// What an output file holds, whole.
    Content,
    /// What a process did.
    Journal,
    /// What a segment has for the others; a copy has its own.
    OfSegment,
    /// Damaged: of no use to anybody.
    Damaged,
    /// Of a kind that a later release added, or an entry whose provenance is missing: it is kept. The digest of its payload.
    Unknown([u8; 32]),
}

/// What counts of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryFacts {
    pub(crate) app: Arc<str>,
    /// How many bytes its values have that are in the frame.
    pub(crate) bytes: u64,
    pub(crate) precedence: Precedence,
    /// The results whose values are in the frame, and whole.
    pub(crate) sound: Vec<Arc<str>>,
    /// Whether there are others that are damaged.
    pub(crate) damaged: bool,
    /// The contents that it needs.
    pub(crate) contents: Vec<Key>,
}

impl FrameContent {
    /// The app that a value is of.
    pub(crate) fn app(&self) -> Option<&Arc<str>> {
        match self {
            Self::Entry(facts) => Some(&facts.app),
            Self::Scratch(app) => Some(app),
            _ => None,
        }
    }
}

impl FrameInfo {
    pub(crate) fn key(&self) -> Key {
        self.header.key
    }

    /// When it was made by the time of day, in nanoseconds since 1970: what is saved after a clock was ahead has later
    /// stamps, and is no younger for that.
    pub(crate) fn made_at(&self) -> u64 {
        let saved_at = self.header.saved_at;
        match &self.content {
            FrameContent::Entry(facts) => saved_at.min(nanos(facts.precedence.made_at)),
            _ => saved_at,
        }
    }

    /// The contents that it needs.
    pub(crate) fn contents(&self) -> &[Key] {
        match &self.content {
            FrameContent::Entry(facts) => &facts.contents,
            _ => &[],
        }
    }

    /// How many bytes of the segment it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.end - self.at
    }
}

impl Candidate {
    /// Reads a segment from end to end, and checks all values in it.
    pub(crate) fn survey(
        catalog: &Catalog,
        segment: Arc<Segment>,
        from: u64,
        sealed: bool,
    ) -> io::Result<Self> {
        let vfs = &catalog.vfs;
        let mut survey = Survey {
            catalog,
            segment: &segment,
            file: Arc::from(vfs.open(&segment.path)?),
            frames: Vec::new(),
            provenances: HashMap::new(),
            from: from.max(SEGMENT_HEADER as u64),
        };
        // From the beginning: what counts may have its provenance before.
        let scanned = scan::scan_with(&**vfs, &segment, SEGMENT_HEADER as u64, |found, body| {
            survey.frame(found, body)
        })?;
        let Survey {
            frames,
            provenances,
            from,
            ..
        } = survey;
        let is_damaged = |frame: &FrameInfo| frame.content == FrameContent::Damaged;
        let gaps = scanned.damaged.iter().any(|(place, _)| place.end > from);
        Ok(Self {
            damaged: gaps || frames.iter().any(is_damaged),
            frames,
            length: scanned.end.max(from),
            sealed,
            segment,
            provenances,
        })
    }

    pub(crate) fn part(&self) -> Part {
        self.segment.part
    }
}

/// A segment that is being read.
struct Survey<'a> {
    catalog: &'a Catalog,
    segment: &'a Arc<Segment>,
    file: Arc<dyn VfsFile>,
    frames: Vec<FrameInfo>,
    provenances: HashMap<ProvenanceId, Arc<EncodedProvenance>>,
    /// What is before this was replaced.
    from: u64,
}

impl Survey<'_> {
    fn frame(&mut self, found: &FoundFrame, body: &[u8]) -> io::Result<()> {
        let content = found.header.content(body);
        let provenance = match found.header.kind() {
            Some(FrameKind::Provenance) => Some(content),
            Some(FrameKind::Entry) => inline_provenance(content),
            _ => None,
        };
        if let Some(bytes) = provenance {
            let encoded = EncodedProvenance::new(bytes.to_vec());
            self.provenances.insert(encoded.id, encoded);
        }
        if found.at >= self.from {
            self.frames.push(FrameInfo {
                at: found.at,
                end: found.end,
                header: found.header,
                content: self.content(found, body)?,
            });
        }
        Ok(())
    }

    fn content(&self, found: &FoundFrame, body: &[u8]) -> io::Result<FrameContent> {
        let read = || found.header.content(body);
        Ok(match found.header.kind() {
            Some(FrameKind::Entry) => return self.entry(found, body),
            Some(FrameKind::Scratch) => {
                let frame = self.as_read(found, body);
                let checked = scratch_body(&frame).and_then(|(body, value)| {
                    value.verify(|_| ())?;
                    Ok(FrameContent::Scratch(body.app))
                });
                return of_value(checked);
            }
            Some(FrameKind::Mark) => from_bytes(read())
                .map_or(FrameContent::Damaged, |(mark, _)| FrameContent::Mark(mark)),
            Some(FrameKind::Uses) => {
                uses::read(read()).map_or(FrameContent::Damaged, FrameContent::Uses)
            }
            Some(FrameKind::Content) if self.digest(found)? == *found.header.key.as_bytes() => {
                FrameContent::Content
            }
            Some(FrameKind::Content) => FrameContent::Damaged,
            Some(FrameKind::Journal) => FrameContent::Journal,
            Some(FrameKind::About | FrameKind::Index | FrameKind::Provenance) => {
                FrameContent::OfSegment
            }
            None => FrameContent::Unknown(self.digest(found)?),
        })
    }

    fn entry(&self, found: &FoundFrame, body: &[u8]) -> io::Result<FrameContent> {
        let mut is_missing = false;
        let shared = |id: &ProvenanceId| {
            let provenance = find(self.catalog, self.segment, &self.provenances, id);
            is_missing = matches!(provenance, Err(Trouble::Damaged(_)));
            provenance
        };
        let entry = EntryFrame::of(self.as_read(found, body), shared);
        if is_missing {
            return Ok(FrameContent::Unknown(self.digest(found)?));
        }
        of_value(
            entry
                .and_then(|entry| facts(&entry))
                .map(FrameContent::Entry),
        )
    }

    fn as_read(&self, found: &FoundFrame, body: &[u8]) -> Frame<'_> {
        Frame {
            vfs: &self.catalog.vfs,
            segment: self.segment,
            at: found.at,
            header: found.header,
            body: body.to_vec(),
        }
    }

    fn digest(&self, found: &FoundFrame) -> io::Result<[u8; 32]> {
        let mut digest = blake3::Hasher::new();
        pieces(
            &*self.file,
            found.payload,
            found.end - found.payload,
            |piece| {
                digest.update(piece);
                Ok(())
            },
        )?;
        Ok(*digest.finalize().as_bytes())
    }
}

/// What counts of an entry. All its values are read and checked.
fn facts(entry: &EntryFrame<'_>) -> Result<EntryFacts, Trouble> {
    let mut precedence = entry.precedence();
    let (mut sound, mut damaged, mut bytes) = (Vec::new(), false, 0_u64);
    for (kind, value) in entry.provenance.results.iter().zip(entry.values()?) {
        let Some(value) = value else { continue };
        bytes = bytes.saturating_add(value.length());
        match value.verify(|_| ()) {
            Ok(()) => sound.push(Arc::clone(&kind.name)),
            Err(Trouble::Damaged(_)) => {
                damaged = true;
                precedence.has_results &= !kind.tags.is_archived();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(EntryFacts {
        app: Arc::clone(&entry.provenance.app),
        bytes,
        precedence,
        sound,
        damaged,
        contents: entry.body.contents().collect(),
    })
}

/// What counts of the entry at a place. Its provenance is among these, or in the catalog.
pub(crate) fn entry_facts(
    catalog: &Catalog,
    place: &Place,
    provenances: &HashMap<ProvenanceId, Arc<EncodedProvenance>>,
) -> Result<EntryFacts, Trouble> {
    let frame = Frame::read(&catalog.vfs, place, FrameKind::Entry)?;
    let segment = &place.segment;
    let shared = |id: &ProvenanceId| find(catalog, segment, provenances, id);
    facts(&EntryFrame::of(frame, shared)?)
}

fn find(
    catalog: &Catalog,
    segment: &Segment,
    here: &HashMap<ProvenanceId, Arc<EncodedProvenance>>,
    id: &ProvenanceId,
) -> Result<Arc<Provenance>, Trouble> {
    if let Some(known) = catalog.remembered(id) {
        return Ok(known);
    }
    match here.get(id).map(|encoded| Provenance::read(&encoded.bytes)) {
        Some(Ok(provenance)) => Ok(catalog.remember(*id, provenance)),
        _ => catalog.provenance(id, segment),
    }
}

/// Checks the scratch state at a place.
pub(crate) fn check_scratch(catalog: &Catalog, place: &Place) -> Result<(), Trouble> {
    let frame = Frame::read(&catalog.vfs, place, FrameKind::Scratch)?;
    let (_, value) = scratch_body(&frame)?;
    value.verify(|_| ())
}

/// Adds up what a segment that is not replaced says of uses, and the contents that its entries need.
pub(crate) fn uses(
    vfs: &dyn Vfs,
    segment: &Segment,
    to: &mut UsesOf,
    contents: &mut HashSet<Key>,
) -> io::Result<()> {
    scan::scan_with(vfs, segment, SEGMENT_HEADER as u64, |found, body| {
        let content = found.header.content(body);
        match found.header.kind() {
            Some(FrameKind::Uses) => {
                let read = uses::read(content).unwrap_or_default().into_iter();
                read.for_each(|(prefix, one)| uses::add(to, prefix, one));
            }
            Some(FrameKind::Entry) => {
                if let Ok((_, body)) = EntryBody::read(content) {
                    contents.extend(body.contents());
                }
            }
            _ => {}
        }
        Ok(())
    })
    .map(drop)
}

/// What is damaged is of no use; what can't be read may be.
fn of_value(found: Result<FrameContent, Trouble>) -> io::Result<FrameContent> {
    match found {
        Err(Trouble::Io(error)) => Err(io::Error::other(error)),
        Err(Trouble::Gone) => Err(io::ErrorKind::NotFound.into()),
        Err(Trouble::Damaged(_) | Trouble::OtherType(_) | Trouble::OtherKey) => {
            Ok(FrameContent::Damaged)
        }
        Ok(content) => Ok(content),
    }
}
