//! The uses of an entry in one word, which hits write.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ages::octaves;

/// When an entry was used last, how often, and the mean time between uses.
///
/// Time is counted in ticks: one for each value that comes. Uses within a tick count as one, so a value hit again and
/// again while nothing comes is not written to.
///
/// From the top: 42 bits of the last tick, 14 bits of the logarithm of the mean time between uses, with 8 bits after
/// the point, and 8 bits of the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses(u64);

/// The mean is of about this many uses: each later one has this part of the weight, so the mean follows changes.
const MEAN_OF: i64 = 6;

/// The count is less than this. It wraps to the half, so differences modulo the half stay right.
const COUNTS: u64 = 256;

impl Uses {
    /// Notes a use, relaxed and at most once a tick. If two threads do at once, one use may be lost.
    #[inline]
    pub fn note(word: &AtomicU64, tick: u64) {
        let uses = Self(word.load(Ordering::Relaxed));
        if uses.last() != tick {
            uses.and_at(tick).write(word);
        }
    }

    pub(super) fn write(self, word: &AtomicU64) {
        word.store(self.0, Ordering::Relaxed);
    }

    /// The uses that a word holds.
    pub fn of(word: &AtomicU64) -> Self {
        Self(word.load(Ordering::Relaxed))
    }

    /// These uses and one more at a tick.
    fn and_at(self, tick: u64) -> Self {
        let count = self.count();
        let took = i64::from(octaves(tick.saturating_sub(self.last())));
        let before = self.interval_bits();
        let interval = match count {
            0 => 0,
            1 => took,
            _ => before + (took - before) / MEAN_OF.min(count as i64),
        };
        let next = if count + 1 < COUNTS {
            count + 1
        } else {
            COUNTS / 2
        };
        Self(tick << 22 | (interval as u64) << 8 | next)
    }

    /// The tick of the last use.
    pub fn last(self) -> u64 {
        self.0 >> 22
    }

    pub(super) fn count(self) -> u64 {
        self.0 % COUNTS
    }

    /// The number of uses since an earlier state of this word, if less than 128.
    pub(super) fn since(self, earlier: Self) -> u64 {
        self.count().wrapping_sub(earlier.count()) % (COUNTS / 2)
    }

    fn interval_bits(self) -> i64 {
        (self.0 >> 8 & 0x3fff) as i64
    }

    /// The logarithm to base two of the mean time between uses; `None` if there was only one use.
    pub(super) fn interval(self) -> Option<f64> {
        (self.count() > 1).then(|| self.interval_bits() as f64 / 256.0)
    }
}
