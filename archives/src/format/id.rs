//! Unique ids, and times of saving.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::vfs::Vfs;

/// 128 random bits that identify a segment or a writer. Each frame is bound to its segment's id.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct UniqueId(pub(crate) [u8; 16]);

impl UniqueId {
    /// A new id. The hasher's keys are random; time, process and a counter keep ids apart on machines that start
    /// with the same state.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let random = RandomState::new();
        let mut digest = blake3::Hasher::new();
        for salt in 0..4 {
            let mut hasher = random.build_hasher();
            hasher.write_u8(salt);
            digest.update(&hasher.finish().to_le_bytes());
        }
        digest.update(&nanos(SystemTime::now()).to_le_bytes());
        digest.update(&std::process::id().to_le_bytes());
        digest.update(&COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&digest.finalize().as_bytes()[..16]);
        Self(id)
    }
}

impl UniqueId {
    /// The id of a part of this. Parts of parts get the same id in any order.
    pub(crate) fn of_part(&self, part: &[u8]) -> Self {
        let digest = blake3::hash(part);
        Self(std::array::from_fn(|at| self.0[at] ^ digest.as_bytes()[at]))
    }

    /// The first eight digits, for file names.
    pub(crate) fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(8);
        text
    }

    /// Parses the text that `Display` writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut id = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        for (byte, at) in id.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(id))
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The time of day, in nanoseconds since 1970. Ages are counted by it, not by a store's stamps: one clock far ahead
/// makes all later stamps late, and all else would seem old.
pub(crate) fn now(vfs: &dyn Vfs) -> u64 {
    nanos(vfs.now())
}

/// Gives times of saving, in nanoseconds since 1970: each later than all stamps seen in this store, whatever the
/// clock says.
pub(crate) struct Clock {
    vfs: Arc<dyn Vfs>,
    last: AtomicU64,
}

impl Clock {
    pub(crate) fn new(vfs: &Arc<dyn Vfs>) -> Self {
        Self {
            vfs: Arc::clone(vfs),
            last: AtomicU64::default(),
        }
    }

    /// A stamp later than all given or seen before.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp_at(now(&*self.vfs))
    }

    /// A stamp later than all others and not before `now`: one reading of the clock serves many stamps.
    pub(crate) fn stamp_at(&self, now: u64) -> u64 {
        let later = |last: u64| now.max(last.saturating_add(1));
        let last = self
            .last
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| {
                Some(later(last))
            });
        last.map_or(now, later)
    }

    /// Records a stamp that was read in the store.
    pub(crate) fn saw(&self, stamp: u64) {
        self.last.fetch_max(stamp, Ordering::AcqRel);
    }
}

pub(crate) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::Disk;

    #[test]
    fn stamps_rise_above_what_was_seen() {
        let clock = Clock::new(&(Arc::new(Disk) as _));
        let first = clock.stamp();
        assert!(clock.stamp() > first);
        let future = first + 1_000_000_000_000;
        clock.saw(future);
        assert!(clock.stamp() > future);
    }

    #[test]
    fn ids_differ() {
        assert_ne!(UniqueId::new().0, UniqueId::new().0);
        assert_eq!(UniqueId([0xab; 16]).to_string(), "ab".repeat(16));
    }
}
