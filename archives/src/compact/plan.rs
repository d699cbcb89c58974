//! What a compaction takes, and what it keeps of it.

use std::collections::HashSet;
use std::sync::Arc;

use sde::Key;
use sde::archiver::ArchiveError;

use super::Compacted;
use crate::catalog::scan;
use crate::catalog::segments::KnownSegment;
use crate::format::class::Part;
use crate::format::frame::FrameKind;
use crate::format::id::UniqueId;
use crate::format::metadata::EntryBody;
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::format::uses::{self, UsesOf};
use crate::locks::lock;
use crate::retention::Retention;
use crate::rewrite::removal::{RemovedFrames, Wanting};
use crate::rewrite::select::{EVERYTHING, Filter, Selection};
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::store::DirStore;

/// A segment is worth replacing if more than one part in this many is of no use.
const WORTH: u64 = 8;

/// The input of a compaction: the segments it may replace, and facts of the others.
#[derive(Default)]
pub(super) struct CompactionInput {
    pub(super) sources: Vec<Source>,
    /// Uses recorded in segments that are being written.
    pub(super) uses: UsesOf,
    /// Contents needed by entries in segments that are being written.
    pub(super) contents: HashSet<Key>,
    /// Whether contents are kept even if no entry is known to need them.
    pub(super) keeps_contents: bool,
}

/// The decisions of a compaction.
pub(super) struct Plan {
    taken: Vec<bool>,
    pub(super) selected: Selected,
    given_up: usize,
    taken_out: usize,
    dropped: u64,
    left: usize,
}

impl Plan {
    /// The segments that are replaced, and their numbers.
    pub(super) fn taken<'a>(
        &self,
        there: &'a CompactionInput,
    ) -> impl Iterator<Item = (usize, &'a Source)> {
        let all = there.sources.iter().enumerate();
        all.filter(|(number, _)| self.taken[*number])
    }

    /// What comes of it, without what is written and removed.
    pub(super) fn outcome(&self, there: &CompactionInput) -> Compacted {
        let taken = || self.taken(there);
        let kept = taken().map(|(number, one)| self.selected.bytes(one, number).0);
        Compacted {
            given_up: self.given_up,
            taken_out: self.taken_out,
            dropped: self.dropped,
            left: self.left,
            replaced: taken().count(),
            bytes_before: taken().map(|(_, one)| one.length).sum(),
            bytes_after: kept.sum(),
            ..Compacted::default()
        }
    }
}

impl CompactionInput {
    pub(super) fn selection<'a>(&'a self, of: &'a DirStore) -> Selection<'a> {
        let filter = Filter {
            contents: (!self.keeps_contents).then_some(&self.contents),
            ..EVERYTHING
        };
        Selection::new(&of.0.catalog, &self.sources, filter)
    }

    /// Notes the uses and contents that a segment names which is being written.
    fn being_written(&mut self, of: &DirStore, segment: &Segment) -> Result<(), ArchiveError> {
        if segment.part != Part::Entries {
            return Ok(());
        }
        let from = SEGMENT_HEADER as u64;
        let scanned = scan::scan_with(&**of.0.vfs(), segment, from, |found, body| {
            let content = found.header.content(body);
            match found.header.kind() {
                Some(FrameKind::Uses) => {
                    let read = uses::read(content).unwrap_or_default().into_iter();
                    read.for_each(|(prefix, one)| uses::add(&mut self.uses, prefix, one));
                }
                Some(FrameKind::Entry) => {
                    if let Ok((_, body)) = EntryBody::read(content) {
                        self.contents.extend(body.contents());
                    }
                }
                _ => {}
            }
            Ok(())
        });
        let read = scanned.map(drop);
        read.map_err(|error| ArchiveError::io("reading", &segment.path, error))
    }
}

impl DirStore {
    /// Decides which segments are replaced, and which of their frames are kept.
    pub(super) fn plan(
        &self,
        there: &CompactionInput,
        retention: &Retention,
        wanted: Option<Wanting<'_>>,
        now: u64,
    ) -> Result<Plan, ArchiveError> {
        let mut selection = there.selection(self);
        let removed = wanted.map(|wanted| {
            let written = self.being_written(&there.sources)?;
            RemovedFrames::of(&self.0.catalog, &there.sources, wanted, &written)
        });
        let removed = removed.transpose()?;
        let (given_up, before) = selection.give_up(retention, &there.uses, now)?;
        selection.given_up = Some(&given_up);
        selection.removed = removed.as_ref();
        let selected = match (given_up.len(), &removed) {
            (0, None) => before.clone(),
            _ => selection.run()?,
        };
        let mut taken = self.worth(&there.sources, &before, &selected);
        // An earlier computation that does not count now would count in place of what is taken out.
        let is_in_removed = |number: usize| removed.as_ref().is_some_and(|one| one.is_in(number));
        (0..taken.len()).for_each(|number| taken[number] |= is_in_removed(number));
        let bytes = |of: &Selected| -> u64 {
            let sources = there.sources.iter().enumerate();
            sources.map(|(number, one)| of.bytes(one, number).0).sum()
        };
        let dropped = bytes(&before).saturating_sub(bytes(&selected));
        // The kept frames are selected again, among the taken segments only: see `rewrite::select`.
        let mut selected = match taken.iter().all(|taken| *taken) {
            true => selected,
            false => Selection {
                taken: Some(&taken),
                ..selection
            }
            .run()?,
        };
        given_up.forget(&mut selected.uses);
        Ok(Plan {
            taken,
            selected,
            given_up: given_up.len(),
            taken_out: removed.as_ref().map_or(0, |one| one.keys),
            dropped,
            left: removed.map_or(0, |one| one.left),
        })
    }

    /// Which segments are worth replacing.
    fn worth(&self, sources: &[Source], before: &Selected, selected: &Selected) -> Vec<bool> {
        let small = self.0.writer.config().short();
        let is_small = |one: &Source| one.length < small;
        let several_small = Part::ALL.map(|part| {
            let small = |one: &&Source| one.segment.part == part && is_small(one);
            sources.iter().filter(small).count() > 1
        });
        let worth = sources.iter().enumerate().map(|(number, one)| {
            // The last bytes of an unsealed segment may not be on the medium; those of a copy are.
            !one.sealed
                // Whole frames of a damaged segment are copied, so that harmless damage is not reported for ever.
                || selected.damaged[number]
                || selected.bytes(one, number).1 > one.length / WORTH
                || (is_small(one) && several_small[one.segment.part.number()])
                || !selected.is_same(before, number)
        });
        worth.collect()
    }

    /// The segments at rest, and the uses and contents named in the others.
    pub(super) fn sources(&self) -> Result<CompactionInput, ArchiveError> {
        // Another thread may seal one of this process's own at this moment.
        let (known, owned) = self.segments();
        let at_rest = self.at_rest(&known);
        let mut there = CompactionInput::default();
        for known in known {
            let segment = &known.segment;
            let is_at_rest = known.sealed || at_rest.contains(&segment.id);
            if is_at_rest && !segment.is_of_another {
                match self.source(segment, true) {
                    // Another compaction has removed it.
                    Err(error) if error.is_not_found() => {}
                    source => there.sources.push(source?),
                }
            } else {
                there.being_written(self, segment)?;
            }
        }
        for segment in &owned {
            there.being_written(self, segment)?;
        }
        let sources = &mut there.sources;
        sources.sort_by(|a, b| a.segment.path.cmp(&b.segment.path));
        Ok(there)
    }

    /// The known segments that are not at rest.
    fn being_written(&self, at_rest: &[Source]) -> Result<Vec<Source>, ArchiveError> {
        let at_rest: HashSet<UniqueId> = at_rest.iter().map(|one| one.segment.id).collect();
        let (known, owned) = self.segments();
        let all = known.into_iter().map(|one| one.segment).chain(owned);
        let written = all.filter(|one| !at_rest.contains(&one.id));
        written.map(|one| self.source(&one, false)).collect()
    }

    /// The segments that the catalog has read, and those that this process writes.
    fn segments(&self) -> (Vec<KnownSegment>, Vec<Arc<Segment>>) {
        let segments = lock(&self.0.catalog.segments);
        (
            segments.known().collect(),
            segments.owned().cloned().collect(),
        )
    }
}
