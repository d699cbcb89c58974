//! Compaction: replaces segments, so that useless frames go and small segments are merged.
//!
//! A store only grows: superseded values, the scratch of ended runs and the few frames of each short process stay
//! where they are. A compaction copies the frames that count to new segments and commits manifests that call the
//! old ones replaced. Nothing is changed in place, so it can stop at any moment: until the manifests are there, old
//! and new segments count, with the same frames. The old ones are removed [later](crate::compact::replaced).
//!
//! In a [group's](crate::format::trust) store each member's segments are replaced by that member only: the owner of the
//! file is the author of what is in it. Limits count these alone.
//!
//! Correctness needs no lock. Only segments at rest are taken: sealed ones, and those
//! [closed](crate::compact::replaced) a time of grace ago. Frames that a writer appends even then still count. Two
//! compactions at once do the same work twice and lose nothing, except that one may give up for a limit what the
//! other has copied. The lock that keeps them apart avoids both.

mod keep;
mod merge;
mod plan;
pub(crate) mod replaced;
pub(crate) mod room;
pub(crate) mod scratch;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sde::archiver::{ArchiveError, Selection};

use crate::catalog::{Catalog, LOOKS};
use crate::format::directory::{self, FORMAT};
use crate::format::id::{self, UniqueId};
use crate::format::manifest::{ReplacedSegment, Sweep};
use crate::format::segment::Segment;
use crate::locks::lock;
use crate::retention::Retention;
use crate::rewrite::removal::Wanting;
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::rewrite::write::Output;
use crate::store::{DirStore, where_files_are};
use crate::work::Work;
use crate::writer::segment_writer::WriterConfig;

use replaced::Removed;

/// The number of short segments of a part that are not merged.
pub(crate) const MANY: usize = 32;

/// The result of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Another process was compacting, so nothing was done.
    pub busy: bool,
    /// The segments that were replaced. They are removed after a time of grace.
    pub replaced: usize,
    /// The segments written in their place.
    pub written: usize,
    /// The bytes in the segments that were replaced.
    pub bytes_before: u64,
    /// The bytes of them that are kept.
    pub bytes_after: u64,
    /// The number of keys that lost something to the limits of the [`Retention`].
    pub given_up: usize,
    /// The number of keys that [`remove`](DirStore::remove) took out.
    pub taken_out: usize,
    /// The bytes of what counted and was given up or taken out, with contents of output files that nobody else needs.
    pub dropped: u64,
    /// The number of keys that were to be taken out and stay: a file that is being written has some of it.
    pub left: usize,
    /// The files of replaced segments that were removed.
    pub removed: usize,
    /// The bytes freed by removing files.
    pub freed: u64,
}

impl DirStore {
    /// Makes room: copies the frames that count to new segments, and applies the retention's limits.
    ///
    /// Others may read and write meanwhile. The old segments are removed by a later call, or when a generation is
    /// committed, after the time of [grace](crate::StoreOptions::grace). It takes as long as reading all segments that
    /// have no writer, and writing the kept part of those replaced. [`would_compact`](Self::would_compact) only
    /// tells what it would do.
    ///
    /// ```
    /// use sde_archives::{DirStore, Retention};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// let store = DirStore::open(&path)?;
    /// let done = store.compact(&Retention::new())?;
    /// assert_eq!(done.replaced, 0);
    /// # Ok::<(), sde::archiver::ArchiveError>(())
    /// ```
    ///
    /// On a full disk it first removes replaced segments, even before the time of grace is over. It also removes
    /// segments without useful frames, or whose frames all go for the limits of the retention.
    ///
    /// # Errors
    /// If the store can't be read or written. Nothing is lost then.
    pub fn compact(&self, retention: &Retention) -> Result<Compacted, ArchiveError> {
        self.compact_with(retention, None)
    }

    /// Compacts; takes the wanted keys out too.
    pub(crate) fn compact_with(
        &self,
        retention: &Retention,
        wanted: Option<Wanting<'_>>,
    ) -> Result<Compacted, ArchiveError> {
        self.check_writable()?;
        // A save may hold the lock for a moment. A medium without locks needs none.
        let tries = (0..LOOKS).map(|_| self.lock_against_compactions());
        let mut tries = tries.inspect(|_| std::thread::yield_now());
        let alone = tries.find(|alone| !matches!(alone, Ok(None)));
        if alone.is_none() {
            return Ok(Compacted {
                busy: true,
                ..Compacted::default()
            });
        }
        self.write_uses(Selection::Archive)?;
        let mut freed = 0;
        let mut done = self.with_room(retention, &mut freed, || {
            self.with_reserve(|| where_files_are(|| self.compact_alone(retention, wanted)))
        })?;
        done.freed += freed;
        Ok(done)
    }

    /// Tells what [`compact`](Self::compact) would do with these limits now, and changes nothing. It only reads,
    /// needs no lock, and works with a store opened for reading only.
    ///
    /// ```
    /// use sde_archives::{DirStore, Retention};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// # drop(DirStore::open(&path)?);
    /// let store = DirStore::open_read_only(&path)?;
    /// assert_eq!(store.would_compact(&Retention::new().capacity(1 << 30))?.given_up, 0);
    /// # Ok::<(), sde::archiver::ArchiveError>(())
    /// ```
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn would_compact(&self, retention: &Retention) -> Result<Compacted, ArchiveError> {
        self.would_compact_with(retention, None)
    }

    pub(crate) fn would_compact_with(
        &self,
        retention: &Retention,
        wanted: Option<Wanting<'_>>,
    ) -> Result<Compacted, ArchiveError> {
        where_files_are(|| {
            self.refresh()?;
            let there = self.sources()?;
            let plan = self.plan(&there, retention, wanted, id::now(&**self.0.vfs()))?;
            let Removed { files, bytes } = self.would_remove_replaced(self.0.grace);
            Ok(Compacted {
                removed: files,
                freed: bytes,
                ..plan.outcome(&there)
            })
        })
    }

    /// Takes the lock that keeps compactions apart, held until the value is dropped; `None` if another process
    /// holds it. An error on a medium without locks.
    pub(crate) fn lock_against_compactions(&self) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.0.vfs().try_lock(&self.0.dir.join(FORMAT))
    }

    fn compact_alone(
        &self,
        retention: &Retention,
        wanted: Option<Wanting<'_>>,
    ) -> Result<Compacted, ArchiveError> {
        let inner = &*self.0;
        inner.seal();
        let mut removed = self.remove_what_is_over(inner.grace)?;
        let before = self.bytes();
        self.close_what_is_left()?;
        self.refresh()?;
        let there = self.sources()?;
        let now = id::now(&**inner.vfs());
        let plan = self.plan(&there, retention, wanted, now)?;
        let mut done = plan.outcome(&there);
        let left = before.saturating_sub(done.bytes_before) + done.bytes_after;
        *lock(&inner.room.swept) = Some(Sweep {
            at: now,
            bytes: left,
        });
        if done.replaced > 0 {
            let (from, to) = (&inner.catalog, self.another_writer());
            done.written = self.rewrite(from, to, &there.sources, &plan.selected)?;
            self.write_manifest(&self.replaced(plan.taken(&there).map(|(_, one)| one)))?;
            removed += self.remove_what_is_over(inner.grace)?;
        }
        (done.removed, done.freed) = (removed.files, removed.bytes);
        Ok(done)
    }

    /// A configuration for another writer than that of this process's saves.
    pub(crate) fn another_writer(&self) -> WriterConfig {
        WriterConfig {
            opening: UniqueId::new(),
            ..self.0.writer.config().clone()
        }
    }

    /// Copies the selected frames to new segments of this store, and adds these to its catalog; gives their number.
    pub(crate) fn rewrite(
        &self,
        from: &Catalog,
        to: WriterConfig,
        sources: &[Source],
        selected: &Selected,
    ) -> Result<usize, ArchiveError> {
        let (_, sealed) = Output::new(to, false).write(from, sources, selected)?;
        let count = sealed.len();
        for (segment, block) in sealed {
            self.0.catalog.note_new(&segment, block);
        }
        Ok(count)
    }

    /// Removes unfinished files, and segments replaced a time of grace ago. If only older manifests list such a
    /// segment, it commits another first.
    fn remove_what_is_over(&self, grace: Duration) -> Result<Removed, ArchiveError> {
        let inner = &*self.0;
        let unfinished = directory::remove_unfinished(&**inner.vfs(), &inner.dir, grace);
        inner.sharing.work.iter().for_each(Work::clean);
        self.refresh()?;
        let mut removed = self.remove_replaced(grace);
        removed.bytes += unfinished;
        if self.waits_for_another_generation(grace) {
            self.write_manifest(&[])?;
            removed += self.remove_replaced(grace);
        }
        Ok(removed)
    }

    /// Opens a segment for copying.
    pub(crate) fn source(
        &self,
        segment: &Arc<Segment>,
        looks_for_damage: bool,
    ) -> Result<Source, ArchiveError> {
        let from = lock(&self.0.catalog.segments).first(&segment.id);
        let source = Source::open(&**self.0.vfs(), Arc::clone(segment), from, looks_for_damage);
        source.map_err(|error| ArchiveError::io("reading", &segment.path, error))
    }

    /// Whether the writer of an unsealed segment seems to have ended.
    pub(crate) fn is_left(&self, path: &Path) -> bool {
        let vfs = self.0.vfs();
        match vfs.try_lock(path) {
            Ok(lock) => lock.is_some(),
            // Without locks, a segment not written to for the time of grace counts as left.
            Err(_) => {
                let found = vfs.look(path).ok().flatten();
                let at = found.and_then(|found| found.written_at);
                at.and_then(|at| vfs.now().duration_since(at).ok())
                    .is_some_and(|age| age > self.0.grace)
            }
        }
    }

    fn replaced<'s>(&self, sources: impl IntoIterator<Item = &'s Source>) -> Vec<ReplacedSegment> {
        let now = id::now(&**self.0.vfs());
        let replaced = sources.into_iter().map(|one| {
            // A segment without values has no readers, so it needs no time of grace.
            let at = if one.has_values() { now } else { 0 };
            ReplacedSegment::new(&one.segment, one.length, at)
        });
        replaced.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sde::{Sde, inputs};

    use crate::format::id;
    use crate::retention::Retention;
    use crate::store::DirStore;
    use crate::vfs::Disk;

    #[sde::app]
    fn double(number: u64) -> u64 {
        2 * number
    }

    /// A clock was once a century ahead. Later saves are stamped later still, but earlier ones are no older for
    /// that.
    #[test]
    fn ages_are_counted_from_the_time_of_day() {
        let dir = tempfile::tempdir().unwrap();
        let store = DirStore::open(dir.path()).unwrap();
        let sde = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .build()
            .unwrap();
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
