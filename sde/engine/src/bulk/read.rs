//! Reading numbers from a format.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::ARRAY;
use super::container::{Bulk, Order, Shape};
use super::element::Element;
use super::write::swap;

/// Reads a list or an array; for `#[serde(with = "sde::bulk")]`.
///
/// # Errors
/// If there is none, or one of other numbers or of another shape.
pub fn deserialize<'de, B: Bulk, D: Deserializer<'de>>(from: D) -> Result<B, D::Error> {
    let shaped = B::SHAPED || has_inner::<B::Element>();
    let (items, shape) = match (from.is_human_readable(), shaped) {
        (true, _) if !B::SHAPED => from.deserialize_any(List::<B>(PhantomData))?,
        (_, true) => from.deserialize_enum(ARRAY, Order::NAMES, Shaped::<B>(PhantomData))?,
        (_, false) => (Numbers::new().deserialize(from)?, None),
    };
    B::build(items, shape).map_err(D::Error::custom)
}

fn has_inner<E: Element>() -> bool {
    let mut inner = Vec::new();
    E::inner(&mut inner);
    !inner.is_empty()
}

/// Elements and their shape, as they are read.
type Parts<B> = (Vec<<B as Bulk>::Element>, Option<Shape>);

/// A list as people see it.
struct List<B>(PhantomData<B>);

impl<'de, B: Bulk> Visitor<'de> for List<B> {
    type Value = Parts<B>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", B::Element::NUMBERS.rust_name())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(|items| (items, None))
    }

    /// Where serde holds what it read before it knows the type (in a flattened struct,
    /// an untagged enum) it forgets who can read it, and a variant is a map.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let order = map
            .next_key_seed(Which)?
            .ok_or_else(|| A::Error::invalid_length(0, &self))?;
        map.next_value_seed(Pair::<B>(order, PhantomData))
    }
}

/// Numbers with a shape, whose innermost dimensions are those of the element.
struct Shaped<B>(PhantomData<B>);

impl<'de, B: Bulk> Visitor<'de> for Shaped<B> {
    type Value = Parts<B>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = B::Element::NUMBERS.rust_name();
        write!(f, "an array of {name} with a shape")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        let (order, content) = access.variant_seed(Which)?;
        content.tuple_variant(2, Pair::<B>(order, PhantomData))
    }
}

/// The order, by the name of the variant or its number.
struct Which;

impl<'de> DeserializeSeed<'de> for Which {
    type Value = Order;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Order, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Which {
    type Value = Order;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {:?}", Order::NAMES)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Order, E> {
        Order::of_name(name).ok_or_else(|| E::unknown_variant(name, Order::NAMES))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Order, E> {
        match number {
            0 => Ok(Order::Rows),
            1 => Ok(Order::Columns),
            _ => Err(E::custom(format_args!("there is no order {number}"))),
        }
    }
}

/// The shape and the numbers.
struct Pair<B>(Order, PhantomData<B>);

impl<'de, B: Bulk> DeserializeSeed<'de> for Pair<B> {
    type Value = Parts<B>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_tuple(2, self)
    }
}

impl<'de, B: Bulk> Visitor<'de> for Pair<B> {
    type Value = Parts<B>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shape and numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Self::Value, A::Error> {
        let lengths: Vec<usize> = pair
            .next_element()?
            .ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let items = pair
            .next_element_seed(Numbers::<B::Element>::new())?
            .ok_or_else(|| A::Error::invalid_length(1, &self))?;
        let shape = outer::<B::Element>(self.0, lengths, items.len()).ok_or_else(|| {
            A::Error::custom("the shape of an array does not fit its numbers or their type")
        })?;
        match (B::SHAPED, &shape.lengths[..], shape.order) {
            (true, ..) => Ok((items, Some(shape))),
            (false, [_], Order::Rows) => Ok((items, None)),
            _ => Err(A::Error::custom("an array has more dimensions than a list")),
        }
    }
}

/// The shape without the dimensions of the element, if it has so many elements.
fn outer<E: Element>(order: Order, mut lengths: Vec<usize>, items: usize) -> Option<Shape> {
    let mut inner = Vec::new();
    E::inner(&mut inner);
    let outer = lengths.len().checked_sub(inner.len())?;
    let found = match order {
        Order::Rows => lengths.split_off(outer),
        Order::Columns => lengths.drain(..inner.len()).rev().collect(),
    };
    let count = lengths
        .iter()
        .try_fold(1_usize, |count, length| count.checked_mul(*length))?;
    (found == inner && count == items).then_some(Shape { order, lengths })
}

/// Numbers without a shape, as elements.
struct Numbers<E>(PhantomData<E>);

impl<E: Element> Numbers<E> {
    fn new() -> Self {
        Self(PhantomData)
    }

    /// Copies the bytes once, into memory that is as `E` needs it.
    fn of_bytes<F: Error>(bytes: &[u8]) -> Result<Vec<E>, F> {
        let size = size_of::<E>();
        if size == 0 || !bytes.len().is_multiple_of(size) {
            let length = bytes.len();
            return Err(F::custom(format_args!(
                "{length} bytes are no list of elements of {size} bytes"
            )));
        }
        let mut items = bytemuck::allocation::try_zeroed_vec::<E>(bytes.len() / size)
            .map_err(|()| F::custom(format_args!("no memory for {} bytes", bytes.len())))?;
        let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut items);
        memory.copy_from_slice(bytes);
        if cfg!(target_endian = "big") {
            swap(E::NUMBERS, memory);
        }
        Ok(items)
    }
}

impl<'de, E: Element> DeserializeSeed<'de> for Numbers<E> {
    type Value = Vec<E>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<E>, D::Error> {
        match from.is_human_readable() {
            true => from.deserialize_seq(self),
            false => from.deserialize_newtype_struct(E::NUMBERS.name(), self),
        }
    }
}

impl<'de, E: Element> Visitor<'de> for Numbers<E> {
    type Value = Vec<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "numbers of type {}", E::NUMBERS.rust_name())
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Vec<E>, D::Error> {
        // A format that can lend its bytes does so, and one that reads from a file must not
        // fail for want of a place to lend them from.
        from.deserialize_byte_buf(self)
    }

    fn visit_bytes<F: Error>(self, bytes: &[u8]) -> Result<Vec<E>, F> {
        Self::of_bytes(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<E>, A::Error> {
        let mut numbers: Vec<E::Number> = Vec::new();
        while let Some(number) = list.next_element()? {
            numbers.push(number);
        }
        let bytes: &[u8] = bytemuck::cast_slice(&numbers);
        match size_of::<E>() {
            size if size > 0 && bytes.len().is_multiple_of(size) => {
                Ok(bytemuck::allocation::pod_collect_to_vec(bytes))
            }
            _ => Err(A::Error::invalid_length(numbers.len(), &self)),
        }
    }
}
