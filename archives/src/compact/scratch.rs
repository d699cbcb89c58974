//! Removing superseded scratch while its run goes on.
//!
//! An iterating run saves its state again and again. Only the last two are of use: the latest, and the one before
//! in case that is damaged. So a store keeps the scratch it has saved within a small multiple of those:
//!
//! - A state is superseded once this store has made two later ones of its run durable, or its result. Saves of
//!   others do not count: they may not be on the medium yet.
//! - A segment of scratch is sealed early: at half the length of all useful states, and at least a sixteenth of the
//!   usual limit. Then segments with superseded states only are replaced.
//! - A useful state keeps its whole segment. Once such segments are much longer than their useful states, these are
//!   copied, made durable and read back, and the segments are replaced too.
//!
//! A manifest names the replaced segments, and they are removed once no kept manifest lists them: so no generation
//! that a power failure leaves misses anything it vouches for. Only the time of grace is left out: see
//! [`replaced`](crate::compact::replaced). Manifests do not list the journals of ranks that commit together, so
//! these are removed at once.

use std::collections::{HashMap, HashSet};

use sde::archiver::ArchiveError;

use crate::catalog::index::Place;
use crate::catalog::segments::KnownSegment;
use crate::format::class::Part;
use crate::format::id::UniqueId;
use crate::format::index_block::Rows;
use crate::locks::lock;
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::store::{DirStore, warn_unsealed};

/// The least length at which scratch segments are sealed, as a part of other segments' limit.
const PART: u64 = 16;

/// Held by a thread that removes superseded scratch, or hands over this rank's saves to other ranks.
#[derive(Default)]
pub(crate) struct Trimming;

impl DirStore {
    /// Seals segments that are full. Gives the part of each.
    pub(crate) fn seal_full(&self) -> Vec<Part> {
        let mut sealed = Vec::new();
        warn_unsealed(self.0.writer.seal_full(|segment, block| {
            sealed.push(segment.part);
            self.0.catalog.note_sealed(&segment, block);
        }));
        sealed
    }

    /// Sets the length at which scratch segments are sealed, by the bytes of useful scratch.
    pub(crate) fn note_scratch_of_use(&self, bytes: u64) {
        let writer = &self.0.writer;
        let most = writer.config().segment_size;
        writer.set_scratch_size((bytes / 2).clamp(most / PART, most));
    }

    /// Removes superseded scratch.
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
            // On a full disk the next manifest needs that room.
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

    /// The sealed scratch segments that this store has written, and their useful frames.
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
            // Frames in other segments can be read, but may not be on the medium yet.
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

    /// Has segments go that hold nothing of use.
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
