//! Access to the contents of arrays, maps, variants and arrays of numbers.

use sde::bulk::NumberType;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::failure::{Failure, Result};
use super::read::Reader;
use super::tags::by_type;

/// The greatest length hint: an announced length may be false, and each level of nesting may announce one.
const HINT: usize = 64;

/// The elements of an array, or the pairs of a map.
pub(super) struct Items<'a, 'de> {
    reader: &'a mut Reader<'de>,
    /// `None` for a list that ends with a break.
    count: Option<usize>,
    ended: bool,
}

impl<'a, 'de> Items<'a, 'de> {
    pub(super) fn new(reader: &'a mut Reader<'de>, count: Option<usize>) -> Self {
        Self {
            reader,
            count,
            ended: false,
        }
    }

    /// Whether another element comes, which is then counted as read.
    fn more(&mut self) -> Result<bool> {
        match &mut self.count {
            _ if self.ended => Ok(false),
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            None => {
                self.ended = self.reader.ends()?;
                Ok(!self.ended)
            }
        }
    }

    fn hint(&self) -> Option<usize> {
        let count = self.count?;
        Some(count.min(self.reader.left()).min(HINT))
    }

    /// An error if elements were left unread.
    pub(super) fn close(mut self) -> Result<()> {
        match self.more()? {
            false => Ok(()),
            true => Err(Failure("a list in it has elements left over".to_owned())),
        }
    }
}

impl<'de> SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Failure;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        match self.more()? {
            true => seed.deserialize(&mut *self.reader).map(Some),
            false => Ok(None),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

impl<'de> MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

/// An enum's variant, with or without content.
pub(super) struct Variant<'a, 'de> {
    name: &'de str,
    content: Option<&'a mut Reader<'de>>,
}

impl<'a, 'de> Variant<'a, 'de> {
    pub(super) fn unit(name: &'de str) -> Self {
        Self {
            name,
            content: None,
        }
    }

    pub(super) fn new(name: &'de str, content: &'a mut Reader<'de>) -> Self {
        Self {
            name,
            content: Some(content),
        }
    }

    fn content(self) -> Result<&'a mut Reader<'de>> {
        let name = self.name;
        self.content
            .ok_or_else(|| Failure(format!("a variant {name:?} in it has no content")))
    }
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        let name = BorrowedStrDeserializer::new(self.name);
        seed.deserialize(name).map(|value| (value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Failure;

    fn unit_variant(self) -> Result<()> {
        match self.content {
            None => Ok(()),
            Some(_) => Err(Failure(format!(
                "a variant {:?} in it has content",
                self.name
            ))),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value> {
        self.content()?.deserialize_tuple(count, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.content()?.deserialize_struct("", fields, visitor)
    }
}

/// A map with one pair.
pub(super) struct Named<'a, 'de> {
    name: Option<&'static str>,
    content: &'a mut Reader<'de>,
}

impl<'a, 'de> Named<'a, 'de> {
    pub(super) fn new(name: &'static str, content: &'a mut Reader<'de>) -> Self {
        Self {
            name: Some(name),
            content,
        }
    }
}

impl<'de> MapAccess<'de> for Named<'_, 'de> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        let name = self.name.take().map(BorrowedStrDeserializer::new);
        name.map(|name| seed.deserialize(name)).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.content)
    }
}

/// The elements of an array of numbers, for a type that is no such array.
pub(super) struct Numbers<'de> {
    kind: NumberType,
    rest: &'de [u8],
}

impl<'de> Numbers<'de> {
    pub(super) fn new(kind: NumberType, bytes: &'de [u8]) -> Result<Self> {
        match bytes.len().is_multiple_of(kind.size()) {
            true => Ok(Self { kind, rest: bytes }),
            false => Err(Failure(format!(
                "{} bytes in it are no array of {}",
                bytes.len(),
                kind.rust_name()
            ))),
        }
    }

    /// The next number of the wanted size.
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (number, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*number)
    }
}

impl<'de> SeqAccess<'de> for Numbers<'de> {
    type Error = Failure;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        macro_rules! number {
            ($type:ty) => {
                self.next()
                    .map(|bytes| {
                        seed.deserialize(<$type>::from_le_bytes(bytes).into_deserializer())
                    })
                    .transpose()
            };
        }
        let unknown = || Failure("it has numbers of an unknown type".to_owned());
        by_type!(self.kind, number, Err(unknown()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some((self.rest.len() / self.kind.size()).min(HINT))
    }
}
