//! The bytes of one file, and which of them are on the medium.

use std::ops::Range;

use super::random::Random;

/// What is written at once, or not at all.
const SECTOR: usize = 512;

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// What every process sees.
    pub(super) bytes: Vec<u8>,
    /// Up to where the length is on the medium.
    length_synced: usize,
    /// Written, and not synced.
    dirty: Vec<Range<usize>>,
    /// Written, and given up by a sync that failed: no later one writes it.
    given_up: Vec<Range<usize>>,
    /// The processes of which a write or a sync of it has failed.
    pub(super) failed: Vec<usize>,
}

impl Content {
    pub(super) fn write_at(&mut self, bytes: &[u8], from: usize) {
        let end = from + bytes.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[from..end].copy_from_slice(bytes);
        match self.dirty.last_mut() {
            Some(last) if last.end == from => last.end = end,
            _ => self.dirty.push(from..end),
        }
    }

    /// By how much it would be longer.
    pub(super) fn growth(&self, length: usize, from: usize) -> usize {
        (from + length).saturating_sub(self.bytes.len())
    }

    /// It may be as long as before after a power failure, unless it is synced.
    pub(super) fn cut(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.dirty
            .iter_mut()
            .for_each(|range| range.end = range.end.min(length));
        self.dirty.retain(|range| !range.is_empty());
    }

    pub(super) fn sync(&mut self) {
        self.dirty.clear();
        self.length_synced = self.bytes.len();
    }

    /// Any part reaches the medium, the rest never will.
    pub(super) fn sync_failed(&mut self, random: &mut Random) {
        for range in std::mem::take(&mut self.dirty) {
            for sector in sectors(range) {
                if random.once_in(2) {
                    self.given_up.push(sector);
                }
            }
        }
    }

    /// As if all of it had been on the medium from the first.
    pub(super) fn settled(bytes: Vec<u8>) -> Self {
        Self {
            length_synced: bytes.len(),
            bytes,
            ..Self::default()
        }
    }

    /// What is left after a power failure.
    pub(super) fn after_power_loss(&self, random: &mut Random) -> Self {
        let (synced, written) = (self.length_synced, self.bytes.len());
        let length = match random.within(0..3) {
            0 => synced,
            1 => written,
            _ => {
                let any = synced.min(written) as u64..synced.max(written) as u64 + 1;
                random.within(any) as usize
            }
        };
        let mut bytes = self.bytes.clone();
        bytes.resize(length, 0);
        // All of it, none of it, or any part.
        let lost = random.pick(&[0, 1, 2]);
        let stale = random.once_in(2);
        let unsure = self.dirty.iter().chain(&self.given_up);
        for sector in unsure.cloned().flat_map(sectors) {
            if lost == 0 || (lost == 1 && random.once_in(2)) {
                continue;
            }
            let end = sector.end.min(length);
            for byte in bytes.get_mut(sector.start..end).into_iter().flatten() {
                // What was there before: nothing, or a piece of another file.
                *byte = if stale { random.number() as u8 } else { 0 };
            }
        }
        Self::settled(bytes)
    }
}

/// The parts of a range that lie in one sector each.
fn sectors(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let from = at;
        at = ((from / SECTOR + 1) * SECTOR).min(range.end);
        (from < range.end).then_some(from..at)
    })
}
