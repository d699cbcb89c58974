//! Arrays of numbers: a short head with their type and shape, then the numbers.

use ciborium_ll::{Decoder, Header};
use sde::bulk::{AxisOrder, NumberType};

use crate::cbor::tags::{self, by_type};

/// The type and shape of an array of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Numbers {
    /// The type of its numbers, which are little-endian.
    pub kind: NumberType,
    /// The array's lengths, one for each dimension.
    pub lengths: Vec<u64>,
    /// The order of the numbers.
    pub order: AxisOrder,
}

/// The most dimensions of an array.
const DIMENSIONS: usize = 64;

impl Numbers {
    /// An array of one dimension.
    #[must_use]
    pub fn line(kind: NumberType, length: u64) -> Self {
        Self {
            kind,
            lengths: vec![length],
            order: AxisOrder::Rows,
        }
    }

    /// The number of its elements.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.lengths
            .iter()
            .fold(1, |product, length| product.saturating_mul(*length))
    }

    /// One of its numbers as Rust writes it, with enough digits to restore its bits.
    #[must_use]
    pub fn text(&self, bytes: &[u8]) -> String {
        macro_rules! text {
            ($type:ty) => {
                bytes
                    .try_into()
                    .map(|bytes| format!("{:?}", <$type>::from_le_bytes(bytes)))
                    .unwrap_or_default()
            };
        }
        by_type!(self.kind, text, String::new())
    }
}

/// The head of the array that begins here, and where its numbers begin. `None` if it is no array, or its shape does
/// not fit the bytes.
pub(super) fn head(bytes: &[u8], length: u64) -> Option<(Numbers, u64)> {
    let (numbers, rest, size) = take(bytes)?;
    let at = (bytes.len() - rest.len()) as u64;
    (at.checked_add(size) == Some(length)).then_some((numbers, at))
}

/// Splits off an array's head: gives the shape, the bytes after the head, and the length of the numbers.
pub(super) fn take(bytes: &[u8]) -> Option<(Numbers, &[u8], u64)> {
    let mut rest = bytes;
    let mut tag = pull_tag(&mut rest)?;
    let mut shape = None;
    if let Some(order) = tags::order(tag) {
        shape = Some((order, lengths(&mut rest)?));
        tag = pull_tag(&mut rest)?;
    }
    let kind = tags::numbers(tag)?;
    let Header::Bytes(Some(size)) = pull(&mut rest)? else {
        return None;
    };
    if !size.is_multiple_of(kind.size()) {
        return None;
    }
    let count = (size / kind.size()) as u64;
    let (order, lengths) = shape.unwrap_or((AxisOrder::Rows, vec![count]));
    let numbers = Numbers {
        kind,
        lengths,
        order,
    };
    (numbers.count() == count).then_some((numbers, rest, size as u64))
}

fn lengths(rest: &mut &[u8]) -> Option<Vec<u64>> {
    if pull(rest)? != Header::Array(Some(2)) {
        return None;
    }
    let Header::Array(Some(dimensions)) = pull(rest)? else {
        return None;
    };
    if dimensions > DIMENSIONS {
        return None;
    }
    (0..dimensions)
        .map(|_| match pull(rest)? {
            Header::Positive(length) => Some(length),
            _ => None,
        })
        .collect()
}

fn pull_tag(rest: &mut &[u8]) -> Option<u64> {
    match pull(rest)? {
        Header::Tag(tag) => Some(tag),
        _ => None,
    }
}

fn pull(rest: &mut &[u8]) -> Option<Header> {
    Decoder::from(rest).pull().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_long_as_it_says_is_no_array() {
        let one = [0xd8, 86, 0x48, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
        let line = Numbers::line(NumberType::F64, 1);
        assert_eq!(head(&one, 11), Some((line, 3)));
        assert_eq!(head(&one, 12), None);
        // Seven bytes are no number.
        assert_eq!(head(&[0xd8, 86, 0x47, 0, 0, 0, 0, 0, 0, 0xf0], 10), None);
        // With a shape, whose product must be the number of elements.
        for (length, is_one) in [(1, true), (2, false)] {
            let shaped = [&[0xd8, 40, 0x82, 0x81, length][..], &one].concat();
            assert_eq!(head(&shaped, 16).is_some(), is_one);
        }
    }
}
