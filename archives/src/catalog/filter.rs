//! Whether a key may be in a large sealed segment, for the price of one word of memory.
//!
//! A miss looks for its key in all sealed segments, and nearly always it is in none. A search through the rows of each
//! touches a dozen places of memory that no cache holds. So all of them together have a blocked Bloom filter (Putze,
//! Sanders, Singler 2007): a key sets four bits of one word of 64, and is there only if all four are set. Keys are
//! digests, so the word and the bits are parts of the key itself.

/// With six keys to a word of 64 bits, about 3 % of the absent keys pass the filter.
const KEYS_PER_WORD: usize = 6;

/// The keys of many segments. False positives happen, false negatives never.
#[derive(Default)]
pub(crate) struct Filter {
    words: Vec<u64>,
    keys: usize,
}

impl Filter {
    /// Adds keys, by their prefixes. `false` if they don't fit: the filter must be rebuilt.
    pub(crate) fn add(&mut self, count: usize, prefixes: impl Iterator<Item = u64>) -> bool {
        self.keys += count;
        if self.keys > self.words.len() * KEYS_PER_WORD {
            return false;
        }
        prefixes.for_each(|prefix| self.set(prefix));
        true
    }

    /// A filter of these keys with room for as many more.
    pub(crate) fn of(count: usize, prefixes: impl Iterator<Item = u64>) -> Self {
        let mut filter = Self {
            words: vec![0; (2 * count).div_ceil(KEYS_PER_WORD)],
            keys: count,
        };
        prefixes.for_each(|prefix| filter.set(prefix));
        filter
    }

    /// Whether a key may be there.
    pub(crate) fn may_have(&self, prefix: u64) -> bool {
        let word = self.words.get(place(prefix, self.words.len()));
        word.is_some_and(|word| word & bits(prefix) == bits(prefix))
    }

    fn set(&mut self, prefix: u64) {
        let at = place(prefix, self.words.len());
        if let Some(word) = self.words.get_mut(at) {
            *word |= bits(prefix);
        }
    }
}

/// The key's last bytes choose the word: the first already choose its row in a table.
fn place(prefix: u64, words: usize) -> usize {
    ((u64::from(prefix as u32) * words as u64) >> 32) as usize
}

/// Four bits, from the 24 that do not choose the word.
fn bits(prefix: u64) -> u64 {
    (0..4).fold(0, |all, bit| all | 1 << (prefix >> (32 + 6 * bit) & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> u64 {
        let digest = blake3::hash(&number.to_le_bytes());
        u64::from_be_bytes(*digest.as_bytes().first_chunk().unwrap())
    }

    #[test]
    fn none_that_is_there_seems_absent_and_few_of_the_others_seem_there() {
        for count in [0, 1, 5, 6, 7, 1000, 20_000] {
            let mut filter = Filter::of(count, (0..count as u64).map(key));
            let more = count as u64..2 * count as u64;
            assert!(filter.add(count, more.map(key)));
            assert!((0..2 * count as u64).all(|number| filter.may_have(key(number))));
            let seem = |number: &u64| filter.may_have(key(1_000_000 + number));
            let wrong = (0..10_000).filter(seem).count();
            assert!(wrong < 500, "{wrong} of 10,000, with {count} keys");
            assert!(!filter.add(10, 0..10));
        }
    }
}
