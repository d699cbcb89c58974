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
//! time of grace they are not given, see [`retired`](crate::compact::replaced). The journals of ranks that commit
//! together are listed nowhere, and removed at once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sde::ArchiveError;

use crate::catalog::segments::KnownSegment;
use crate::format::class::Part;
use crate::format::id::{self, UniqueId};
use crate::format::index_block::Row;
use crate::format::manifest::ReplacedSegment;
use crate::format::segment::Segment;
use crate::locks::lock;
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::store::{DirStore, warn_unsealed};

/// Scratch segments are sealed when they are as long as this part of others.
const PART: u64 = 16;

/// What a thread holds that removes superseded scratch, or hands over to other ranks what this one has saved.
#[derive(Default)]
pub(crate) struct Trimming;

/// A sealed segment of scratch that this store has written.
struct OwnScratch {
    segment: Arc<Segment>,
    /// Up to where its frames reach.
    end: u64,
    /// The states in it that are of use.
    rows: Vec<Row>,
    /// How many bytes they have.
    bytes: u64,
}

/// Up to where segments are durable.
type Durable = HashMap<UniqueId, u64>;

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
        let own = self.own_scratch();
        let (mut replaced, kept): (Vec<OwnScratch>, Vec<OwnScratch>) =
            own.into_iter().partition(|one| one.rows.is_empty());
        let of_use = kept.iter().map(|one| one.bytes).sum();
        self.note_scratch_of_use(of_use);
        let there: u64 = kept.iter().map(|one| one.end).sum();
        if there > 2 * of_use + 2 * scratch {
            self.write_anew(&kept)?;
            replaced.extend(kept);
        }
        self.replace(&replaced)
    }

    /// The sealed segments of scratch that this store has written, and what is of use in them.
    fn own_scratch(&self) -> Vec<OwnScratch> {
        let catalog = &self.0.catalog;
        let written = self.0.writer.written().into_iter();
        let mut durable: Durable = written.map(|(one, length)| (one.id, length)).collect();
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
            let mut since = HashMap::new();
            // What is in other segments may not be on the medium yet, although it can be read.
            let mut since = |prefix: u64| {
                *since.entry(prefix).or_insert_with(|| {
                    index.of_use(prefix, |place| {
                        let end = durable.get(&place.segment.id);
                        end.is_some_and(|end| place.at < *end)
                    })
                })
            };
            let own = own.into_values();
            own.map(|one| {
                let rows = rows.remove(&one.segment.id).unwrap_or_default();
                OwnScratch::of(&one, rows, &mut since)
            })
            .collect()
        })
    }

    /// Writes what is of use in some segments to others.
    fn write_anew(&self, all: &[OwnScratch]) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let sources = all.iter().map(|one| self.source(&one.segment, false));
        let sources: Vec<Source> = sources.collect::<Result<_, _>>()?;
        let of_use: HashSet<(UniqueId, u64)> = all
            .iter()
            .flat_map(|one| one.rows.iter().map(|row| (one.segment.id, row.at())))
            .collect();
        let selected = Selected::of(&sources, |source, row| {
            of_use.contains(&(source.segment.id, row.at()))
        });
        let config = inner.writer.config().clone();
        self.rewrite(&inner.catalog, config, &sources, &selected)?;
        Ok(())
    }

    /// Has segments go in which nothing is of use.
    fn replace(&self, replaced: &[OwnScratch]) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        if replaced.is_empty() {
            return Ok(());
        }
        if inner.team.get().is_some() {
            self.remove_own(replaced);
            return Ok(());
        }
        let at = id::now(&**inner.vfs());
        let replaced = replaced.iter();
        let replaced = replaced.map(|one| ReplacedSegment::new(&one.segment, one.end, at));
        self.write_manifest(&replaced.collect::<Vec<_>>())?;
        self.remove_replaced(self.0.grace);
        Ok(())
    }

    /// Removes segments that no manifest lists.
    fn remove_own(&self, all: &[OwnScratch]) {
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

impl OwnScratch {
    fn of(known: &KnownSegment, mut all: Vec<Row>, mut since: impl FnMut(u64) -> u64) -> Self {
        all.sort_unstable_by_key(Row::at);
        let ends = all.iter().skip(1).map(Row::at).chain([known.end]);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for (row, end) in all.iter().zip(ends) {
            if row.saved_at >= since(row.prefix) {
                rows.push(*row);
                bytes += end - row.at();
            }
        }
        Self {
            segment: Arc::clone(&known.segment),
            end: known.end,
            rows,
            bytes,
        }
    }
}
