//! Serializes values as CBOR, and refuses those that would not come back unchanged.
//!
//! A restart must go on with the same bits. CBOR has one null for `None`, `Some(None)` and `Some(())`, which all
//! come back as `None`; and values nested too deeply can't be read again. Such values are not saved, so they are
//! computed again. So are values whose `Serialize` announces another number of elements than it gives: their bytes
//! would be no CBOR.
//!
//! ciborium writes the heads. Only 32-bit NaNs are written here: ciborium would widen them, and make signalling
//! ones quiet.

use ciborium_ll::{Encoder, Header, simple};
use sde::bulk::{ARRAY, AxisOrder, NumberType};
use serde::ser::{self, Serialize, Serializer};

use super::encoded::Encoded;
use super::failure::{Failure, Result};
use super::{DEPTH, tags};

/// Writes one item at the end of the encoded bytes. Gives whether it is null.
pub(super) struct Writer<'a> {
    to: &'a mut Encoded,
    depth: usize,
}

type IsNull = bool;

impl<'a> Writer<'a> {
    pub(super) fn new(to: &'a mut Encoded) -> Self {
        Self { to, depth: 0 }
    }

    #[inline]
    pub(super) fn head(&mut self, head: Header) -> Result<()> {
        // Nine bytes hold the longest head.
        let mut room = [0; 9];
        let mut rest = &mut room[..];
        let pushed = Encoder::from(&mut rest).push(head);
        let left = rest.len();
        match pushed {
            Ok(()) => self.to.last().extend_from_slice(&room[..9 - left]),
            Err(_) => return Err(Failure("a head has no bytes".to_owned())),
        }
        Ok(())
    }

    #[inline]
    fn value(mut self, head: Header) -> Result<IsNull> {
        self.head(head).map(|()| false)
    }

    fn null(mut self) -> Result<IsNull> {
        self.head(Header::Simple(simple::NULL)).map(|()| true)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.head(Header::Bytes(Some(bytes.len())))?;
        self.to.append(bytes);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.head(Header::Text(Some(text.len())))?;
        self.to.append(text.as_bytes());
        Ok(())
    }

    fn big(mut self, tag: u64, integer: u128) -> Result<IsNull> {
        let bytes = integer.to_be_bytes();
        let zeros = integer.leading_zeros() as usize / 8;
        self.head(Header::Tag(tag))?;
        self.bytes(&bytes[zeros..]).map(|()| false)
    }

    /// Begins an array or a map of this many elements.
    fn open(mut self, head: Header, count: Option<usize>) -> Result<Open<'a>> {
        let depth = self.depth + 1;
        if depth > DEPTH {
            return Err(Failure(format!("it is nested more than {DEPTH} deep")));
        }
        self.head(head)?;
        Ok(Open {
            to: self.to,
            depth,
            announced: count,
            given: 0,
        })
    }

    /// A variant with content is a map from its name to the content.
    fn variant(mut self, name: &str) -> Result<Self> {
        self.head(Header::Map(Some(1)))?;
        self.text(name)?;
        self.depth += 1;
        Ok(self)
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty),*) => {
        $(#[inline]
        fn $method(self, value: $type) -> Result<IsNull> {
            match u64::try_from(value) {
                Ok(value) => self.value(Header::Positive(value)),
                // Minus one minus the value: all bits inverted.
                Err(_) => self.value(Header::Negative(!value as u64)),
            }
        })*
    };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = IsNull;
    type Error = Failure;
    type SerializeSeq = Open<'a>;
    type SerializeTuple = Open<'a>;
    type SerializeTupleStruct = Open<'a>;
    type SerializeTupleVariant = Open<'a>;
    type SerializeMap = Open<'a>;
    type SerializeStruct = Open<'a>;
    type SerializeStructVariant = Open<'a>;

    integers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    }

    fn serialize_u128(self, value: u128) -> Result<IsNull> {
        match u64::try_from(value) {
            Ok(value) => self.value(Header::Positive(value)),
            Err(_) => self.big(tags::BIG, value),
        }
    }

    fn serialize_i128(self, value: i128) -> Result<IsNull> {
        match (u128::try_from(value), u64::try_from(!value)) {
            (Ok(value), _) => self.serialize_u128(value),
            (Err(_), Ok(inverted)) => self.value(Header::Negative(inverted)),
            (Err(_), Err(_)) => self.big(tags::BIG_NEGATIVE, !value as u128),
        }
    }

    fn serialize_bool(self, value: bool) -> Result<IsNull> {
        let value = if value { simple::TRUE } else { simple::FALSE };
        self.value(Header::Simple(value))
    }

    fn serialize_f32(self, value: f32) -> Result<IsNull> {
        if !value.is_nan() {
            return self.value(Header::Float(value.into()));
        }
        let to = self.to.last();
        to.push(SINGLE);
        to.extend_from_slice(&value.to_bits().to_be_bytes());
        Ok(false)
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<IsNull> {
        self.value(Header::Float(value))
    }

    fn serialize_char(self, value: char) -> Result<IsNull> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(mut self, value: &str) -> Result<IsNull> {
        self.text(value).map(|()| false)
    }

    fn serialize_bytes(mut self, value: &[u8]) -> Result<IsNull> {
        self.bytes(value).map(|()| false)
    }

    fn serialize_none(self) -> Result<IsNull> {
        self.null()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<IsNull> {
        match value.serialize(self)? {
            true => Err(Failure(
                "`Some(None)` or `Some(())` in it would come back as `None`".to_owned(),
            )),
            false => Ok(false),
        }
    }

    fn serialize_unit(self) -> Result<IsNull> {
        self.null()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<IsNull> {
        self.null()
    }

    fn serialize_unit_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<IsNull> {
        self.text(variant).map(|()| false)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        mut self,
        name: &'static str,
        value: &T,
    ) -> Result<IsNull> {
        if let Some(tag) = NumberType::of_name(name).and_then(tags::of_numbers) {
            self.head(Header::Tag(tag))?;
        }
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<IsNull> {
        if let Some(order) = AxisOrder::of_name(variant).filter(|_| name == ARRAY) {
            self.head(Header::Tag(tags::of_order(order)))?;
            return value.serialize(self);
        }
        value.serialize(self.variant(variant)?).map(|_| false)
    }

    fn serialize_seq(self, count: Option<usize>) -> Result<Open<'a>> {
        self.open(Header::Array(count), count)
    }

    fn serialize_tuple(self, count: usize) -> Result<Open<'a>> {
        self.serialize_seq(Some(count))
    }

    fn serialize_tuple_struct(self, _: &'static str, count: usize) -> Result<Open<'a>> {
        self.serialize_seq(Some(count))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Open<'a>> {
        self.variant(variant)?.serialize_seq(Some(count))
    }

    fn serialize_map(self, count: Option<usize>) -> Result<Open<'a>> {
        self.open(Header::Map(count), count)
    }

    fn serialize_struct(self, _: &'static str, count: usize) -> Result<Open<'a>> {
        self.serialize_map(Some(count))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Open<'a>> {
        self.variant(variant)?.serialize_map(Some(count))
    }

    /// Types may have another form for people.
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The head of a float of 32 bits.
pub(super) const SINGLE: u8 = 0xfa;

/// An array or a map that is being written.
pub(super) struct Open<'a> {
    to: &'a mut Encoded,
    depth: usize,
    announced: Option<usize>,
    given: usize,
}

impl Open<'_> {
    #[inline]
    fn writer(&mut self) -> Writer<'_> {
        Writer {
            to: &mut *self.to,
            depth: self.depth,
        }
    }

    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.given += 1;
        value.serialize(self.writer()).map(drop)
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        self.writer().text(name)?;
        self.element(value)
    }

    fn close(mut self) -> Result<IsNull> {
        match self.announced {
            None => self.writer().head(Header::Break)?,
            Some(announced) if announced != self.given => {
                let given = self.given;
                return Err(Failure(format!(
                    "its `Serialize` announced {announced} elements and gave {given}"
                )));
            }
            Some(_) => {}
        }
        Ok(false)
    }
}

macro_rules! open {
    ($($trait:ident $method:ident $($key:ident)?;)*) => {
        $(impl ser::$trait for Open<'_> {
            type Ok = IsNull;
            type Error = Failure;

            #[inline]
            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<()> {
                open!(@ self value $($key)?)
            }

            fn end(self) -> Result<IsNull> {
                self.close()
            }
        })*
    };
    (@ $self:ident $value:ident) => { $self.element($value) };
    (@ $self:ident $value:ident $key:ident) => { $self.field($key, $value) };
}

open! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
    SerializeStruct serialize_field name;
    SerializeStructVariant serialize_field name;
}

impl ser::SerializeMap for Open<'_> {
    type Ok = IsNull;
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        key.serialize(self.writer()).map(drop)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.element(value)
    }

    fn end(self) -> Result<IsNull> {
        self.close()
    }
}
