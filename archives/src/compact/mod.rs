//! Taking the place of segments: what is of no use any more goes, and what is small comes
//! together.
//!
//! A store only grows: a value that was computed again, the scratch of a run that has ended and
//! the few frames of each short process stay where they are. A compaction copies what
//! counts of some segments to new ones and commits manifests that say which are replaced. Nothing
//! is changed in place, so it can be stopped at any moment: until the manifests are there, both
//! the old and the new segments count, and they say the same. The old ones are removed
//! [later](crate::compact::replaced).
//!
//! It rests on no lock. Only segments that nobody writes to are taken, which a lock on the segment
//! tells where there are locks; where that is wrong, what is appended after all still
//! counts. Two compactions at once do the same work twice, and lose nothing; the lock
//! that keeps them apart is only to spare that.

pub(crate) mod copy;
mod evict;
mod keep;
mod live;
mod merge;
mod plan;
pub(crate) mod replaced;
mod retention;
pub(crate) mod room;
pub(crate) mod scratch;
mod survey;
mod variables;

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sde::{ArchiveError, Key, Selection};

use crate::catalog::segments::KnownSegment;
use crate::format::class::Part;
use crate::format::directory::{self, FORMAT};
use crate::format::id::{self, UniqueId};
use crate::format::index_block::IndexBlock;
use crate::format::manifest::{ReplacedSegment, Sweep};
use crate::format::segment::Segment;
use crate::locks::lock;
use crate::store::uses::UsesOf;
use crate::store::write_manifest::relative;
use crate::store::{DirStore, LOOKS};
use crate::writer::segment_writer::WriterConfig;

use plan::Context;
pub(crate) use plan::Plan;
use replaced::Removed;
pub use retention::{Order, Retention};
pub(crate) use survey::{
    Candidate, EntryFacts, FrameContent, FrameInfo, check_scratch, entry_facts,
};
pub use variables::LimitError;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Somebody else was at it, and nothing was done.
    pub busy: bool,
    /// The segments that were replaced. They are removed after a time of grace.
    pub replaced: usize,
    /// The segments that take their place.
    pub written: usize,
    /// How many bytes were replaced.
    pub bytes_before: u64,
    /// How many of them are kept.
    pub bytes_after: u64,
    /// Of how many keys something was given up for the limits of the [`Retention`].
    pub given_up: usize,
    /// The files of replaced segments that were removed.
    pub removed: usize,
    /// How many bytes were freed by removing files.
    pub freed: u64,
}

impl DirStore {
    /// Makes room: copies what counts to new segments, and gives up what the retention says.
    ///
    /// Others may read and write meanwhile. The old segments are removed when this is called
    /// again, or a generation committed, after the time of
    /// [grace](crate::Options::grace). Takes as long as reading the segments that nobody writes to
    /// any more, and writing what is kept of those that are replaced. A
    /// [dry run](Retention::dry_run) only reads, and a store opened for reading only is enough for it.
    ///
    /// ```
    /// use sde_archives::{DirStore, Retention};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// let store = DirStore::open(&path)?;
    /// let done = store.compact(&Retention::new())?;
    /// assert_eq!(done.replaced, 0);
    /// # Ok::<(), sde::ArchiveError>(())
    /// ```
    ///
    /// On a full disk room is made first by removing what was replaced, whether the time of grace is over or not, and
    /// segments in which nothing is of use or all is given up for the limits of the retention.
    ///
    /// # Errors
    /// If the store can't be read or written. What was there is still there then.
    pub fn compact(&self, retention: &Retention) -> Result<Compacted, ArchiveError> {
        if !retention.dry_run {
            self.check_writable()?;
        }
        let inner = &*self.0;
        let format = inner.dir.join(FORMAT);
        // Where there are no locks none is needed; and who only reads is in nobody's way.
        let alone = (!retention.dry_run).then(|| inner.vfs().try_lock(&format));
        if matches!(alone, Some(Ok(None))) {
            return Ok(Compacted {
                busy: true,
                ..Compacted::default()
            });
        }
        if retention.dry_run {
            return self.compact_here(retention);
        }
        let mut freed = 0;
        let mut done = self.with_room(retention, &mut freed, || self.compact_here(retention))?;
        done.freed += freed;
        Ok(done)
    }

    fn compact_here(&self, retention: &Retention) -> Result<Compacted, ArchiveError> {
        for _ in 1..LOOKS {
            match self.compact_alone(retention) {
                // A run that goes on has superseded what was in it, or another compaction copied it.
                Err(error) if error.is_not_found() => {}
                done => return done,
            }
        }
        self.compact_alone(retention)
    }

    fn compact_alone(&self, retention: &Retention) -> Result<Compacted, ArchiveError> {
        let inner = &*self.0;
        let mut removed = Removed::default();
        if !retention.dry_run {
            self.write_uses(Selection::Archive)?;
            inner.seal(|_| 0);
            removed += self.remove_what_is_over(inner.grace)?;
        }
        let before = self.bytes();
        self.refresh()?;
        let segment_size = inner.writer.config().segment_size;
        let (candidates, uses, contents) = self.candidates_to_replace()?;
        let context = Context {
            retention,
            uses,
            contents,
            segment_size,
            now: id::now(&**inner.vfs()),
        };
        let plan = Plan::new(candidates, &context);
        let mut done = Compacted {
            given_up: plan.given_up.len(),
            replaced: plan.candidates.len(),
            bytes_before: plan.candidates.iter().map(|one| one.length).sum(),
            bytes_after: plan.kept_bytes(),
            ..Compacted::default()
        };
        if retention.dry_run {
            let Removed { files, bytes } = self.would_remove(inner.grace);
            (done.removed, done.freed) = (files, bytes);
            return Ok(done);
        }
        let left = before.saturating_sub(done.bytes_before) + done.bytes_after;
        *lock(&inner.room.swept) = Some(Sweep {
            at: context.now,
            bytes: left,
        });
        if !plan.candidates.is_empty() {
            done.written = self.carry_out(&plan)?;
            removed += self.remove_what_is_over(inner.grace)?;
        }
        (done.removed, done.freed) = (removed.files, removed.bytes);
        Ok(done)
    }

    /// Writes what is kept, and has it take the place of what was there; gives how many segments that took.
    fn carry_out(&self, plan: &Plan) -> Result<usize, ArchiveError> {
        let written = self.write(plan)?;
        self.write_manifest(&self.replaced(&plan.candidates))?;
        Ok(written)
    }

    /// Removes what nobody finished, and what was replaced before the time of grace; if only older generations keep it, by
    /// way of another.
    fn remove_what_is_over(&self, grace: Duration) -> Result<Removed, ArchiveError> {
        let inner = &*self.0;
        let unfinished = directory::remove_unfinished(&**inner.vfs(), &inner.dir, grace);
        inner.sharing.clean();
        self.refresh()?;
        let mut removed = self.remove_replaced(grace);
        removed.bytes += unfinished;
        if self.waits_for_another_generation(grace) {
            self.write_manifest(&[])?;
            removed += self.remove_replaced(grace);
        }
        Ok(removed)
    }

    /// The segments that nobody writes to any more; and of the others what they say of uses, and the contents that they
    /// need.
    fn candidates_to_replace(
        &self,
    ) -> Result<(Vec<Candidate>, UsesOf, HashSet<Key>), ArchiveError> {
        let inner = &*self.0;
        let catalog = &inner.catalog;
        let replaced = lock(&catalog.manifests).replaced();
        let known: Vec<KnownSegment> = lock(&catalog.segments).known().collect();
        let mut candidates = Vec::new();
        let mut uses = UsesOf::default();
        let mut contents = HashSet::new();
        for known in known {
            let segment = &known.segment;
            let failed = |error| ArchiveError::io("reading", &segment.path, error);
            let sealed = match self.is_sealed(segment) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                sealed => sealed.map_err(failed)?,
            };
            if sealed || self.is_left(&segment.path) {
                let from = replaced.get(&segment.id).copied().unwrap_or(0);
                match Candidate::survey(catalog, Arc::clone(segment), from, sealed) {
                    // Another compaction was done with it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    candidate => candidates.push(candidate.map_err(failed)?),
                }
            } else if segment.part == Part::Entries {
                let surveyed = survey::uses(&**inner.vfs(), segment, &mut uses, &mut contents);
                surveyed.map_err(failed)?;
            }
        }
        candidates.sort_by(|a, b| a.segment.path.cmp(&b.segment.path));
        Ok((candidates, uses, contents))
    }

    fn is_sealed(&self, segment: &Segment) -> io::Result<bool> {
        let file = self.0.vfs().open(&segment.path)?;
        let length = file.length()?;
        Ok(IndexBlock::read(segment, &*file, length)?.is_some())
    }

    /// Whether the writer of a segment that is not sealed has ended, as far as can be told.
    pub(crate) fn is_left(&self, path: &Path) -> bool {
        let vfs = self.0.vfs();
        match vfs.try_lock(path) {
            Ok(lock) => lock.is_some(),
            // Where there are no locks, one that was not written to for long counts as left.
            Err(_) => {
                let found = vfs.look(path).ok().flatten();
                let at = found.and_then(|found| found.written_at);
                at.and_then(|at| vfs.now().duration_since(at).ok())
                    .is_some_and(|age| age > self.0.grace)
            }
        }
    }

    /// Writes what is kept; gives how many segments that took.
    fn write(&self, plan: &Plan) -> Result<usize, ArchiveError> {
        let inner = &*self.0;
        let config = WriterConfig {
            vfs: Arc::clone(inner.vfs()),
            dir: inner.dir.clone(),
            opening: UniqueId::new(),
            segment_size: inner.writer.config().segment_size,
        };
        copy::all(&config, plan, &inner.catalog)
    }

    fn replaced<'c>(
        &self,
        candidates: impl IntoIterator<Item = &'c Candidate>,
    ) -> Vec<ReplacedSegment> {
        let at = id::now(&**self.0.vfs());
        let replaced = candidates.into_iter().map(|one| ReplacedSegment {
            path: relative(&self.0.dir, &one.segment.path),
            id: one.segment.id.to_string(),
            length: one.length,
            at,
        });
        replaced.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sde::{Sde, inputs};

    use super::Retention;
    use crate::format::id;
    use crate::store::DirStore;
    use crate::vfs::Disk;

    #[sde::app]
    fn double(number: u64) -> u64 {
        2 * number
    }

    /// One run whose clock was a century ahead: what is saved after it is stamped later still, and
    /// what was saved before it is no older for that.
    #[test]
    fn ages_are_counted_from_the_time_of_day() {
        let dir = tempfile::tempdir().unwrap();
        let store = DirStore::open(dir.path()).unwrap();
        let sde = Sde::builder().store(store.clone()).build().unwrap();
        sde.run(&double, &inputs! { number: 4_u64 }).unwrap();
        sde.finish().unwrap();
        let century = Duration::from_secs(100 * 365 * 86_400);
        let ahead = id::now(&Disk) + u64::try_from(century.as_nanos()).unwrap();
        store.0.catalog.clock.saw(ahead);
        assert!(store.0.catalog.clock.stamp() > ahead);
        let hour = Duration::from_secs(3600);
        let old = Retention::new().results().max_age(hour);
        assert_eq!(store.compact(&old).unwrap().given_up, 0);
        let old = Retention::new().results().max_age(Duration::ZERO);
        assert_eq!(store.compact(&old).unwrap().given_up, 1);
    }
}
