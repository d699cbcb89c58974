//! Keeping a store within the limits that it was opened with.
//!
//! The thread that commits keeps the limits, and the one that finishes, and the [upkeep](crate::store::upkeep)'s.
//! It first checks the lengths of the segments, which costs a look at the directory. A compaction reads all of
//! them, so one is due only once the store has grown by a part of its size. For ages one is due once in a tenth of
//! the age. The manifests record the last one, so of a thousand short programs only a few compact.

use std::time::Duration;

use sde::archiver::ArchiveError;

use crate::catalog::LOOKS;
use crate::format::id;
use crate::locks::lock;
use crate::retention::Aim;
use crate::store::DirStore;

/// A store that has grown by less than this part is not compacted again.
const GROWN: u64 = 16;

/// For ages, a compaction is due after this part of the age.
const AGES: u32 = 10;

impl DirStore {
    /// Gives up what exceeds the limits, unless they are left to others or another process compacts.
    pub(crate) fn keep_limits(&self) {
        if self.has_limits() {
            self.0.upkeep.wait();
            self.sweep_what_is_due();
        }
    }

    pub(crate) fn has_limits(&self) -> bool {
        let is_left_to_others = self.0.read_only || self.0.team.get().is_some();
        !is_left_to_others && self.0.room.retention.has_limits()
    }

    /// Gives up what exceeds the limits, if a compaction is due. Warns of failures. The store's thread calls it
    /// too.
    pub(crate) fn sweep_what_is_due(&self) {
        if let Err(error) = self.try_sweep() {
            sde::warning!(
                "{} may be larger than it should be: {error}",
                self.0.dir.display()
            );
        }
    }

    /// The length of all segments that count, apart from those of other members of a group.
    pub(crate) fn bytes(&self) -> u64 {
        let mut lengths = self.0.durable_ends();
        let segments = lock(&self.0.catalog.segments);
        // A segment that this process abandoned after an error is in both.
        let known = segments.known().filter(|one| !one.segment.is_of_another);
        lengths.extend(known.map(|one| (one.segment.id, one.length)));
        lengths.into_values().sum()
    }

    /// The bytes in segments that this process has not sealed, which other processes' compactions did not count.
    fn unsealed_bytes(&self) -> u64 {
        self.0.durable_ends().into_values().sum()
    }

    fn is_due(&self) -> bool {
        let retention = &self.0.room.retention;
        let swept = self.0.catalog.manifests().swept();
        let now = id::now(&**self.0.vfs());
        let is_time = |age: Duration| {
            let since = swept.map(|swept| Duration::from_nanos(now.abs_diff(swept.at)));
            since.is_none_or(|since| since >= age / AGES)
        };
        let has_grown = |capacity: u64| {
            let (bytes, unsealed) = (self.bytes(), self.unsealed_bytes());
            let before = swept.map_or(0, |swept| swept.bytes);
            // Segments that this process was writing during another's compaction counted as left. Now they are
            // sealed and can go.
            let before = if unsealed == 0 {
                before.min(capacity)
            } else {
                before
            };
            let growth = bytes.saturating_sub(before).max(unsealed);
            bytes > capacity && growth >= capacity.max(before) / GROWN
        };
        retention.age().is_some_and(is_time) || retention.smallest().is_some_and(has_grown)
    }

    /// Another process that finds this one compacting leaves its saves to it, so this one looks again afterwards.
    fn try_sweep(&self) -> Result<(), ArchiveError> {
        for _ in 0..LOOKS {
            self.refresh()?;
            if !self.is_due() || !self.sweep()? {
                break;
            }
        }
        Ok(())
    }

    /// Gives whether segments were replaced.
    fn sweep(&self) -> Result<bool, ArchiveError> {
        let retention = self.0.room.retention.with_aim(Aim::Below);
        let done = self.compact(&retention)?;
        if done.busy {
            return Ok(false);
        }
        if done.replaced == 0 {
            // The manifest records the attempt, from which the next is reckoned.
            return self.write_manifest(&[]).map(|()| false);
        }
        let replaced = lock(&self.0.catalog.segments)
            .replaced()
            .map(|one| one.length)
            .sum::<u64>();
        let capacity = retention.all.capacity;
        if capacity.is_some_and(|capacity| self.bytes() + replaced > capacity) {
            // Readers of a removed segment look again.
            self.remove_what_is_over(Duration::ZERO)?;
        }
        Ok(true)
    }
}
