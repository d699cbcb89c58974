//! Making room on a full disk.
//!
//! A write that finds the disk full is tried again after something was freed, even by another thread. One thread at
//! a time makes room, while no other thread of its process saves. Things go in this order:
//!
//! 1. Replaced segments, even before their time of grace is over (a reader that misses one looks again), and
//!    unfinished files. Generations before the latest go too, since they would keep these.
//! 2. Segments without useful frames: scratch that was superseded or whose run has ended.
//! 3. Segments that become empty if the user's limits are tightened: to seven eighths of the frames they apply to,
//!    to a half, to nothing. Other frames stay.
//! 4. The segment with most useless bytes whose useful frames can be copied elsewhere.
//!
//! A manifest or a copy may use the reserve, a meaningless file that is removed while room is made. Without a
//! reserve, and without room even for a manifest, one of the segments that go is removed first. A power failure in
//! between makes the store report a loss that is none.

use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sde::archiver::ArchiveError;

use super::plan::CompactionInput;
use super::replaced::remove;
use crate::format::directory;
use crate::format::id;
use crate::format::manifest::{ReplacedSegment, Sweep};
use crate::locks::{lock, warnings_after};
use crate::retention::{Aim, Retention};
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::store::DirStore;

/// A store's limits, and its records of making room.
pub(crate) struct Room {
    pub(crate) retention: Retention,
    /// The compaction that the next manifest is to record.
    pub(crate) swept: Mutex<Option<Sweep>>,
    /// The time and the size of the store when all segments were checked and nothing could go.
    in_vain: Mutex<Option<(SystemTime, u64)>>,
    /// The number of times that room was made.
    made: AtomicU64,
}

/// The reserve's file name.
const RESERVE: &str = "RESERVE";
/// The reserve's length. Smaller stores have none.
const RESERVED: u64 = 1 << 18;

/// For this long after a vain attempt the segments are not checked again.
const IN_VAIN: Duration = Duration::from_secs(60);

impl Room {
    pub(crate) fn new(retention: Retention) -> Self {
        Self {
            retention,
            swept: Mutex::default(),
            in_vain: Mutex::default(),
            made: AtomicU64::default(),
        }
    }
}

impl DirStore {
    /// Runs a job; if the disk is full, runs it again after each step that frees something. Adds the freed bytes to
    /// `freed`.
    pub(crate) fn with_room<T>(
        &self,
        retention: &Retention,
        freed: &mut u64,
        job: impl Fn() -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let made = &self.0.room.made;
        loop {
            let before = made.load(Ordering::Acquire);
            let error = match job() {
                Err(error) if error.is_full() && self.0.team.get().is_none() => error,
                done => return done,
            };
            let bytes = self.make_room(retention, before);
            *freed += bytes;
            if bytes == 0 && made.load(Ordering::Acquire) == before {
                return Err(error.or_full());
            }
        }
    }

    /// Makes room, unless another thread has since `before` was read. Gives the number of bytes freed.
    fn make_room(&self, retention: &Retention, before: u64) -> u64 {
        let made = &self.0.room.made;
        warnings_after(|| {
            let _alone = self.0.writer.pause();
            if made.load(Ordering::Acquire) != before {
                return 0;
            }
            self.give_up_reserve();
            // The caller is to see the error of its write, not of freeing.
            let mut bytes = self.free_replaced().unwrap_or(0);
            if bytes == 0 {
                bytes = self.free_unused(retention).unwrap_or(0);
            }
            self.make_reserve();
            made.fetch_add(u64::from(bytes > 0), Ordering::Release);
            bytes
        })
    }

    /// Runs a job that makes room or writes a manifest; on a full disk the reserve is given up for it. The job
    /// saves nothing, and no other thread of this process saves meanwhile.
    pub(crate) fn with_reserve<T>(
        &self,
        job: impl Fn() -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let done = job();
        if !done.as_ref().is_err_and(ArchiveError::is_full) {
            return done;
        }
        warnings_after(|| {
            let _alone = self.0.writer.pause();
            if !self.give_up_reserve() {
                return done;
            }
            let done = job();
            self.make_reserve();
            done
        })
    }

    /// Gives whether there was a reserve.
    fn give_up_reserve(&self) -> bool {
        let inner = &*self.0;
        inner.vfs().remove(&inner.dir.join(RESERVE)).is_ok()
    }

    /// Makes the reserve, when no other thread makes room.
    pub(crate) fn keep_reserve(&self) {
        let _alone = self.0.writer.pause();
        self.make_reserve();
    }

    /// Makes the reserve, if the store is large enough and there is room. It is not synced: its loss does no harm.
    fn make_reserve(&self) {
        let inner = &*self.0;
        let (vfs, path) = (&**inner.vfs(), inner.dir.join(RESERVE));
        if inner.team.get().is_some() || self.bytes() < RESERVED {
            return;
        }
        match vfs.length_of(&path) {
            Ok(Some(RESERVED)) => return,
            // A power failure has cut it short.
            Ok(Some(_)) => drop(vfs.remove(&path)),
            _ => {}
        }
        // Random bytes, since some file systems store zeros or repeated bytes in no room.
        let mut bytes = vec![0; RESERVED as usize];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        let Ok(mut file) = vfs.create(&path) else {
            return;
        };
        if file.write_at(&[&bytes], 0).is_err() {
            // A partial reserve would block a later whole one.
            let _ = vfs.remove(&path);
        }
    }

    /// Removes replaced segments and unfinished files.
    fn free_replaced(&self) -> Result<u64, ArchiveError> {
        let inner = &*self.0;
        let vfs = &**inner.vfs();
        let unfinished = directory::remove_unfinished(vfs, &inner.dir, Duration::ZERO);
        self.refresh()?;
        if lock(&inner.catalog.segments).replaced().next().is_none() {
            return Ok(unfinished);
        }
        Ok(unfinished + self.remove_at_once())
    }

    /// Removes segments without useful frames; failing that, segments that tighter limits empty; failing that,
    /// copies the useful frames of one segment.
    fn free_unused(&self, retention: &Retention) -> Result<u64, ArchiveError> {
        let (now, bytes) = (self.0.vfs().now(), self.bytes());
        let is_new = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age < IN_VAIN);
        let in_vain = *lock(&self.0.room.in_vain);
        if in_vain.is_some_and(|(at, before)| is_new(at) && before == bytes) {
            return Ok(0);
        }
        // Frames of this process may go too.
        self.0.seal();
        if self.close_what_is_left()? {
            self.refresh()?;
        }
        let mut there = self.sources()?;
        // Without the lock a save may refer meanwhile to a content that no entry has named yet.
        let alone = self.lock_against_compactions();
        there.keeps_contents = matches!(alone, Ok(None));
        let nothing = Retention::new();
        let mut unused = self.unused(&there, &nothing)?;
        let tighter = [7, 4, 0].map(|eighths| retention.with_aim(Aim::Eighths(eighths)));
        let mut tightest = &nothing;
        for tighter in tighter.iter().filter(|one| one.has_limits()) {
            if unused.is_empty() {
                tightest = tighter;
                unused = self.unused(&there, tighter)?;
            }
        }
        let freed = match unused.is_empty() {
            true => self.free_by_copying(&there, tightest)?,
            false => self.remove_unused(&unused)?,
        };
        if freed == 0 {
            *lock(&self.0.room.in_vain) = Some((now, self.bytes()));
        }
        Ok(freed)
    }

    /// Copies the kept frames of one segment and removes it: the one with most other bytes for whose copy there is
    /// room.
    fn free_by_copying(
        &self,
        there: &CompactionInput,
        retention: &Retention,
    ) -> Result<u64, ArchiveError> {
        let selected = self.each_alone(there, retention, true)?;
        let sources = there.sources.iter().enumerate();
        let vfs = &**self.0.vfs();
        let dropped = |(number, one): (usize, &Source)| {
            // The rest of a failed write, behind the frames, goes too.
            let length = vfs.length_of(&one.segment.path).ok().flatten();
            let behind = length.map_or(0, |length| length.saturating_sub(one.length));
            (selected.bytes(one, number).1 + behind, number)
        };
        let mut dropped: Vec<(u64, usize)> = sources.map(dropped).collect();
        dropped.sort_unstable_by_key(|one| Reverse(*one));
        for (_, number) in dropped.into_iter().filter(|(bytes, _)| *bytes > 0) {
            let (from, to) = (&self.0.catalog, self.another_writer());
            let copied = self.rewrite(from, to, &there.sources, &selected.only(number));
            if copied.is_ok() {
                self.write_manifest(&self.replaced([&there.sources[number]]))?;
                return Ok(self.remove_at_once());
            }
        }
        Ok(0)
    }

    /// Removes replaced segments, and the generations that would keep them.
    fn remove_at_once(&self) -> u64 {
        self.0.catalog.remove_earlier_manifests();
        self.remove_replaced(Duration::ZERO).bytes
    }

    /// The frames of each segment that would be kept if it were alone: copies elsewhere make nothing superfluous.
    fn each_alone(
        &self,
        there: &CompactionInput,
        retention: &Retention,
        journals: bool,
    ) -> Result<Selected, ArchiveError> {
        let mut selection = there.selection(self);
        selection.each_alone = true;
        selection.filter.journals = journals;
        let now = id::now(&**self.0.vfs());
        let (given_up, _) = selection.give_up(retention, &there.uses, now)?;
        selection.given_up = Some(&given_up);
        selection.run()
    }

    /// The segments of which nothing is kept but journals, so that they can go without a copy.
    fn unused<'s>(
        &self,
        there: &'s CompactionInput,
        retention: &Retention,
    ) -> Result<Vec<&'s Source>, ArchiveError> {
        let selected = self.each_alone(there, retention, false)?;
        let sources = there.sources.iter().enumerate();
        let unused = sources.filter(|(number, _)| !selected.keeps_any(*number));
        Ok(unused.map(|(_, one)| one).collect())
    }

    /// Replaces and removes segments of which nothing is kept.
    fn remove_unused(&self, unused: &[&Source]) -> Result<u64, ArchiveError> {
        let inner = &*self.0;
        let mut freed = 0;
        let mut left = unused.iter();
        let replaced: Vec<ReplacedSegment> = self.replaced(unused.iter().copied());
        while let Err(error) = self.write_manifest(&replaced) {
            let Some(one) = left.next().filter(|_| error.is_full()) else {
                return Err(error);
            };
            let path = &one.segment.path;
            let removed = remove(&**inner.vfs(), path, one.length);
            if removed.map_err(|error| ArchiveError::io("removing", path, error))? {
                freed += one.length;
            }
        }
        Ok(freed + self.remove_at_once())
    }
}
