//! Reading numbers from a format.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{
    Deserialize, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::ARRAY;
use super::container::{AxisOrder, Bulk, Shape};
use super::element::{Element, dimensions_of};
use super::pages::try_zeroed;
use super::write::{BulkBytes, swap};

/// Reads a list or an array; for `#[serde(with = "sde::bulk")]`.
///
/// # Errors
/// If there is none, or one of other numbers or of another shape.
pub fn deserialize<'de, B: Bulk, D: Deserializer<'de>>(from: D) -> Result<B, D::Error> {
    let is_shaped = B::SHAPED || !dimensions_of::<B::Element>().is_empty();
    let parts = PartsVisitor::<B>(PhantomData);
    let (items, shape) = match (from.is_human_readable(), is_shaped) {
        (true, _) if !B::SHAPED => from.deserialize_any(parts)?,
        (_, true) => from.deserialize_enum(ARRAY, AxisOrder::NAMES, parts)?,
        (_, false) => (Numbers::deserialize(from)?.0, None),
    };
    B::build(items, shape).map_err(D::Error::custom)
}

/// A list as people see it, or numbers with a shape, whose innermost dimensions are those of the element.
struct PartsVisitor<B>(PhantomData<B>);

impl<'de, B: Bulk> Visitor<'de> for PartsVisitor<B> {
    type Value = (Vec<B::Element>, Option<Shape>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = B::Element::NUMBERS.rust_name();
        write!(f, "a list of {name}, or an array of {name} with a shape")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(|items| (items, None))
    }

    /// Where serde holds what it read before it knows the type (in a flattened struct,
    /// an untagged enum) it forgets who can read it, and a variant is a map.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let order: Option<Variant> = map.next_key()?;
        let order = order.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        parts::<B, _>(order.into(), map.next_value()?)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        let (order, content) = access.variant::<Variant>()?;
        parts::<B, _>(
            order.into(),
            content.tuple_variant(2, PairVisitor(PhantomData))?,
        )
    }
}

/// The order, by the name of the variant or its number.
#[derive(serde::Deserialize)]
#[serde(variant_identifier, rename_all = "snake_case")]
enum Variant {
    ByRows,
    ByColumns,
}

impl From<Variant> for AxisOrder {
    fn from(variant: Variant) -> Self {
        match variant {
            Variant::ByRows => Self::Rows,
            Variant::ByColumns => Self::Columns,
        }
    }
}

/// The shape and the numbers.
type Pair<E> = (Vec<usize>, Numbers<E>);

struct PairVisitor<E>(PhantomData<E>);

impl<'de, E: Element> Visitor<'de> for PairVisitor<E> {
    type Value = Pair<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shape and numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, pair: A) -> Result<Self::Value, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(pair))
    }
}

fn parts<B: Bulk, F: Error>(
    order: AxisOrder,
    (lengths, Numbers(items)): Pair<B::Element>,
) -> Result<(Vec<B::Element>, Option<Shape>), F> {
    let shape = outer::<B::Element>(order, lengths, items.len())
        .ok_or_else(|| F::custom("the shape of an array does not fit its numbers or their type"))?;
    match (B::SHAPED, &shape.lengths[..], shape.order) {
        (true, ..) => Ok((items, Some(shape))),
        (false, [_], AxisOrder::Rows) => Ok((items, None)),
        _ => Err(F::custom("an array has more dimensions than a list")),
    }
}

/// The shape without the dimensions of the element, if it has so many elements.
fn outer<E: Element>(order: AxisOrder, mut lengths: Vec<usize>, items: usize) -> Option<Shape> {
    let inner = dimensions_of::<E>();
    let outer = lengths.len().checked_sub(inner.len())?;
    let found = match order {
        AxisOrder::Rows => lengths.split_off(outer),
        AxisOrder::Columns => lengths.drain(..inner.len()).rev().collect(),
    };
    let count = lengths
        .iter()
        .try_fold(1_usize, |count, length| count.checked_mul(*length))?;
    (found == inner && count == items).then_some(Shape { order, lengths })
}

/// Numbers without a shape, as elements.
struct Numbers<E>(Vec<E>);

impl<'de, E: Element> Deserialize<'de> for Numbers<E> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let numbers = NumbersVisitor(PhantomData);
        if from.is_human_readable() {
            from.deserialize_seq(numbers)
        } else {
            from.deserialize_newtype_struct(E::NUMBERS.name(), numbers)
        }
    }
}

struct NumbersVisitor<E>(PhantomData<E>);

impl<'de, E: Element> Visitor<'de> for NumbersVisitor<E> {
    type Value = Numbers<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "numbers of type {}", E::NUMBERS.rust_name())
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Numbers<E>, D::Error> {
        // A format that can lend its bytes does so, and one that reads from a file must not
        // fail for want of a place to lend them from.
        from.deserialize_byte_buf(self)
    }

    fn visit_bytes<F: Error>(self, bytes: &[u8]) -> Result<Numbers<E>, F> {
        elements(bytes).map(Numbers).map_err(F::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Numbers<E>, A::Error> {
        let numbers: Vec<E::Number> = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        let bytes: &[u8] = bytemuck::cast_slice(&numbers);
        match size_of::<E>() {
            size if size > 0 && bytes.len().is_multiple_of(size) => {
                Ok(Numbers(bytemuck::allocation::pod_collect_to_vec(bytes)))
            }
            _ => Err(A::Error::invalid_length(numbers.len(), &self)),
        }
    }
}

/// Copies little-endian bytes once, into memory that is as `E` needs it.
pub(crate) fn elements<E: Element>(bytes: &[u8]) -> Result<Vec<E>, String> {
    let (length, size) = (bytes.len(), size_of::<E>());
    if size == 0 || !length.is_multiple_of(size) {
        return Err(format!(
            "{length} bytes are no list of elements of {size} bytes"
        ));
    }
    let mut items =
        try_zeroed::<E>(length / size).ok_or_else(|| format!("no memory for {length} bytes"))?;
    let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut items);
    memory.copy_from_slice(bytes);
    if cfg!(target_endian = "big") {
        swap(E::NUMBERS, memory);
    }
    Ok(items)
}

/// The list or array that consists of these numbers; `None` if `B` has other numbers or another shape.
pub(crate) fn of_bytes<B: Bulk>(from: &BulkBytes<'_>) -> Option<B> {
    let numbers = B::Element::NUMBERS;
    let items = (from.numbers == numbers).then(|| elements::<B::Element>(&from.bytes))?;
    let (order, lengths) = match &from.shape {
        Some(Shape { order, lengths }) => (*order, lengths.clone()),
        None => (AxisOrder::Rows, vec![from.bytes.len() / numbers.size()]),
    };
    let parts = parts::<B, serde::de::value::Error>(order, (lengths, Numbers(items.ok()?)));
    let (items, shape) = parts.ok()?;
    B::build(items, shape).ok()
}
