//! The uses of an entry in one word, which hits write.

use std::sync::atomic::{AtomicU64, Ordering};

/// When an entry was used last, and the mean time between its uses.
///
/// Time is counted in ticks: one for each value that comes. Uses within a tick count as one, so a value hit again and
/// again while nothing comes is not written to.
///
/// The word has 48 bits of the last tick, and 16 for the mean: one more than its octaves, or 0 after one use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses(pub(super) u64);

impl Uses {
    /// Notes a use, relaxed and at most once a tick. If two threads do at once, one use may be lost. The latest time
    /// between uses has a fourth of the weight, so the mean follows changes.
    #[inline]
    pub fn note(word: &AtomicU64, tick: u64) {
        let uses = Self::of(word);
        if uses.last() == tick {
            return;
        }
        let took = octaves(tick.saturating_sub(uses.last()));
        let mean = match uses.mean() {
            _ if uses.0 == 0 => 0,
            None => 1 + took,
            Some(before) => 1 + (3 * before + took) / 4,
        };
        word.store(tick << 16 | u64::from(mean), Ordering::Relaxed);
    }

    /// The uses that a word holds.
    pub fn of(word: &AtomicU64) -> Self {
        Self(word.load(Ordering::Relaxed))
    }

    /// The tick of the last use.
    pub fn last(self) -> u64 {
        self.0 >> 16
    }

    /// The mean time between uses in octaves; `None` if there was only one use.
    pub(super) fn mean(self) -> Option<u32> {
        (self.0 as u32 % (1 << 16)).checked_sub(1)
    }
}

/// The logarithm to base two in steps of 1/256: the first bits of a float. So it is the same on all machines.
pub(super) fn octaves(number: u64) -> u32 {
    ((number.max(1) as f32).to_bits() >> 15) - (127 << 8)
}

/// The number that has this logarithm.
pub(super) fn of_octaves(octaves: u32) -> f64 {
    f32::from_bits((octaves + (127 << 8)) << 15).into()
}
