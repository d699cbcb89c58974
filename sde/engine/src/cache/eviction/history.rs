//! The uses of entries that have left.

use super::uses::Uses;

/// A table in which a key has one of two slots. If both are taken, the one used longer ago is overwritten.
pub(super) struct History {
    slots: Vec<[(u64, Uses); 2]>,
    /// How many slots are taken. The table doubles when that is more than a fourth.
    used: usize,
    most: usize,
}

/// Bounds of the number of pairs.
const LEAST: usize = 1 << 9;
const MOST: usize = 1 << 20;

impl History {
    pub(super) fn new(bytes: usize) -> Self {
        let pairs = bytes / size_of::<[(u64, Uses); 2]>();
        Self {
            slots: vec![Default::default(); LEAST],
            used: 0,
            most: pairs.clamp(LEAST, MOST),
        }
    }

    /// Keeps the uses of an entry that left.
    pub(super) fn put(&mut self, key: u64, uses: Uses) {
        if 2 * self.used > self.slots.len() && 2 * self.slots.len() <= self.most {
            let twice = vec![Default::default(); 2 * self.slots.len()];
            self.used = 0;
            for slot in std::mem::replace(&mut self.slots, twice).into_flattened() {
                if slot.1 != Uses::default() {
                    self.put_there(slot);
                }
            }
        }
        self.put_there((key, uses));
    }

    fn put_there(&mut self, new: (u64, Uses)) {
        let [one, other] = self.pair(new.0);
        let older = if other.1.last() < one.1.last() {
            other
        } else {
            one
        };
        let before = std::mem::replace(older, new);
        self.used += usize::from(before.1 == Uses::default());
    }

    /// Takes out the uses of an entry that comes back, if they are known.
    pub(super) fn take(&mut self, key: u64) -> Option<Uses> {
        let slot = self.pair(key).iter_mut().find(|slot| slot.0 == key)?;
        let uses = std::mem::take(slot).1;
        let is_known = uses != Uses::default();
        self.used -= usize::from(is_known);
        is_known.then_some(uses)
    }

    /// Keys are digests: the low bits will do.
    fn pair(&mut self, key: u64) -> &mut [(u64, Uses); 2] {
        let at = key % self.slots.len() as u64;
        &mut self.slots[at as usize]
    }
}
