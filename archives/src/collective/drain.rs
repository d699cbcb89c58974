//! What a writer does with the segments of others: it verifies them, frame by frame, appends what
//! counts of them to segments of its own, and reads that back.
//!
//! Its segments stay open from one time to the next, so that they are as few after many commits as
//! after one. Those that it has read are removed only after all ranks know of the new ones, so it
//! may stop anywhere: until then both count, and they say the same.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use sde::ArchiveError;

use super::listing::Listing;
use crate::catalog::Catalog;
use crate::catalog::Written;
use crate::catalog::index::Place;
use crate::compact::copy::FrameCopier;
use crate::compact::{Candidate, EntryFacts, FrameContent, Plan, check_scratch, entry_facts};
use crate::format::frame::FrameKind;
use crate::format::id::UniqueId;
use crate::format::metadata::ProvenanceId;
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::locks::lock;
use crate::read::frame::Frame;
use crate::read::trouble::Trouble;
use crate::store::uses;
use crate::writer::frame::EncodedProvenance;
use crate::writer::group_commit::GroupCommit;
use crate::writer::segment_writer::WriterConfig;

/// The segments of a writer.
pub(super) struct Drain {
    catalog: Arc<Catalog>,
    writer: GroupCommit,
    /// What was made durable since it was told.
    written: Arc<Mutex<Vec<Written>>>,
    /// Up to where others have been told of each segment.
    told: Mutex<HashMap<UniqueId, u64>>,
}

/// A segment to be written with others.
pub(super) struct Source {
    pub(super) segment: Arc<Segment>,
    /// How long its file is at least.
    pub(super) length: u64,
    /// Whether it is of an earlier job. Then another may have taken it in and removed it; and a power
    /// failure may have damaged what was not acknowledged.
    pub(super) is_left_behind: bool,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Drained {
    /// The sources of which all that counts is in the new segments, durable.
    pub(super) taken: Vec<UniqueId>,
    pub(super) listing: Listing,
    /// The first thing that went wrong.
    pub(super) error: Option<ArchiveError>,
}

impl Drain {
    pub(super) fn new(config: WriterConfig, catalog: &Arc<Catalog>) -> Self {
        let written = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&written);
        Self {
            catalog: Arc::clone(catalog),
            writer: GroupCommit::new(config, move |new| lock(&noted).push(new)),
            written,
            told: Mutex::default(),
        }
    }

    /// Seals all segments.
    pub(super) fn end(&self) {
        self.writer.seal(|_| 0, |_, _| {});
    }

    /// Writes what counts of some segments.
    pub(super) fn write(&self, sources: &[Source]) -> Drained {
        let mut drained = Drained::default();
        let mut candidates = Vec::new();
        for source in sources {
            match survey(&self.catalog, source) {
                Ok(Some(candidate)) => candidates.push(candidate),
                Ok(None) => {}
                Err(error) => drained.error = drained.error.or(Some(error)),
            }
        }
        if candidates.is_empty() {
            return drained;
        }
        let taken = candidates.iter().map(|one| one.segment.id).collect();
        match self.append(&Plan::everything(candidates)) {
            Ok(listing) => {
                drained.taken = taken;
                drained.listing = listing;
            }
            Err(error) => drained.error = drained.error.or(Some(error)),
        }
        drained
    }

    fn append(&self, plan: &Plan) -> Result<Listing, ArchiveError> {
        lock(&self.written).clear();
        let mut save = self.writer.begin();
        let mut facts = VecDeque::new();
        let mut provenances = HashMap::new();
        for (candidate, kept) in plan.candidates.iter().zip(&plan.kept) {
            if kept.is_empty() {
                continue;
            }
            let mut copier = FrameCopier::open(candidate, &self.catalog)?;
            let mut frames = Vec::with_capacity(kept.len());
            for frame in kept {
                let info = &candidate.frames[*frame];
                if info.header.kind() == Some(FrameKind::Entry) {
                    facts.push_back(match &info.content {
                        FrameContent::Entry(facts) => Some(facts),
                        _ => None,
                    });
                }
                frames.push(copier.frame(info)?);
            }
            provenances.extend(copier.provenances);
            save.piece(frames)?;
        }
        save.finish(uses::frames(plan.uses.clone())?)?;
        let written = std::mem::take(&mut *lock(&self.written));
        if let Err(why) = self.check(&written, facts, &provenances) {
            // Nobody knows what else is not as it should be there.
            self.writer.forget();
            return Err(why);
        }
        Ok(self.tell(&written))
    }

    /// Reads back what was written: what is missing there would be lost with the sources.
    fn check(
        &self,
        written: &[Written],
        mut facts: VecDeque<Option<&EntryFacts>>,
        provenances: &HashMap<ProvenanceId, Arc<EncodedProvenance>>,
    ) -> Result<(), ArchiveError> {
        for (segment, row) in written.iter().flat_map(Written::frames) {
            let place = Place {
                segment: Arc::clone(segment),
                at: row.at(),
            };
            let is_back = match row.kind() {
                Some(FrameKind::Entry) => match facts.pop_front().flatten() {
                    Some(expected) => entry_facts(&self.catalog, &place, provenances)
                        .map(|found| found == *expected),
                    // Its provenance is missing: all that can be said is said by checksums.
                    None => Ok(true),
                },
                Some(FrameKind::Content) => Frame::read(&self.catalog.vfs, &place, FrameKind::Content)
                    .and_then(|frame| frame.file_content().verify(|_| ()))
                    .map(|()| true),
                Some(FrameKind::Scratch) => check_scratch(&self.catalog, &place).map(|()| true),
                _ => Ok(true),
            };
            if !is_back.map_err(|trouble: Trouble| ArchiveError::from(trouble))? {
                let path = segment.path.display();
                return Err(ArchiveError::Other(format!(
                    "what was written to {path} reads otherwise; the files it was made of stay, see whether the disk is sound"
                )));
            }
        }
        Ok(())
    }

    /// What others are to know of what was written.
    fn tell(&self, written: &[Written]) -> Listing {
        let mut ends = HashMap::new();
        let long = self.writer.config().segment_size;
        self.writer.seal(
            |_| long,
            |segment, block| {
                ends.insert(segment.id, (block.end, block.length));
            },
        );
        for (segment, length) in self.writer.written() {
            ends.insert(segment.id, (length, length));
        }
        let mut known = lock(&self.told);
        let from = |id: &UniqueId| known.get(id).copied().unwrap_or(SEGMENT_HEADER as u64);
        let listing = Listing::written(written, from, |id| ends.get(id).copied());
        known.extend(listing.ends());
        listing
    }
}

/// What is in a source; `None` if it is left where it is.
fn survey(catalog: &Catalog, source: &Source) -> Result<Option<Candidate>, ArchiveError> {
    let segment = Arc::clone(&source.segment);
    let path = &source.segment.path;
    let surveyed = Candidate::survey(catalog, segment, 0, true);
    let candidate = match surveyed {
        Err(error) if source.is_left_behind && error.kind() == ErrorKind::NotFound => {
            return Ok(None);
        }
        surveyed => surveyed.map_err(|error| ArchiveError::io("reading", path, error))?,
    };
    if !candidate.damaged && candidate.length >= source.length {
        return Ok(Some(candidate));
    }
    let path = path.display();
    if source.is_left_behind {
        sde::warning!("{path} was left by another job and is damaged; what is whole in it is used");
        return Ok(Some(candidate));
    }
    // On a network file system that may be a late view of what its rank has written.
    sde::warning!("{path} is not what its rank has written; it stays where it is");
    Ok(None)
}
