//! Making room on a full disk.
//!
//! A write that fails for want of room is tried again after something was freed, be it for another thread. One thread at a time makes
//! room, while no other of its process saves. Things go in this order:
//!
//! 1. Segments that were replaced, whether their time of grace is over or not (a reader that misses one looks again), and
//!    files that nobody finished. Generations before the latest go too, which would keep them.
//! 2. Segments of which nothing is of use: scratch that was superseded or whose run has ended.
//! 3. Segments of which nothing is left if the user's limits are tightened: to seven eighths of what they hold for, to a
//!    half, to nothing. What they do not hold for stays.
//!
//! 4. Of all segments that hold something of no use, the one with most of it that can be copied without that.
//!
//! For a manifest and a copy there is a reserve, a file of no meaning that is given up for as long as room is made. Where there is
//! none, and no room even for a manifest, one of the segments that go is removed before it; a power failure in between has a loss
//! told of that is none.

use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sde::ArchiveError;

use super::CompactionInput;
use super::replaced::remove;
use crate::format::directory;
use crate::format::id;
use crate::format::manifest::{ReplacedSegment, Sweep};
use crate::locks::{lock, warnings_after};
use crate::retention::{Aim, Retention};
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::store::DirStore;

/// What a store keeps to, and what it did for that.
pub(crate) struct Room {
    pub(crate) retention: Retention,
    /// To be told of by the next manifest.
    pub(crate) swept: Mutex<Option<Sweep>>,
    /// When all segments were looked at, and nothing could go, and how many bytes they had.
    in_vain: Mutex<Option<(SystemTime, u64)>>,
    /// How often room was made.
    made: AtomicU64,
}

/// What the reserve is called.
const RESERVE: &str = "RESERVE";
/// How long it is. A store that holds less has none.
const RESERVED: u64 = 1 << 18;

/// How long all segments are not looked at again after that.
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
    /// Does a job; if there is no room for it on the disk, once more after each step that frees something. Adds up
    /// how many bytes that were.
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
                return Err(match error {
                    ArchiveError::Io {
                        doing,
                        path,
                        source,
                    } => ArchiveError::Full {
                        doing,
                        path,
                        source,
                    },
                    error => error,
                });
            }
        }
    }

    /// Makes room, unless that was done since it had been made so often. Gives how many bytes were freed.
    fn make_room(&self, retention: &Retention, before: u64) -> u64 {
        let made = &self.0.room.made;
        warnings_after(|| {
            let _alone = self.0.writer.pause();
            if made.load(Ordering::Acquire) != before {
                return 0;
            }
            self.give_up_reserve();
            // What can't be freed is not what the caller wants to hear of.
            let mut bytes = self.free_replaced().unwrap_or(0);
            if bytes == 0 {
                bytes = self.free_unused(retention).unwrap_or(0);
            }
            self.make_reserve();
            made.fetch_add(u64::from(bytes > 0), Ordering::Release);
            bytes
        })
    }

    /// Does a job that makes room or writes a manifest. Where the disk has no room for it the reserve is given up. The job saves
    /// nothing, and no other thread of this process saves meanwhile.
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

    /// Gives whether there was one.
    fn give_up_reserve(&self) -> bool {
        let inner = &*self.0;
        inner.vfs().remove(&inner.dir.join(RESERVE)).is_ok()
    }

    /// Makes the reserve, when no other thread makes room.
    pub(crate) fn keep_reserve(&self) {
        let _alone = self.0.writer.pause();
        self.make_reserve();
    }

    /// Makes the reserve, if the store is worth it and there is room. It is not synced: nothing is lost with it.
    fn make_reserve(&self) {
        let inner = &*self.0;
        let (vfs, path) = (&**inner.vfs(), inner.dir.join(RESERVE));
        if inner.team.get().is_some() || self.bytes() < RESERVED {
            return;
        }
        match vfs.length_of(&path) {
            Ok(Some(RESERVED)) => return,
            // A power failure has cut it.
            Ok(Some(_)) => drop(vfs.remove(&path)),
            _ => {}
        }
        // What is all zeros, or the same over and over, takes no room on some file systems.
        let mut bytes = vec![0; RESERVED as usize];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        let Ok(mut file) = vfs.create(&path) else {
            return;
        };
        if file.write_at(&[&bytes], 0).is_err() {
            // A part of it would keep the whole from being made.
            let _ = vfs.remove(&path);
        }
    }

    /// Removes what was replaced, and what nobody finished.
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

    /// Removes segments of which nothing is of use, or else of which nothing is left within tighter limits, or else copies what
    /// is of use of one.
    fn free_unused(&self, retention: &Retention) -> Result<u64, ArchiveError> {
        let (now, bytes) = (self.0.vfs().now(), self.bytes());
        let is_new = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age < IN_VAIN);
        let in_vain = *lock(&self.0.room.in_vain);
        if in_vain.is_some_and(|(at, before)| is_new(at) && before == bytes) {
            return Ok(0);
        }
        // What this process has written may go too.
        self.0.seal();
        if self.close_what_is_left()? {
            self.refresh()?;
        }
        let mut there = self.sources()?;
        // Without it a save may refer to a content meanwhile that nobody has named yet.
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

    /// Copies what is kept of one segment, and removes it: of that with most that is not, if there is room for the rest.
    fn free_by_copying(
        &self,
        there: &CompactionInput,
        retention: &Retention,
    ) -> Result<u64, ArchiveError> {
        let selected = self.each_alone(there, retention, true)?;
        let sources = there.sources.iter().enumerate();
        let vfs = &**self.0.vfs();
        let dropped = |(number, one): (usize, &Source)| {
            // What a write that failed has left behind its frames goes too.
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

    /// Removes what was replaced, and the generations that would keep it.
    fn remove_at_once(&self) -> u64 {
        self.0.catalog.remove_earlier_manifests();
        self.remove_replaced(Duration::ZERO).bytes
    }

    /// What of each segment would be kept if no other were there: what others hold does not make anything superfluous.
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

    /// The segments of which nothing is kept, or what a process did only, so that they can go without anything being written.
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

    /// Has segments go of which nothing is kept.
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
