//! Writing and reading values without a Rust type.
//!
//! They are written as the Rust values that they equal, and read by asking a format what comes next. Arrays are asked
//! for by [`bulk::ANY`], so that their numbers keep their type and are copied once. A format without that name shows
//! them as lists.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::ser::{Error as _, Serialize, Serializer};

use super::Data;
use super::array::{AnyArray, Numbers};
use crate::bulk::{self, AxisOrder, NumberType};

/// The name before a file, in the map that it is written as. No other map has it.
const FILE: &str = "$sde::file";

/// The greatest depth that is read, a little more than stores write.
const DEPTH: usize = 260;

/// The greatest length hint that is believed.
const HINT: usize = 64;

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => to.serialize_unit(),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Int(value) => to.serialize_i64(*value),
            Self::Float(value) => to.serialize_f64(*value),
            Self::Text(text) => to.serialize_str(text),
            Self::Bytes(bytes) => bulk::serialize(bytes, to),
            Self::List(items) => to.collect_seq(items),
            Self::Map(values) if values.contains_key(FILE) => Err(S::Error::custom(format_args!(
                "a map has the name {FILE:?}"
            ))),
            Self::Map(values) => to.collect_map(values),
            Self::Array(array) => array.bulk().serialize(to),
            Self::File(file) => to.serialize_newtype_variant("Data", 0, FILE, file),
            Self::Shared(value) => value.serialize(to),
            Self::Keyed(_) => Err(S::Error::custom("of an array in it there is only the key")),
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        AnyData { depth: 0 }.deserialize(from)
    }
}

/// Reads a value at this depth.
#[derive(Clone, Copy)]
struct AnyData {
    depth: usize,
}

impl AnyData {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth < DEPTH {
            true => Ok(Self {
                depth: self.depth + 1,
            }),
            false => Err(E::custom("it is nested too deeply")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for AnyData {
    type Value = Data;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Data, D::Error> {
        from.deserialize_newtype_struct(bulk::ANY, self)
    }
}

impl<'de> Visitor<'de> for AnyData {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    /// It is no array.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Data, D::Error> {
        from.deserialize_any(self.deeper()?)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Data, D::Error> {
        self.deeper()?.deserialize(from)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Data, A::Error> {
        Ok(match array(access)? {
            array if array.numbers() == NumberType::U8 && array.order().is_none() => {
                Data::Bytes(array.bytes().to_vec())
            }
            array => Data::Array(array),
        })
    }

    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::None)
    }

    fn visit_none<E>(self) -> Result<Data, E> {
        Ok(Data::None)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Data, E> {
        Ok(Data::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Data, E> {
        Ok(Data::Int(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Data, E> {
        let value = i64::try_from(value);
        value
            .map(Data::Int)
            .map_err(|_| E::custom("an integer in it has more than 63 bits"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Data, E> {
        Ok(Data::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Data, E> {
        Ok(Data::Text(text.to_owned()))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Data, E> {
        Ok(Data::Bytes(bytes.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Data, A::Error> {
        let mut items = Vec::with_capacity(list.size_hint().unwrap_or(0).min(HINT));
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == FILE {
                return map.next_value().map(Data::File);
            }
            values.insert(name, map.next_value_seed(self)?);
        }
        Ok(Data::Map(values))
    }
}

/// Reads a list or an array, by the names that [`bulk`] describes.
fn array<'de, A: EnumAccess<'de>>(access: A) -> Result<AnyArray, A::Error> {
    let (name, content) = access.variant::<String>()?;
    let (numbers, shape) = match (NumberType::of_name(&name), AxisOrder::of_name(&name)) {
        (Some(kind), _) => (content.newtype_variant_seed(OfKind(kind))?, None),
        (None, Some(order)) => {
            let (lengths, numbers) = content.tuple_variant(2, Shaped)?;
            (numbers, Some((lengths, order)))
        }
        (None, None) => return Err(A::Error::custom("it has an array of an unknown kind")),
    };
    AnyArray::of(numbers, shape).map_err(A::Error::custom)
}

/// Reads the lengths and numbers of an array.
struct Shaped;

impl<'de> Visitor<'de> for Shaped {
    type Value = (Vec<usize>, Numbers);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shape and numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Self::Value, A::Error> {
        let short = || A::Error::invalid_length(0, &self);
        let lengths = pair.next_element()?.ok_or_else(short)?;
        let numbers = pair.next_element_seed(OfAnyKind)?.ok_or_else(short)?;
        Ok((lengths, numbers))
    }
}

/// Reads numbers whose type the format names.
struct OfAnyKind;

impl<'de> DeserializeSeed<'de> for OfAnyKind {
    type Value = Numbers;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Numbers, D::Error> {
        from.deserialize_newtype_struct(bulk::ANY, self)
    }
}

impl<'de> Visitor<'de> for OfAnyKind {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Numbers, A::Error> {
        let (name, content) = access.variant::<String>()?;
        let kind = NumberType::of_name(&name);
        let kind = kind.ok_or_else(|| A::Error::custom("an array has an array in it"))?;
        content.newtype_variant_seed(OfKind(kind))
    }
}

/// Reads the bytes of numbers of a type.
struct OfKind(NumberType);

impl<'de> DeserializeSeed<'de> for OfKind {
    type Value = Numbers;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Numbers, D::Error> {
        from.deserialize_byte_buf(self)
    }
}

impl Visitor<'_> for OfKind {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of {}", self.0.rust_name())
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Numbers, E> {
        Numbers::of_bytes(self.0, bytes).map_err(E::custom)
    }
}
