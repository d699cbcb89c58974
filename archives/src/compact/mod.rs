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
pub(crate) mod replaced;
pub(crate) mod room;
pub(crate) mod scratch;

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sde::Key;
use sde::archiver::{ArchiveError, Selection as SaveSelection};

use crate::catalog::segments::KnownSegment;
use crate::catalog::{Catalog, LOOKS, scan};
use crate::format::class::Part;
use crate::format::directory::{self, FORMAT};
use crate::format::frame::FrameKind;
use crate::format::id::{self, UniqueId};
use crate::format::manifest::{ReplacedSegment, Sweep};
use crate::format::metadata::EntryBody;
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::format::uses::{self, UsesOf};
use crate::locks::lock;
use crate::retention::Retention;
use crate::rewrite::select::{EVERYTHING, Filter, Selection};
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::rewrite::write::Output;
use crate::store::{DirStore, where_files_are};
use crate::work::Work;
use crate::writer::segment_writer::WriterConfig;

use replaced::Removed;

/// The number of short segments of a part that are not merged.
pub(crate) const MANY: usize = 32;

/// A segment is worth replacing if more than one part in this many is of no use.
const WORTH: u64 = 8;

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
        self.write_uses(SaveSelection::Archive)?;
        let mut freed = 0;
        let mut done = self.with_room(retention, &mut freed, || {
            self.with_reserve(|| where_files_are(|| self.compact_alone(retention)))
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
        where_files_are(|| {
            self.refresh()?;
            let there = self.sources()?;
            let plan = self.plan(&there, retention, id::now(&**self.0.vfs()))?;
            let Removed { files, bytes } = self.would_remove(self.0.grace);
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

    fn compact_alone(&self, retention: &Retention) -> Result<Compacted, ArchiveError> {
        let inner = &*self.0;
        inner.seal();
        let mut removed = self.remove_what_is_over(inner.grace)?;
        let before = self.bytes();
        self.close_what_is_left()?;
        self.refresh()?;
        let there = self.sources()?;
        let now = id::now(&**inner.vfs());
        let plan = self.plan(&there, retention, now)?;
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

    /// Decides which segments are replaced, and which of their frames are kept.
    fn plan(
        &self,
        there: &CompactionInput,
        retention: &Retention,
        now: u64,
    ) -> Result<Plan, ArchiveError> {
        let mut selection = there.selection(self);
        let (given_up, before) = selection.give_up(retention, &there.uses, now)?;
        selection.given_up = Some(&given_up);
        let selected = match given_up.len() {
            0 => before.clone(),
            _ => selection.run()?,
        };
        let taken = self.worth(&there.sources, &before, &selected);
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

    /// The segments at rest that this process may replace, and the uses and contents named in the others.
    fn sources(&self) -> Result<CompactionInput, ArchiveError> {
        let inner = &*self.0;
        let catalog = &inner.catalog;
        let known: Vec<KnownSegment> = lock(&catalog.segments).known().collect();
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
            } else if segment.part == Part::Entries {
                let read = there.stays(self, segment);
                read.map_err(|error| ArchiveError::io("reading", &segment.path, error))?;
            }
        }
        let sources = &mut there.sources;
        sources.sort_by(|a, b| a.segment.path.cmp(&b.segment.path));
        Ok(there)
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

/// The input of a compaction: the segments it may replace, and facts of the others.
#[derive(Default)]
struct CompactionInput {
    sources: Vec<Source>,
    /// Uses recorded in the others.
    uses: UsesOf,
    /// Contents needed by entries in the others.
    contents: HashSet<Key>,
    /// Whether contents are kept even if no entry is known to need them.
    keeps_contents: bool,
}

/// The decisions of a compaction.
struct Plan {
    taken: Vec<bool>,
    selected: Selected,
    given_up: usize,
}

impl Plan {
    /// The segments that are replaced, and their numbers.
    fn taken<'a>(&self, there: &'a CompactionInput) -> impl Iterator<Item = (usize, &'a Source)> {
        let all = there.sources.iter().enumerate();
        all.filter(|(number, _)| self.taken[*number])
    }

    /// What comes of it, without what is written and removed.
    fn outcome(&self, there: &CompactionInput) -> Compacted {
        let taken = || self.taken(there);
        let kept = taken().map(|(number, one)| self.selected.bytes(one, number).0);
        Compacted {
            given_up: self.given_up,
            replaced: taken().count(),
            bytes_before: taken().map(|(_, one)| one.length).sum(),
            bytes_after: kept.sum(),
            ..Compacted::default()
        }
    }
}

impl CompactionInput {
    fn selection<'a>(&'a self, of: &'a DirStore) -> Selection<'a> {
        let filter = Filter {
            contents: (!self.keeps_contents).then_some(&self.contents),
            ..EVERYTHING
        };
        Selection::new(&of.0.catalog, &self.sources, filter)
    }

    fn stays(&mut self, of: &DirStore, segment: &Segment) -> io::Result<()> {
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
        scanned.map(drop)
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
