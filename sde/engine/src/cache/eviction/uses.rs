//! What an entry knows of its uses, in one word, which hits write.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ages::octaves;

/// When an entry was used last, how often, and how long it was from one use to the next, as a rule.
///
/// Time is counted in ticks: one for each value that comes. Uses between two ticks are one, so what is hit again and again
/// while nothing comes is not written to.
///
/// From the top: 42 bits of the last tick, 14 of the mean time between uses as a logarithm with 8 bits after the point, 8 of the
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses(u64);

/// Of how many uses the mean is: each later one counts for this part. So it follows what changes.
const MEAN_OF: i64 = 6;

/// The count is less than this. It goes on from the half, so that differences are right.
const COUNTS: u64 = 256;

impl Uses {
    /// Takes note of a use. Says nothing to anybody else and writes once a tick at most; of two threads that do it at once one
    /// may be forgotten.
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

    /// What a word says.
    pub fn of(word: &AtomicU64) -> Self {
        Self(word.load(Ordering::Relaxed))
    }

    /// The same with one more.
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

    /// When the last was.
    pub fn last(self) -> u64 {
        self.0 >> 22
    }

    pub(super) fn count(self) -> u64 {
        self.0 % COUNTS
    }

    /// How many there were since an earlier state of the same word, if not very many.
    pub(super) fn since(self, earlier: Self) -> u64 {
        self.count().wrapping_sub(earlier.count()) % (COUNTS / 2)
    }

    fn interval_bits(self) -> i64 {
        (self.0 >> 8 & 0x3fff) as i64
    }

    /// The mean time between uses, as a logarithm; `None` if there was but one.
    pub(super) fn interval(self) -> Option<f64> {
        (self.count() > 1).then(|| self.interval_bits() as f64 / 256.0)
    }
}
