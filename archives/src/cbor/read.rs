//! Deserializes CBOR from memory, without trusting it.
//!
//! A length is compared with the remaining bytes before it is used, depth is limited, and an array of numbers is
//! only given to a type with such numbers. Byte strings and texts are borrowed. The numbers of an array are copied
//! once, to their final place.
//!
//! Only the forms that [`write`](super::write) writes are accepted: no other tags, no strings in pieces.

use ciborium_ll::{Decoder, Error as LlError, Header, simple};
use sde::bulk::{ANY, ARRAY, AxisOrder, NumberType};
use serde::de::{Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::access::{Items, Named, Numbers, Variant};
use super::failure::{Failure, Result};
use super::write::SINGLE;
use super::{DEPTH, tags};

/// Reads items from the front of some bytes.
pub(super) struct Reader<'de> {
    rest: &'de [u8],
    length: usize,
    depth: usize,
}

/// An item, or the head of one.
enum Item<'de> {
    Head(Header),
    /// Not a [`Header::Float`], which can't hold a signalling NaN.
    Single(f32),
    Bytes(&'de [u8]),
    Text(&'de str),
}

impl<'de> Reader<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
            depth: 0,
        }
    }

    /// The number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn head(&mut self) -> Result<Header> {
        let at = self.length - self.rest.len();
        Decoder::from(&mut self.rest)
            .pull()
            .map_err(|error| match error {
                LlError::Io(_) => Failure("it ends too early".to_owned()),
                LlError::Syntax(_) => Failure(format!("it is not CBOR at byte {at}")),
            })
    }

    /// The next head, without consuming it.
    fn peek(&mut self) -> Result<Header> {
        let before = self.rest;
        let head = self.head();
        self.rest = before;
        head
    }

    fn item(&mut self) -> Result<Item<'de>> {
        if let [SINGLE, bits @ ..] = self.rest
            && let Some((bits, rest)) = bits.split_first_chunk()
        {
            self.rest = rest;
            return Ok(Item::Single(f32::from_bits(u32::from_be_bytes(*bits))));
        }
        match self.head()? {
            Header::Bytes(length) => self.take(length).map(Item::Bytes),
            Header::Text(length) => {
                let text = std::str::from_utf8(self.take(length)?);
                text.map(Item::Text)
                    .map_err(|_| Failure("a text in it is not UTF-8".to_owned()))
            }
            head => Ok(Item::Head(head)),
        }
    }

    /// The next bytes, if there are as many.
    fn take(&mut self, length: Option<usize>) -> Result<&'de [u8]> {
        let length = length.ok_or_else(|| Failure("it has a string in pieces".to_owned()))?;
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| Failure("it ends too early".to_owned()))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The byte string after a tag.
    fn tagged_bytes(&mut self) -> Result<&'de [u8]> {
        match self.item()? {
            Item::Bytes(bytes) => Ok(bytes),
            _ => Err(Failure("a tag in it is not followed by bytes".to_owned())),
        }
    }

    /// Consumes the break of a list of unknown length, if it is next.
    pub(super) fn ends(&mut self) -> Result<bool> {
        let ends = self.peek()? == Header::Break;
        if ends {
            self.head()?;
        }
        Ok(ends)
    }

    /// Runs a job one level deeper.
    pub(super) fn deeper<T>(&mut self, job: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            return Err(Failure("it is nested too deeply".to_owned()));
        }
        self.depth += 1;
        let done = job(self);
        self.depth -= 1;
        done
    }

    fn items<T>(
        &mut self,
        count: Option<usize>,
        visit: impl FnOnce(&mut Items<'_, 'de>) -> Result<T>,
    ) -> Result<T> {
        self.deeper(|reader| {
            let mut items = Items::new(reader, count);
            let value = visit(&mut items)?;
            items.close().map(|()| value)
        })
    }

    fn tagged<V: Visitor<'de>>(&mut self, tag: u64, visitor: V) -> Result<V::Value> {
        if let Some(kind) = tags::numbers(tag) {
            return visitor.visit_seq(Numbers::new(kind, self.tagged_bytes()?)?);
        }
        if let Some(order) = tags::order(tag) {
            return self.deeper(|reader| visitor.visit_map(Named::new(order.name(), reader)));
        }
        let inverted = tag == tags::BIG_NEGATIVE;
        if tag != tags::BIG && !inverted {
            return Err(unknown_tag(tag));
        }
        let too_large = || Failure("an integer in it has more than 128 bits".to_owned());
        let integer = tags::big(self.tagged_bytes()?).ok_or_else(too_large)?;
        match inverted {
            false => visitor.visit_u128(integer),
            true => visitor.visit_i128(!i128::try_from(integer).map_err(|_| too_large())?),
        }
    }

    /// Consumes the tag of numbers of this type, or fails.
    fn expect_numbers(&mut self, kind: NumberType) -> Result<()> {
        let found = match self.head()? {
            Header::Tag(tag) => tags::numbers(tag),
            _ => None,
        };
        match found {
            Some(found) if found == kind => Ok(()),
            found => Err(Failure(format!(
                "it has {} where an array of {} was expected",
                found.map_or("something else".to_owned(), |found| {
                    format!("an array of {}", found.rust_name())
                }),
                kind.rust_name()
            ))),
        }
    }
}

fn unknown_tag(tag: u64) -> Failure {
    Failure(format!("it has a tag {tag}, which is not known"))
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Failure;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let head = match self.item()? {
            Item::Single(value) => return visitor.visit_f32(value),
            Item::Bytes(bytes) => return visitor.visit_borrowed_bytes(bytes),
            Item::Text(text) => return visitor.visit_borrowed_str(text),
            Item::Head(head) => head,
        };
        match head {
            Header::Positive(value) => visitor.visit_u64(value),
            Header::Negative(inverted) => match i64::try_from(inverted) {
                Ok(inverted) => visitor.visit_i64(!inverted),
                Err(_) => visitor.visit_i128(!i128::from(inverted)),
            },
            Header::Float(value) => visitor.visit_f64(value),
            Header::Simple(simple::FALSE) => visitor.visit_bool(false),
            Header::Simple(simple::TRUE) => visitor.visit_bool(true),
            Header::Simple(simple::NULL) => visitor.visit_unit(),
            Header::Array(count) => self.items(count, |items| visitor.visit_seq(items)),
            Header::Map(count) => self.items(count, |items| visitor.visit_map(items)),
            Header::Tag(tag) => self.tagged(tag, visitor),
            Header::Simple(other) => {
                let why = format!("it has a simple value {other}, which is not known");
                Err(Failure(why))
            }
            Header::Break => Err(Failure("a list in it ends where none is".to_owned())),
            Header::Bytes(_) | Header::Text(_) => {
                Err(Failure("a string in it can't be read".to_owned()))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.peek()? {
            Header::Simple(simple::NULL) => {
                self.head()?;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if name == ANY
            && let Header::Tag(tag) = self.peek()?
        {
            let numbers = tags::numbers(tag).map(NumberType::name);
            if let Some(array) = numbers.or_else(|| tags::order(tag).map(AxisOrder::name)) {
                self.head()?;
                return visitor.visit_enum(Variant::new(array, self));
            }
        } else if let Some(kind) = NumberType::of_name(name) {
            self.expect_numbers(kind)?;
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.item()? {
            Item::Text(name) => visitor.visit_enum(Variant::unit(name)),
            Item::Head(Header::Map(Some(1))) => self.deeper(|reader| {
                let Item::Text(name) = reader.item()? else {
                    return Err(Failure("a variant in it has no name".to_owned()));
                };
                visitor.visit_enum(Variant::new(name, reader))
            }),
            Item::Head(Header::Tag(tag)) if name == ARRAY => match tags::order(tag) {
                Some(order) => visitor.visit_enum(Variant::new(order.name(), self)),
                None => Err(unknown_tag(tag)),
            },
            _ => Err(Failure(format!(
                "it has something else where a variant of {name} was expected"
            ))),
        }
    }

    /// Arrays of numbers are skipped as a whole.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.peek()? {
            Header::Tag(tag) if tags::numbers(tag).is_some() => {
                self.head()?;
                self.tagged_bytes()?;
                visitor.visit_unit()
            }
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
