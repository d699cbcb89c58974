//! What a writer does with the segments of others: it verifies them, frame by frame, appends what
//! counts of them to segments of its own, and reads that back.
//!
//! Its segments stay open from one time to the next, so that they are as few after many commits as
//! after one. Those that it has read are removed only after all ranks know of the new ones, so it
//! may stop anywhere: until then both count, and they say the same.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use sde::ArchiveError;

use super::told::Told;
use crate::catalog::index::Place;
use crate::catalog::table::Table;
use crate::compact::{Candidate, EntryFacts, Plan, What, copy};
use crate::format::id::UniqueId;
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::read::frame::{self, Trouble};
use crate::store::lock;
use crate::store::uses;
use crate::vfs::{Vfs, VfsFile};
use crate::writer::frame::{NewFrame, Written};
use crate::writer::group_commit::Committer;
use crate::writer::segment_writer::Ground;

/// The segments of a writer.
pub(super) struct Drain {
    committer: Committer,
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
    pub(super) told: Told,
    /// The first thing that went wrong.
    pub(super) error: Option<ArchiveError>,
}

impl Drain {
    pub(super) fn new(ground: Ground) -> Self {
        Self {
            committer: Committer::new(ground),
            told: Mutex::default(),
        }
    }

    /// Seals all segments.
    pub(super) fn end(&self) {
        self.committer.seal(|_| 0, drop);
    }

    /// Writes what counts of some segments.
    pub(super) fn write(&self, sources: &[Source]) -> Drained {
        let medium = &self.committer.ground().medium;
        let mut drained = Drained::default();
        let mut candidates = Vec::new();
        for source in sources {
            match survey(medium, source) {
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
            Ok(told) => {
                drained.taken = taken;
                drained.told = told;
            }
            Err(error) => drained.error = drained.error.or(Some(error)),
        }
        drained
    }

    fn append(&self, plan: &Plan) -> Result<Told, ArchiveError> {
        let mut save = self.committer.begin();
        let mut facts = Vec::new();
        for (candidate, kept) in plan.candidates.iter().zip(&plan.kept) {
            let frames = frames_of(&*self.committer.ground().medium, candidate, kept)?;
            facts.extend(
                kept.iter()
                    .map(|frame| match &candidate.frames[*frame].what {
                        What::Entry(facts) => Some(facts),
                        _ => None,
                    }),
            );
            save.part(frames)?;
        }
        let written = save.finish(uses::frames(plan.uses.clone())?)?;
        if let Err(why) = self.check(&written, &facts) {
            // Nobody knows what else is not as it should be there.
            self.committer.forget();
            return Err(why);
        }
        Ok(self.tell(&written))
    }

    /// Reads back what was written: what is missing there would be lost with the sources.
    fn check(
        &self,
        written: &[Written],
        facts: &[Option<&EntryFacts>],
    ) -> Result<(), ArchiveError> {
        let medium = &self.committer.ground().medium;
        let is_back = |one: &Written, facts: Option<&EntryFacts>| {
            let Some(row) = one.row else { return Ok(true) };
            match facts {
                Some(expected) => {
                    let found = frame::facts(medium, &one.segment, row.at, &row.key)?;
                    Ok(found == *expected)
                }
                None => {
                    let place = Place {
                        segment: Arc::clone(&one.segment),
                        at: row.at,
                    };
                    Ok(frame::scratch(medium, &place, &row.key)?.is_some())
                }
            }
        };
        // Uses come last, and have no facts.
        let expected = facts.iter().copied().chain(std::iter::repeat(None));
        for (one, facts) in written.iter().zip(expected) {
            let back =
                is_back(one, facts).map_err(|trouble: Trouble| ArchiveError::from(trouble))?;
            if !back {
                let path = one.segment.path.display();
                return Err(ArchiveError::Other(format!(
                    "what was written to {path} reads otherwise; the files it was made of stay, see whether the disk is sound"
                )));
            }
        }
        Ok(())
    }

    /// What others are to know of what was written.
    fn tell(&self, written: &[Written]) -> Told {
        let mut ends = HashMap::new();
        let long = self.committer.ground().segment_size;
        let sealed = |table: Table| {
            ends.insert(table.segment.id, (table.end, table.length));
        };
        self.committer.seal(|_| long, sealed);
        for (_, id, _, length) in self.committer.written() {
            ends.insert(id, (length, length));
        }
        let mut known = lock(&self.told);
        let from = |id: &UniqueId| known.get(id).copied().unwrap_or(SEGMENT_HEADER as u64);
        let told = Told::written(written, from, |id| ends.get(id).copied());
        known.extend(told.ends());
        told
    }
}

/// What is in a source; `None` if it is left where it is.
fn survey(medium: &Arc<dyn Vfs>, source: &Source) -> Result<Option<Candidate>, ArchiveError> {
    let segment = Arc::clone(&source.segment);
    let path = &source.segment.path;
    let surveyed = Candidate::survey(medium, segment, 0, true);
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

/// The frames of a segment that are kept, to be written elsewhere.
fn frames_of(
    medium: &dyn Vfs,
    from: &Candidate,
    kept: &[usize],
) -> Result<Vec<NewFrame>, ArchiveError> {
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let path = &from.segment.path;
    let failed = |error| ArchiveError::io("reading", path, error);
    let file: Arc<dyn VfsFile> = Arc::from(medium.open(path).map_err(failed)?);
    let frames = kept.iter().map(|frame| &from.frames[*frame]);
    let copied = frames.map(|held| copy::frame(from.class(), held, &file));
    copied.collect::<std::io::Result<_>>().map_err(failed)
}
