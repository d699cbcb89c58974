//! Showing numbers to a format.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::ARRAY;
use super::container::{AxisOrder, Bulk, Elements, Shape};
use super::element::{Element, dimensions_of};
use super::number_type::NumberType;

/// Writes a list or an array; for `#[serde(with = "sde::bulk")]`.
///
/// # Errors
/// An error of the format.
pub fn serialize<B: Bulk, S: Serializer>(value: &B, to: S) -> Result<S::Ok, S::Error> {
    if to.is_human_readable() && !B::SHAPED {
        to.collect_seq(value.elements().items.iter())
    } else {
        bytes_of(value).serialize(to)
    }
}

/// A list or array of numbers as it is written, without a copy where its elements
/// lie side by side (and the host is little-endian).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BulkBytes<'a> {
    /// The type of the numbers.
    pub numbers: NumberType,
    /// `None` for one dimension.
    pub shape: Option<Shape>,
    /// The numbers, little-endian.
    pub bytes: Cow<'a, [u8]>,
}

pub(crate) fn bytes_of<B: Bulk>(value: &B) -> BulkBytes<'_> {
    let Elements { items, shape } = value.elements();
    let numbers = B::Element::NUMBERS;
    BulkBytes {
        numbers,
        shape: whole_shape::<B::Element>(shape, items.len()),
        bytes: match items {
            Cow::Borrowed(items) => little_endian(numbers, bytemuck::cast_slice(items)),
            Cow::Owned(items) => little_endian(numbers, bytemuck::cast_slice(&items))
                .into_owned()
                .into(),
        },
    }
}

/// The shape with the dimensions of the elements themselves, which run fastest: they
/// are the last by rows, and the first by columns.
pub(crate) fn whole_shape<E: Element>(outer: Option<Shape>, items: usize) -> Option<Shape> {
    let inner = dimensions_of::<E>();
    let mut shape = match (outer, inner.is_empty()) {
        (Some(outer), _) => outer,
        (None, true) => return None,
        (None, false) => Shape {
            order: AxisOrder::Rows,
            lengths: vec![items],
        },
    };
    match shape.order {
        AxisOrder::Rows => shape.lengths.extend(inner),
        AxisOrder::Columns => {
            shape.lengths.splice(..0, inner.into_iter().rev());
        }
    }
    Some(shape)
}

pub(crate) fn little_endian(numbers: NumberType, bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(bytes);
    if cfg!(target_endian = "big") && numbers.size() > 1 {
        swap(numbers, bytes.to_mut());
    }
    bytes
}

/// Turns the bytes of each number around.
pub(super) fn swap(numbers: NumberType, bytes: &mut [u8]) {
    for number in bytes.chunks_exact_mut(numbers.size()) {
        number.reverse();
    }
}

impl Serialize for BulkBytes<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let numbers = Numbers(self);
        match &self.shape {
            None => numbers.serialize(to),
            Some(shape) => to.serialize_newtype_variant(
                ARRAY,
                shape.order as u32,
                shape.order.name(),
                &(&shape.lengths, numbers),
            ),
        }
    }
}

/// The numbers without their shape.
struct Numbers<'a>(&'a BulkBytes<'a>);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (numbers, bytes) = (self.0.numbers, &self.0.bytes);
        if to.is_human_readable() {
            numbers.one_by_one(bytes, to)
        } else {
            to.serialize_newtype_struct(numbers.name(), &Raw(bytes))
        }
    }
}

struct Raw<'a>(&'a [u8]);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.0)
    }
}
