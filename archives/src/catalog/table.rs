//! The index of one large segment, in memory.

use std::sync::Arc;

use crate::format::index_block::{IndexBlock, ROW, Row};
use crate::format::segment::Segment;

/// Sorted rows. Keys are digests, evenly spread, so a row is found by guessing where it must be.
pub(crate) struct Table {
    pub(crate) segment: Arc<Segment>,
    rows: Vec<u8>,
}

impl Table {
    pub(crate) fn new(segment: &Arc<Segment>, block: IndexBlock) -> Self {
        Self {
            segment: Arc::clone(segment),
            rows: block.rows,
        }
    }

    /// The rows of a key, in the order of their places.
    pub(crate) fn find(&self, prefix: u64) -> impl Iterator<Item = Row> + '_ {
        let first = self.first_not_before(prefix);
        (first..self.len()).map_while(move |at| self.row(at).filter(|row| row.prefix == prefix))
    }

    /// All rows, by key.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        Row::all(&self.rows)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() / ROW
    }

    fn row(&self, at: usize) -> Option<Row> {
        self.rows.as_chunks().0.get(at).map(Row::read)
    }

    /// The first row whose key is not before this one: a guess from the key's first 32 bits,
    /// steps away from it that double until they are past it, then halving.
    fn first_not_before(&self, prefix: u64) -> usize {
        let len = self.len();
        let guess = (((prefix >> 32) * len as u64) >> 32) as usize;
        let is_before = |at: usize| self.row(at).is_some_and(|row| row.prefix < prefix);
        let (mut low, mut high);
        let mut step = 4;
        if guess < len && is_before(guess) {
            low = guess + 1;
            while low + step < len && is_before(low + step) {
                low += step + 1;
                step *= 2;
            }
            high = (low + step).min(len);
        } else {
            high = guess;
            while high > step && !is_before(high - step) {
                high -= step;
                step *= 2;
            }
            low = high.saturating_sub(step);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(middle) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::format::class::Part;
    use crate::format::id::UniqueId;

    fn row(prefix: u64, at: u64) -> Row {
        Row {
            prefix,
            place: at << 8 | 1,
            saved_at: at + 1,
        }
    }

    fn table(rows: Vec<Row>) -> Table {
        let (id, writer) = (UniqueId([1; 16]), UniqueId([2; 16]));
        let segment = Arc::new(Segment::new(PathBuf::new(), id, Part::Entries, writer));
        let (block, _) = IndexBlock::seal(&segment, rows, 64).unwrap();
        Table::new(&segment, block)
    }

    /// Evenly spread keys, crowded ones, one key many times, and what is not there.
    #[test]
    fn each_row_is_found_and_nothing_else() {
        let spread = |n: u64| n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let crowded = |n: u64| (0x7f7f_7f7f << 32) + n;
        for count in [0, 1, 2, 3, 10, 1000] {
            for key in [spread, crowded] {
                let rows: Vec<_> = (0..count).map(|n| row(key(n), 64 + n * 8)).collect();
                let table = table(rows.clone());
                for row in &rows {
                    assert_eq!(table.find(row.prefix).collect::<Vec<_>>(), [*row]);
                }
                for n in count..count + 100 {
                    assert_eq!(table.find(key(n)).count(), 0);
                }
                for edge in [0, u64::MAX] {
                    assert_eq!(table.find(edge).count(), 0);
                }
            }
        }
        let same: Vec<_> = (0..100).map(|n| row(5, 64 + n * 8)).collect();
        assert_eq!(table(same.clone()).find(5).collect::<Vec<_>>(), same);
    }
}
