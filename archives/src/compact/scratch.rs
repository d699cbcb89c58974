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

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sde::key::BuildKeyHasher;
use sde::{ArchiveError, Key, Selection};

use crate::catalog::index::{Index, Place};
use crate::catalog::table::{Row, Table};
use crate::compact::{Candidate, What, copy};
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::format::manifest::Retired;
use crate::format::segment::Segment;
use crate::read::frame;
use crate::store::write_manifest::relative;
use crate::store::{DirStore, lock};
use crate::vfs::VfsFile;

/// How many states of a run are of use.
const STATES: usize = 2;
/// Scratch segments are sealed when they are as long as this part of others.
const PART: u64 = 16;

/// What is remembered from one time to the next.
#[derive(Default)]
pub(crate) struct Trim {
    /// One at a time; and nobody while what there is is handed over.
    pub(crate) alone: Mutex<()>,
    /// How many bytes were of use.
    of_use: AtomicU64,
}

/// A sealed segment of scratch that this store has written.
struct Own {
    segment: Arc<Segment>,
    /// Up to where its frames reach.
    end: u64,
    /// The states in it that are of use.
    rows: Vec<Row>,
    /// How many bytes they have.
    bytes: u64,
}

/// Since when the states of each run are of use.
type Since = HashMap<Key, u64, BuildKeyHasher>;

/// Up to where segments are durable.
type Durable = HashMap<UniqueId, u64>;

impl DirStore {
    /// Seals what has grown long, and removes what is superseded of scratch.
    pub(crate) fn seal_what_is_long(&self) {
        let inner = &*self.0;
        let most = inner.committer.ground().segment_size;
        let of_use = inner.trim.of_use.load(Ordering::Relaxed);
        let scratch = (of_use / 2).clamp(most / PART, most);
        let sealed = inner.seal(|class| match class {
            Class::Scratch => scratch,
            Class::Result | Class::Intermediate => most,
        });
        let trimmed = match (sealed, inner.trim.alone.try_lock()) {
            (true, Ok(_alone)) => self.trim(scratch),
            _ => Ok(()),
        };
        if let Err(error) = trimmed {
            // Nothing is lost.
            sde::warning!("superseded states of unfinished runs are not removed: {error}");
        }
    }

    fn trim(&self, scratch: u64) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        if inner.team.get().is_none() {
            // On a full disk a manifest needs that room.
            self.remove_retired();
            self.refresh()?;
        }
        let durable = self.durable_here();
        let own = self.known(|index| own(index, &durable));
        let (mut replaced, kept): (Vec<Own>, Vec<Own>) =
            own.into_iter().partition(|one| one.rows.is_empty());
        let of_use = kept.iter().map(|one| one.bytes).sum();
        inner.trim.of_use.store(of_use, Ordering::Relaxed);
        let there: u64 = kept.iter().map(|one| one.end).sum();
        if there > 2 * of_use + 2 * scratch {
            self.write_anew(&kept)?;
            replaced.extend(kept);
        }
        self.replace(&replaced)
    }

    /// What this store has made durable. What is in other segments may not be on the medium yet, although
    /// it can be read.
    fn durable_here(&self) -> Durable {
        let written = self.0.committer.written().into_iter();
        let mut durable: Durable = written.map(|(_, id, _, length)| (id, length)).collect();
        for id in lock(&self.0.seen).all_sealed() {
            durable.insert(id, u64::MAX);
        }
        durable
    }

    /// Writes what is of use in some segments to the one that is being written, durable.
    fn write_anew(&self, all: &[Own]) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let mut frames = Vec::new();
        for one in all {
            let failed = |error| ArchiveError::io("reading", &one.segment.path, error);
            let segment = Arc::clone(&one.segment);
            let found = Candidate::survey(&inner.medium, segment, 0, true).map_err(failed)?;
            let file = inner.medium.open(&one.segment.path).map_err(failed)?;
            let file: Arc<dyn VfsFile> = Arc::from(file);
            for row in &one.rows {
                let mut held = found
                    .frames
                    .iter()
                    .filter(|held| held.what == What::Scratch);
                let Some(held) = held.find(|held| held.at == row.at) else {
                    let why = format!("a state in {} is damaged", one.segment.path.display());
                    return Err(ArchiveError::Damaged { why });
                };
                frames.push(copy::frame(Class::Scratch, held, &file).map_err(failed)?);
            }
        }
        let written = inner.committer.begin().finish(frames)?;
        for one in &written {
            if let Some(row) = one.row {
                let (segment, at) = (Arc::clone(&one.segment), row.at);
                frame::check_scratch(&inner.medium, &Place { segment, at }, &row.key)?;
            }
        }
        inner.add_written(written);
        Ok(())
    }

    /// Has segments go in which nothing is of use.
    fn replace(&self, replaced: &[Own]) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        if replaced.is_empty() {
            return Ok(());
        }
        if inner.team.get().is_some() {
            self.remove_own(replaced);
            return Ok(());
        }
        let retired = replaced.iter().map(|one| Retired {
            path: relative(&inner.dir, &one.segment.path),
            id: one.segment.id.to_string(),
            length: one.end,
            // Nobody needs time to read it: who finds a state gone looks again.
            at: 0,
        });
        self.vouch(Selection::Checkpoint, &retired.collect::<Vec<_>>())?;
        self.remove_retired();
        Ok(())
    }

    /// Removes segments that no manifest lists.
    fn remove_own(&self, all: &[Own]) {
        let inner = &*self.0;
        let goes = |id: &UniqueId| all.iter().any(|one| one.segment.id == *id);
        lock(&inner.seen).forget(goes);
        inner.forget(goes);
        for one in all {
            let path = &one.segment.path;
            if let Err(error) = inner.medium.remove(path) {
                let path = path.display();
                sde::warning!("{path} is superseded and can't be removed: {error}");
            }
        }
    }
}

/// The sealed segments of scratch among these, and what is of use in them.
fn own(index: &Index, durable: &Durable) -> Vec<Own> {
    let mut since = Since::default();
    let is_own = |table: &&Table| {
        table.segment.class == Class::Scratch && durable.contains_key(&table.segment.id)
    };
    let tables = index.tables().iter().filter(is_own);
    let own = tables.map(|table| {
        of_table(table, |key| {
            *since.entry(*key).or_insert_with(|| {
                index.of_use(key, STATES, |place| {
                    durable
                        .get(&place.segment.id)
                        .is_some_and(|end| place.at < *end)
                })
            })
        })
    });
    own.collect()
}

fn of_table(table: &Table, mut since: impl FnMut(&Key) -> u64) -> Own {
    let mut all: Vec<Row> = table.rows().collect();
    all.sort_unstable_by_key(|row| row.at);
    let ends = all.iter().skip(1).map(|next| next.at).chain([table.end]);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for (row, end) in all.iter().zip(ends) {
        if row.saved_at >= since(&row.key) {
            rows.push(*row);
            bytes += end - row.at;
        }
    }
    Own {
        segment: Arc::clone(&table.segment),
        end: table.end,
        rows,
        bytes,
    }
}
