//! Whether a key may be in a sealed segment, for the price of one word of memory.
//!
//! A miss looks for its key in each sealed segment, and nearly always it is in none. A search through
//! the rows of a large segment touches a dozen places of memory that no cache holds. So each table has
//! a blocked Bloom filter (Putze, Sanders, Singler 2007): a key sets four bits of one word of 64, and is
//! in the segment only if all four are set. Keys are digests, so the word and the bits are parts
//! of the key itself.

use sde::Key;

/// With so many keys to a word of 64 bits, about 3 % of the absent keys seem to be there.
const KEYS_PER_WORD: usize = 6;

/// The keys of one segment, up to mistakes in one direction: none that is there seems absent.
pub(crate) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    /// Of so many keys.
    pub(crate) fn of(count: usize, keys: impl Iterator<Item = Key>) -> Self {
        let mut words = vec![0; count.div_ceil(KEYS_PER_WORD)];
        for key in keys {
            let at = place(&key, words.len());
            if let Some(word) = words.get_mut(at) {
                *word |= bits(&key);
            }
        }
        Self { words }
    }

    /// Whether a key may be there.
    pub(crate) fn may_have(&self, key: &Key) -> bool {
        let word = self.words.get(place(key, self.words.len()));
        word.is_some_and(|word| word & bits(key) == bits(key))
    }
}

/// Not the first bytes of the key: in a table they say where its row is.
fn place(key: &Key, words: usize) -> usize {
    let [_, _, _, _, a, b, c, d, ..] = *key.as_bytes();
    ((u64::from(u32::from_le_bytes([a, b, c, d])) * words as u64) >> 32) as usize
}

fn bits(key: &Key) -> u64 {
    let [_, _, _, _, _, _, _, _, bits @ ..] = *key.as_bytes();
    bits.iter()
        .take(4)
        .fold(0, |all, bit| all | 1 << (bit & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        Key::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    #[test]
    fn none_that_is_there_seems_absent_and_few_of_the_others_seem_there() {
        for count in [0, 1, 5, 6, 7, 1000, 20_000] {
            let filter = Filter::of(count, (0..count as u64).map(key));
            assert!((0..count as u64).all(|number| filter.may_have(&key(number))));
            let seem = |number: &u64| filter.may_have(&key(1_000_000 + number));
            let wrong = (0..10_000).filter(seem).count();
            assert!(wrong < 500, "{wrong} of 10,000, with {count} keys");
        }
    }
}
