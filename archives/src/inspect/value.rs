//! A value without its Rust type.

use std::io::Read;

use ciborium_ll::{Decoder, Header, simple};
use sde::archiver::ArchiveError;

use super::numbers::{self, Numbers};
use crate::cbor::{DEPTH, tags};
use crate::read::payload::{StoredValue, damaged};

/// A CBOR item of a kind that stores use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decoded {
    /// `None`, `()`.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// An integer from 2^127 on.
    Large(u128),
    /// A floating-point number of 64 bits. CBOR may store it shorter, without changing it.
    Float(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list, or a tuple.
    List(Vec<Self>),
    /// A map, or a struct.
    Map(Vec<(Self, Self)>),
    /// An array of numbers, and their bytes, little-endian.
    Numbers(Numbers, Vec<u8>),
    /// An item with a tag that stores do not use.
    Tagged(u64, Box<Self>),
}

impl StoredValue {
    /// The value, without its Rust type, if it has at most `limit` bytes. A value of many small parts may take some
    /// thirty times as much memory.
    ///
    /// # Errors
    /// If it has more, can't be read, is damaged, or is no CBOR item.
    pub fn value(&self, limit: u64) -> Result<Decoded, ArchiveError> {
        let bytes = self.bytes(limit)?;
        read(&bytes).map_err(|why| damaged(&self.damage(why)))
    }

    /// The type and shape of an array of numbers, and where in the payload they begin; `None` for other values.
    /// Only the first bytes are read, and not checked.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn numbers(&self) -> Result<Option<(Numbers, u64)>, ArchiveError> {
        Ok(numbers::head(&self.beginning()?, self.length()))
    }

    /// The value in one line of at most some eighty characters, without control characters. Only its beginning is
    /// read, and not checked. If it can't be read, the text says so.
    #[must_use]
    pub fn short(&self) -> String {
        match self.beginning() {
            Ok(bytes) => super::short::of(&bytes, self.length()),
            Err(_) => "(can't be read)".to_owned(),
        }
    }

    /// The first bytes, not checked.
    fn beginning(&self) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        let reader = self.unchecked()?;
        let read = reader.take(4096).read_to_end(&mut bytes);
        read.map_err(|error| ArchiveError::io("reading", self.path(), error))?;
        Ok(bytes)
    }
}

/// Decodes bytes that are one item.
pub(super) fn read(bytes: &[u8]) -> Result<Decoded, String> {
    let mut reader = Reader {
        rest: bytes,
        depth: 0,
    };
    let value = reader.value()?;
    match reader.rest.len() {
        0 => Ok(value),
        more => Err(format!("{more} bytes are left over")),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    depth: usize,
}

/// The most elements for which a list gets room at once: an announced length may be false.
const ROOM: usize = 64;

impl Reader<'_> {
    fn head(&mut self) -> Result<Header, String> {
        let head = Decoder::from(&mut self.rest).pull();
        head.map_err(|_| "it is not CBOR".to_owned())
    }

    fn take(&mut self, length: Option<usize>) -> Result<Vec<u8>, String> {
        let length = length.ok_or("it has a string in pieces")?;
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or("it ends too early")?;
        self.rest = rest;
        Ok(taken.to_vec())
    }

    fn text(&mut self, length: Option<usize>) -> Result<String, String> {
        let text = String::from_utf8(self.take(length)?);
        text.map_err(|_| "a text in it is not UTF-8".to_owned())
    }

    fn value(&mut self) -> Result<Decoded, String> {
        if let Some((numbers, rest, size)) = numbers::take(self.rest) {
            self.rest = rest;
            let size = usize::try_from(size).map_err(|_| "it ends too early")?;
            return Ok(Decoded::Numbers(numbers, self.take(Some(size))?));
        }
        Ok(match self.head()? {
            Header::Positive(value) => Decoded::Integer(value.into()),
            Header::Negative(inverted) => Decoded::Integer(!i128::from(inverted)),
            Header::Float(value) => Decoded::Float(value),
            Header::Simple(simple::FALSE) => Decoded::Bool(false),
            Header::Simple(simple::TRUE) => Decoded::Bool(true),
            Header::Simple(simple::NULL) => Decoded::Null,
            Header::Simple(other) => return Err(format!("it has a simple value {other}")),
            Header::Break => return Err("a list in it ends where none is".to_owned()),
            Header::Bytes(length) => Decoded::Bytes(self.take(length)?),
            Header::Text(length) => Decoded::Text(self.text(length)?),
            Header::Array(count) => self.deeper(|reader| reader.list(count))?,
            Header::Map(count) => self.deeper(|reader| reader.map(count))?,
            Header::Tag(tag) => self.deeper(|reader| reader.tagged(tag))?,
        })
    }

    fn deeper(
        &mut self,
        job: impl FnOnce(&mut Self) -> Result<Decoded, String>,
    ) -> Result<Decoded, String> {
        if self.depth == DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        self.depth += 1;
        let done = job(self);
        self.depth -= 1;
        done
    }

    fn list(&mut self, count: Option<usize>) -> Result<Decoded, String> {
        let count = count.ok_or("it has a list of unknown length")?;
        let mut items = Vec::with_capacity(count.min(ROOM));
        for _ in 0..count {
            items.push(self.value()?);
        }
        Ok(Decoded::List(items))
    }

    fn map(&mut self, count: Option<usize>) -> Result<Decoded, String> {
        let count = count.ok_or("it has a map of unknown length")?;
        let mut items = Vec::with_capacity(count.min(ROOM));
        for _ in 0..count {
            items.push((self.value()?, self.value()?));
        }
        Ok(Decoded::Map(items))
    }

    fn tagged(&mut self, tag: u64) -> Result<Decoded, String> {
        let inner = self.value()?;
        let Decoded::Bytes(bytes) = &inner else {
            return Ok(Decoded::Tagged(tag, Box::new(inner)));
        };
        let is_big = matches!(tag, tags::BIG | tags::BIG_NEGATIVE);
        let Some(magnitude) = tags::big(bytes).filter(|_| is_big) else {
            return Ok(Decoded::Tagged(tag, Box::new(inner)));
        };
        Ok(match (i128::try_from(magnitude), tag) {
            (Ok(integer), tags::BIG) => Decoded::Integer(integer),
            (Ok(inverted), _) => Decoded::Integer(!inverted),
            (Err(_), tags::BIG) => Decoded::Large(magnitude),
            (Err(_), _) => Decoded::Tagged(tag, Box::new(inner)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cbor::tests::to_bytes;

    fn round(value: &impl serde::Serialize) -> Decoded {
        read(&to_bytes(value).unwrap()).unwrap()
    }

    #[test]
    fn each_kind_comes_back() {
        assert_eq!(round(&()), Decoded::Null);
        assert_eq!(round(&true), Decoded::Bool(true));
        assert_eq!(round(&-7_i8), Decoded::Integer(-7));
        assert_eq!(round(&i128::MIN), Decoded::Integer(i128::MIN));
        assert_eq!(round(&u128::MAX), Decoded::Large(u128::MAX));
        assert_eq!(round(&0.1_f64), Decoded::Float(0.1));
        assert_eq!(round(&"é"), Decoded::Text("é".to_owned()));
        assert_eq!(
            round(&(1, "x")),
            Decoded::List(vec![Decoded::Integer(1), Decoded::Text("x".to_owned())])
        );
        assert_eq!(
            round(&std::collections::BTreeMap::from([("a", 1)])),
            Decoded::Map(vec![(Decoded::Text("a".to_owned()), Decoded::Integer(1))])
        );
        let numbers = [0xd8, 86, 0x48, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
        let Decoded::Numbers(numbers, bytes) = read(&numbers).unwrap() else {
            unreachable!("it is an array of one number");
        };
        assert_eq!(numbers.lengths, [1]);
        assert_eq!(bytes, 1.0_f64.to_le_bytes());
    }

    #[test]
    fn what_is_announced_and_does_not_come_is_an_error() {
        for bytes in [
            &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
            &[0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x9f],
            &[],
            &[0x00, 0x00],
            &[0xd8, 86, 0x48, 0],
            &[0x81; 100_000],
            &[0xc6; 100_000],
        ] {
            assert!(read(bytes).is_err(), "{:?}", &bytes[..bytes.len().min(9)]);
        }
    }
}
