//! Making room on a full disk.
//!
//! A write that fails for want of room is tried again after something was freed, in this order:
//!
//! 1. Segments that were replaced, whether their time of grace is over or not (a reader that misses one looks again), and
//!    files that nobody finished. Generations before the latest go too, which would keep them.
//! 2. Segments of which nothing is of use: scratch that was superseded or whose run has ended.
//! 3. Segments of which nothing is left if the user's limits are tightened: to seven eighths of what they hold for, to a
//!    half, to nothing. What they do not hold for stays.
//!
//! Nothing of that needs room but a manifest that says what was replaced. If there is none even for that, one of
//! the segments that go is removed before it; a power failure in between has a loss told of that is none.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use sde::ArchiveError;

use super::There;
use super::replaced::remove;
use crate::format::directory;
use crate::format::id;
use crate::format::manifest::{ReplacedSegment, Sweep};
use crate::locks::lock;
use crate::retention::{Aim, Retention};
use crate::rewrite::limits::GivenUp;
use crate::rewrite::source::Source;
use crate::store::DirStore;

/// What a store keeps to, and what it did for that.
pub(crate) struct Room {
    pub(crate) retention: Retention,
    /// To be told of by the next manifest.
    pub(crate) swept: Mutex<Option<Sweep>>,
    /// When all segments were looked at, and nothing could go.
    in_vain: Mutex<Option<SystemTime>>,
}

/// How long all segments are not looked at again after that.
const IN_VAIN: Duration = Duration::from_secs(60);

impl Room {
    pub(crate) fn new(retention: Retention) -> Self {
        Self {
            retention,
            swept: Mutex::default(),
            in_vain: Mutex::default(),
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
        let mut done = job();
        let is_full =
            |done: &Result<T, ArchiveError>| done.as_ref().is_err_and(ArchiveError::is_full);
        if !is_full(&done) || self.0.team.get().is_some() {
            return done;
        }
        // What can't be freed is not what the caller wants to hear of.
        let mut bytes = match self.free_replaced() {
            Ok(bytes @ 1..) => bytes,
            _ => self.free_unused(retention).unwrap_or(0),
        };
        while bytes > 0 {
            *freed += bytes;
            done = job();
            if !is_full(&done) {
                return done;
            }
            bytes = self.free_unused(retention).unwrap_or(0);
        }
        done.map_err(|error| match error {
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
        })
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
        inner.catalog.remove_earlier_manifests();
        Ok(unfinished + self.remove_replaced(Duration::ZERO).bytes)
    }

    /// Removes segments of which nothing is of use, or else of which nothing is left within tighter limits.
    fn free_unused(&self, retention: &Retention) -> Result<u64, ArchiveError> {
        let now = self.0.vfs().now();
        let is_new = |at: &SystemTime| now.duration_since(*at).is_ok_and(|age| age < IN_VAIN);
        if lock(&self.0.room.in_vain).as_ref().is_some_and(is_new) {
            return Ok(0);
        }
        if self.close_what_is_left()? {
            self.refresh()?;
        }
        let there = self.sources()?;
        let mut unused = self.unused(&there, &Retention::new())?;
        let tighter = [7, 4, 0].map(|eighths| retention.with_aim(Aim::Eighths(eighths)));
        for tighter in tighter.iter().filter(|one| one.has_limits()) {
            if unused.is_empty() {
                unused = self.unused(&there, tighter)?;
            }
        }
        if unused.is_empty() {
            *lock(&self.0.room.in_vain) = Some(now);
            return Ok(0);
        }
        self.remove_unused(&unused)
    }

    /// The segments of which nothing is kept, or what a process did only, so that they can go without anything being written.
    /// Each is looked at alone: what others hold does not make anything superfluous.
    fn unused<'s>(
        &self,
        there: &'s There,
        retention: &Retention,
    ) -> Result<Vec<&'s Source>, ArchiveError> {
        let all = vec![true; there.sources.len()];
        let mut selection = there.selection(self, &all);
        selection.each_alone = true;
        selection.filter.journals = false;
        let now = id::now(&**self.0.vfs());
        let (given_up, _) = GivenUp::find(&selection, retention, &there.uses, now)?;
        selection.given_up = Some(&given_up);
        let selected = selection.run()?;
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
        inner.catalog.remove_earlier_manifests();
        Ok(freed + self.remove_replaced(Duration::ZERO).bytes)
    }
}
