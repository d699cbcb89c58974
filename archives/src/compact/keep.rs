//! Keeping a store within the limits that it was opened with.
//!
//! The thread that commits sees to it, the one that finishes, and the [upkeep](crate::store::upkeep)'s. It asks first whether there
//! can be too much, from the lengths of the segments: that costs a look at the directory. A compaction reads all of them, so it comes
//! after the store has grown by a part of what it has, and for ages once in a tenth of the age. When that was last is in the
//! manifests: of a thousand short programs only those compact for which it is due.

use std::time::Duration;

use sde::ArchiveError;

use crate::catalog::LOOKS;
use crate::format::id;
use crate::locks::lock;
use crate::retention::Aim;
use crate::store::DirStore;

/// What has grown by less than one part in so many is not compacted again.
const GROWN: u64 = 16;

/// What is too old goes within one part in so many of the age.
const AGES: u32 = 10;

impl DirStore {
    /// Gives up what is too much, if that may be and nobody else is at it.
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

    /// Gives up what is too much, if it is due. The thread of the store calls it too. Warns of what fails.
    pub(crate) fn sweep_what_is_due(&self) {
        if let Err(error) = self.try_sweep() {
            sde::warning!(
                "{} may be larger than it should be: {error}",
                self.0.dir.display()
            );
        }
    }

    /// How many bytes the segments have that count.
    pub(crate) fn bytes(&self) -> u64 {
        let mut lengths = self.0.durable_ends();
        let segments = lock(&self.0.catalog.segments);
        // A segment that this process gave up after an error is among both.
        lengths.extend(segments.known().map(|one| (one.segment.id, one.length)));
        lengths.into_values().sum()
    }

    /// How many of them are in segments that this process has not sealed: no other counted them when it made room.
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
            // What this process was writing while another made room could not go, and counted as left. It has sealed it now.
            let before = if unsealed == 0 {
                before.min(capacity)
            } else {
                before
            };
            let growth = bytes.saturating_sub(before).max(unsealed);
            bytes > capacity && growth >= capacity.max(before) / GROWN
        };
        retention.age().is_some_and(is_time) || retention.capacity().is_some_and(has_grown)
    }

    /// Another process that finds this one at it leaves to it what it has saved: so this one looks once more when it is done.
    fn try_sweep(&self) -> Result<(), ArchiveError> {
        for _ in 0..LOOKS {
            self.refresh()?;
            if !self.is_due() || !self.sweep()? {
                break;
            }
        }
        Ok(())
    }

    /// Gives whether anything was replaced.
    fn sweep(&self) -> Result<bool, ArchiveError> {
        let retention = self.0.room.retention.with_aim(Aim::Below);
        let done = self.compact(&retention)?;
        if done.busy {
            return Ok(false);
        }
        if done.replaced == 0 {
            // The next one is due from now on.
            return self.write_manifest(&[]).map(|()| false);
        }
        let replaced = lock(&self.0.catalog.segments)
            .replaced()
            .map(|one| one.length)
            .sum::<u64>();
        let capacity = retention.all.max_bytes;
        if capacity.is_some_and(|capacity| self.bytes() + replaced > capacity) {
            // Who still reads what was replaced looks again.
            self.remove_what_is_over(Duration::ZERO)?;
        }
        Ok(true)
    }
}
