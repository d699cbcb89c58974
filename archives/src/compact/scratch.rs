//! Removing scratch that later states have superseded, while its run goes on.
//!
//! A run that iterates saves its state again and again. The last two are of use: the latest, and the one
//! before for the case that it is damaged. So a store keeps what it has saved of scratch within a small multiple
//! of those:
//!
//! - A state is superseded once this store has made two later ones of its run durable, or its result. What
//!   others have saved, or are about to, does not count: it may not be on the medium yet.
//! - A segment of scratch is sealed early, when it is half as long as all states of use, or one sixteenth of
//!   what others may have. Then those are replaced in which all states are superseded.
//! - A state that is of use keeps its whole segment. Once such segments are much longer than what is of use
//!   in them, that is written anew, made durable and read back, and they are replaced too.
//!
//! Replaced segments are told of in a manifest and removed as all others are, when no manifest that is kept
//! lists them: so whatever generation a power failure leaves, nothing that it vouches for is missing. Only the
//! time of grace they are not given: see [`replaced`](crate::compact::replaced). The journals of ranks that commit
//! together are listed nowhere, and removed at once.

use std::collections::{HashMap, HashSet};

use sde::ArchiveError;

use crate::catalog::index::Place;
use crate::catalog::segments::KnownSegment;
use crate::format::class::Part;
use crate::format::id::UniqueId;
use crate::format::index_block::Rows;
use crate::locks::lock;
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::store::{DirStore, warn_unsealed};

/// Scratch segments are sealed when they are as long as this part of others.
const PART: u64 = 16;

/// What a thread holds that removes superseded scratch, or hands over to other ranks what this one has saved.
#[derive(Default)]
pub(crate) struct Trimming;

impl DirStore {
    /// Seals what is full. Gives of which parts something was.
    pub(crate) fn seal_full(&self) -> Vec<Part> {
        let mut sealed = Vec::new();
        warn_unsealed(self.0.writer.seal_full(|segment, block| {
            sealed.push(segment.part);
            self.0.catalog.note_sealed(&segment, block);
        }));
        sealed
    }

    /// Takes note of how many bytes of scratch are of use.
    pub(crate) fn note_scratch_of_use(&self, bytes: u64) {
        let writer = &self.0.writer;
        let most = writer.config().segment_size;
        writer.set_scratch_size((bytes / 2).clamp(most / PART, most));
    }

    /// Removes what is superseded of scratch.
    pub(crate) fn trim(&self) {
        if let Err(error) = self.try_trim() {
            // Nothing is lost.
            sde::warning!("superseded states of unfinished runs are not removed: {error}");
        }
    }

    fn try_trim(&self) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let scratch = inner.writer.size(Part::Scratch);
        if inner.team.get().is_none() {
            // On a full disk a manifest needs that room.
            self.remove_replaced(self.0.grace);
            self.refresh()?;
        }
        let (sources, selected) = self.own_scratch();
        let all = || sources.iter().enumerate();
        let kept = || all().filter(|(number, _)| selected.keeps_any(*number));
        let of_use = kept().map(|(number, one)| selected.bytes(one, number).0);
        let of_use: u64 = of_use.sum();
        self.note_scratch_of_use(of_use);
        let there: u64 = kept().map(|(_, one)| one.length).sum();
        let is_anew = there > 2 * of_use + 2 * scratch;
        if is_anew {
            let config = inner.writer.config().clone();
            self.rewrite(&inner.catalog, config, &sources, &selected)?;
        }
        let goes = all().filter(|(number, _)| is_anew || !selected.keeps_any(*number));
        self.replace(&goes.map(|(_, one)| one).collect::<Vec<_>>())
    }

    /// The sealed segments of scratch that this store has written, and what is of use in them.
    fn own_scratch(&self) -> (Vec<Source>, Selected) {
        let catalog = &self.0.catalog;
        let mut durable = self.0.durable_ends();
        let own: HashMap<UniqueId, KnownSegment> = {
            let segments = lock(&catalog.segments);
            durable.extend(segments.sealed.iter().map(|id| (*id, u64::MAX)));
            let is_own = |one: &KnownSegment| {
                one.segment.part == Part::Scratch && segments.sealed.contains(&one.segment.id)
            };
            let own = segments.known().filter(is_own);
            own.map(|one| (one.segment.id, one)).collect()
        };
        let ids: HashSet<UniqueId> = own.keys().copied().collect();
        catalog.known(|index| {
            let mut rows = index.rows_of(&ids);
            let sources = own.into_values().map(|known| Source {
                rows: Rows::sorted(rows.remove(&known.segment.id).unwrap_or_default()),
                segment: known.segment,
                length: known.end,
                sealed: true,
                damaged: false,
            });
            let sources: Vec<Source> = sources.collect();
            // What is in other segments may not be on the medium yet, although it can be read.
            let is_durable = |place: &Place| {
                let end = durable.get(&place.segment.id);
                end.is_some_and(|end| place.at < *end)
            };
            let mut since = HashMap::new();
            let selected = Selected::of(&sources, |row| {
                let since = since.entry(row.prefix);
                row.saved_at >= *since.or_insert_with(|| index.of_use(row.prefix, is_durable))
            });
            (sources, selected)
        })
    }

    /// Has segments go in which nothing is of use.
    fn replace(&self, replaced: &[&Source]) -> Result<(), ArchiveError> {
        if replaced.is_empty() {
            return Ok(());
        }
        if self.0.team.get().is_some() {
            self.remove_own(replaced);
            return Ok(());
        }
        self.write_manifest(&self.replaced(replaced.iter().copied()))?;
        self.remove_replaced(self.0.grace);
        Ok(())
    }

    /// Removes segments that no manifest lists.
    fn remove_own(&self, all: &[&Source]) {
        let inner = &*self.0;
        let goes = |id: &UniqueId| all.iter().any(|one| one.segment.id == *id);
        lock(&inner.catalog.segments).forget(goes);
        inner.catalog.forget(goes);
        for one in all {
            let path = &one.segment.path;
            if let Err(error) = inner.vfs().remove(path) {
                let path = path.display();
                sde::warning!("{path} is superseded and can't be removed: {error}");
            }
        }
    }
}
