//! What is in the segments that a compaction may take the place of.

use std::io;
use std::sync::Arc;

use sde::{Key, Mark};

use crate::catalog::index::Place;
use crate::catalog::scan::{self, FoundFrame};
use crate::cbor;
use crate::format::class::Class;
use crate::format::segment::{FrameHeader, FrameKind, SEGMENT_HEADER, Segment, aligned};
use crate::precedence::Rank;
use crate::read::frame::{self, Trouble};
use crate::store::uses::{self, UsesMetadata, UsesOf};
use crate::vfs::Vfs;
use crate::writer::frame::pieces;

/// A segment that nobody writes to any more, as far as is known.
pub(crate) struct Candidate {
    pub(crate) segment: Arc<Segment>,
    /// Up to here it is whole frames: what comes after, if anything, its writer may still finish.
    pub(crate) length: u64,
    /// Whether its writer has ended it. If not, he is taken for dead.
    pub(crate) sealed: bool,
    /// Whether something in it is not whole, but for what was cut short at its end.
    pub(crate) damaged: bool,
    pub(crate) frames: Vec<Held>,
}

/// One frame.
pub(crate) struct Held {
    pub(crate) at: u64,
    pub(crate) header: FrameHeader,
    pub(crate) what: What,
}

/// What a frame holds, as far as it matters for whether it is kept.
#[derive(PartialEq)]
pub(crate) enum What {
    Entry(EntryFacts),
    /// A state that is whole.
    Scratch,
    Mark(Mark),
    Uses(UsesMetadata),
    /// What a segment says of itself; a copy has its own.
    OfSegment,
    /// Damaged: of no use to anybody.
    Damaged,
    /// Of a kind that a later release added: it is kept. The BLAKE3 digest of its payloads.
    Unknown([u8; 32]),
}

/// What counts of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryFacts {
    pub(crate) rank: Rank,
    /// The results whose values are in the frame, and whole.
    pub(crate) sound: Vec<String>,
    /// Whether there are others that are damaged.
    pub(crate) damaged: bool,
}

impl Held {
    pub(crate) fn key(&self) -> Key {
        self.header.key
    }

    /// How many bytes of the segment it takes.
    pub(crate) fn bytes(&self) -> u64 {
        aligned(self.header.end(self.at)) - self.at
    }
}

impl Candidate {
    /// Reads a segment from end to end, and checks all values in it.
    pub(crate) fn survey(
        medium: &Arc<dyn Vfs>,
        segment: Arc<Segment>,
        from: u64,
        sealed: bool,
    ) -> io::Result<Self> {
        let mut whole = Vec::new();
        let from = from.max(SEGMENT_HEADER as u64);
        let scanned = scan::scan_with(&**medium, &segment, from, |frame| {
            whole.push(FoundFrame {
                at: frame.at,
                header: frame.header,
            });
        })?;
        let frames = whole.into_iter().map(|frame| {
            Ok(Held {
                what: what(medium, &segment, &frame)?,
                at: frame.at,
                header: frame.header,
            })
        });
        let frames = frames.collect::<io::Result<Vec<_>>>()?;
        let is_damaged = |held: &Held| match &held.what {
            What::Entry(facts) => facts.damaged,
            what => matches!(what, What::Damaged),
        };
        Ok(Self {
            damaged: !scanned.damaged.is_empty() || frames.iter().any(is_damaged),
            frames,
            length: scanned.end,
            sealed,
            segment,
        })
    }

    pub(crate) fn class(&self) -> Class {
        self.segment.class
    }
}

/// Adds up what a segment that is not replaced says of uses.
pub(crate) fn uses(medium: &Arc<dyn Vfs>, segment: &Segment, to: &mut UsesOf) -> io::Result<()> {
    let mut found = Vec::new();
    scan::scan_with(&**medium, segment, SEGMENT_HEADER as u64, |frame| {
        if frame.header.kind == Some(FrameKind::Uses) {
            found.push(FoundFrame {
                at: frame.at,
                header: frame.header,
            });
        }
    })?;
    for frame in found {
        let uses = metadata::<UsesMetadata>(medium, segment, &frame)?;
        for (key, one) in uses.into_iter().flat_map(|metadata| metadata.uses) {
            uses::add(to, key, one);
        }
    }
    Ok(())
}

fn what(medium: &Arc<dyn Vfs>, segment: &Arc<Segment>, frame: &FoundFrame) -> io::Result<What> {
    let (at, key) = (frame.at, &frame.header.key);
    match frame.header.kind {
        Some(FrameKind::Entry) => of_value(frame::facts(medium, segment, at, key).map(What::Entry)),
        Some(FrameKind::Scratch) => {
            let segment = Arc::clone(segment);
            let checked = frame::check_scratch(medium, &Place { segment, at }, key);
            of_value(checked.map(|()| What::Scratch))
        }
        Some(FrameKind::Mark) => {
            Ok(metadata(medium, segment, frame)?.map_or(What::Damaged, What::Mark))
        }
        Some(FrameKind::Uses) => {
            Ok(metadata(medium, segment, frame)?.map_or(What::Damaged, What::Uses))
        }
        Some(FrameKind::About | FrameKind::Index) => Ok(What::OfSegment),
        None => Ok(What::Unknown(digest(medium, segment, frame)?)),
    }
}

/// What is damaged is of no use; what can't be read may be.
fn of_value(found: Result<What, Trouble>) -> io::Result<What> {
    match found {
        Err(Trouble::Io(error)) => Err(io::Error::other(error)),
        Err(Trouble::Gone) => Err(io::ErrorKind::NotFound.into()),
        Err(Trouble::Damaged(_) | Trouble::OtherType(_)) => Ok(What::Damaged),
        Ok(what) => Ok(what),
    }
}

fn digest(medium: &Arc<dyn Vfs>, segment: &Segment, frame: &FoundFrame) -> io::Result<[u8; 32]> {
    let file = medium.open(&segment.path)?;
    let (at, length) = (frame.header.payloads_at(frame.at), frame.header.payloads);
    let mut digest = blake3::Hasher::new();
    pieces(&*file, at, length, |piece| {
        digest.update(piece);
        Ok(())
    })?;
    Ok(*digest.finalize().as_bytes())
}

fn metadata<T: serde::de::DeserializeOwned>(
    medium: &Arc<dyn Vfs>,
    segment: &Segment,
    frame: &FoundFrame,
) -> io::Result<Option<T>> {
    let file = medium.open(&segment.path)?;
    let at = FrameHeader::metadata_at(frame.at);
    let bytes = crate::catalog::table::bytes(&*file, at, frame.header.metadata.into())?;
    Ok(cbor::from_bytes(&bytes).ok())
}
