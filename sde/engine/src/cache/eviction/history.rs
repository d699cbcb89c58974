//! The uses of what has left.

use super::Uses;

/// A table in which a key has one of two slots. If there is no room in it that of the two goes that was used longer ago.
pub(super) struct History {
    slots: Vec<[(u64, Uses); 2]>,
    used: usize,
    /// How many pairs of slots there are at most.
    most: usize,
}

const LEAST: usize = 1 << 9;

impl History {
    pub(super) fn new(bytes: usize) -> Self {
        let pairs = bytes / size_of::<[(u64, Uses); 2]>();
        Self {
            slots: vec![Default::default(); LEAST],
            used: 0,
            most: pairs.clamp(LEAST, 1 << 20),
        }
    }

    /// Takes note of one that left.
    pub(super) fn put(&mut self, key: u64, uses: Uses) {
        if self.used > self.slots.len() && 2 * self.slots.len() <= self.most {
            let twice = vec![Default::default(); 2 * self.slots.len()];
            self.used = 0;
            for (key, uses) in std::mem::replace(&mut self.slots, twice)
                .into_iter()
                .flatten()
            {
                self.put_there(key, uses);
            }
        }
        self.put_there(key, uses);
    }

    fn put_there(&mut self, key: u64, uses: Uses) {
        let [one, other] = self.pair(key);
        let slot = if one.0 != key && other.1.last() < one.1.last() {
            other
        } else {
            one
        };
        let was_free = slot.1 == Uses::default();
        *slot = (key, uses);
        self.used += usize::from(was_free);
    }

    /// The uses of one that comes, if they are known.
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
