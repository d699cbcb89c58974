//! Frames that record the uses of entries.

use std::collections::HashMap;

use sde::key::BuildKeyHasher;

use crate::cbor::metadata::{from_bytes, to_bytes};

/// How often an entry was given out, and the last time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) count: u64,
    pub(crate) last: u64,
}

impl Use {
    /// The sum of the counts, and the later time.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            last: self.last.max(other.last),
        }
    }
}

/// The uses of entries, by the prefixes of their keys.
pub(crate) type UsesOf = HashMap<u64, Use, BuildKeyHasher>;

/// Adds uses that were counted in several places.
pub(crate) fn add(to: &mut UsesOf, prefix: u64, one: Use) {
    let known = to.entry(prefix).or_default();
    *known = known.and(one);
}

/// The length of a row: the key's prefix (8 bytes), the last use in nanoseconds (8 bytes), the count (4 bytes).
const ROW: usize = 20;

fn row(prefix: u64, one: Use) -> impl Iterator<Item = u8> {
    let count = u32::try_from(one.count).unwrap_or(u32::MAX).to_le_bytes();
    let (key, last) = (prefix.to_be_bytes(), one.last.to_le_bytes());
    key.into_iter().chain(last).chain(count)
}

/// Reads the body of a frame: the number of rows, then the rows.
pub(crate) fn read(content: &[u8]) -> Result<Vec<(u64, Use)>, String> {
    let (count, rows) = from_bytes::<u64>(content)?;
    let (rows, rest) = rows.as_chunks::<ROW>();
    if count != rows.len() as u64 || !rest.is_empty() {
        return Err("it has other rows than it says".to_owned());
    }
    let one = |row: &[u8; ROW]| {
        let (numbers, _) = row.as_chunks::<8>();
        let (counts, _) = row[16..].as_chunks::<4>();
        let last = u64::from_le_bytes(numbers[1]);
        let count = u64::from(u32::from_le_bytes(counts[0]));
        (u64::from_be_bytes(numbers[0]), Use { count, last })
    };
    Ok(rows.iter().map(one).collect())
}

/// The body of a frame with these uses.
pub(crate) fn body(uses: &[(u64, Use)]) -> Result<Vec<u8>, String> {
    let mut body = to_bytes(&(uses.len() as u64))?;
    body.extend(uses.iter().flat_map(|(prefix, one)| row(*prefix, *one)));
    Ok(body)
}
