//! Finds what CBOR, by way of serde and ciborium, would not give back as it was.
//!
//! A restart must go on with the same bits. Two things are lost on the way:
//! `Some(None)` and `Some(())` are written as null and come back as `None`, and a
//! signalling NaN of 32 bits, which is widened and narrowed again, comes back as
//! a quiet one. And what is nested more deeply than is ever read again is better
//! refused now. A value with any of these is not saved, so it is computed again.
//!
//! The check is a serializer that writes nothing and says of each value whether
//! it would be written as null.

use std::fmt;

use sde::{Codec, ErasedValue};
use serde::ser::{self, Serialize, Serializer};

/// How deep ciborium reads; what is deeper would be refused then.
const DEPTH: usize = 250;

/// Refuses a value that would not come back as it is.
pub(crate) fn check(value: &ErasedValue, codec: &Codec) -> Result<(), String> {
    match codec.encode(value, Check { depth: 0 }) {
        Ok(_) => Ok(()),
        Err(Lossy(why)) => Err(why),
    }
}

/// Why a value is refused.
#[derive(Debug)]
struct Lossy(String);

impl fmt::Display for Lossy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Lossy {}

impl ser::Error for Lossy {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Gives whether the value would be null.
#[derive(Clone, Copy)]
struct Check {
    depth: usize,
}

impl Check {
    fn deeper(self, by: usize) -> Result<Self, Lossy> {
        let depth = self.depth + by;
        match depth > DEPTH {
            true => Err(Lossy(format!("it is nested more than {DEPTH} deep"))),
            false => Ok(Self { depth }),
        }
    }
}

const NULL: Result<bool, Lossy> = Ok(true);
const VALUE: Result<bool, Lossy> = Ok(false);

macro_rules! plain {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Result<bool, Lossy> {
            VALUE
        })*
    };
}

impl Serializer for Check {
    type Ok = bool;
    type Error = Lossy;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    plain! {
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_u128: u128, serialize_f64: f64
    }

    fn serialize_f32(self, value: f32) -> Result<bool, Lossy> {
        const QUIET: u32 = 0x0040_0000;
        if value.is_nan() && value.to_bits() & QUIET == 0 {
            return Err(Lossy(
                "a signalling NaN of 32 bits would come back as a quiet one".to_owned(),
            ));
        }
        VALUE
    }

    fn serialize_none(self) -> Result<bool, Lossy> {
        NULL
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<bool, Lossy> {
        match value.serialize(self)? {
            true => Err(Lossy(
                "`Some(None)` or `Some(())` in it would come back as `None`".to_owned(),
            )),
            false => VALUE,
        }
    }

    fn serialize_unit(self) -> Result<bool, Lossy> {
        NULL
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<bool, Lossy> {
        NULL
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<bool, Lossy> {
        VALUE
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<bool, Lossy> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<bool, Lossy> {
        value.serialize(self.deeper(2)?)?;
        VALUE
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Lossy> {
        self.deeper(1)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Lossy> {
        self.deeper(1)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Lossy> {
        self.deeper(1)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Lossy> {
        self.deeper(2)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Lossy> {
        self.deeper(1)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Lossy> {
        self.deeper(1)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Lossy> {
        self.deeper(2)
    }

    /// As ciborium: types may write themselves otherwise for people.
    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! compound {
    ($($trait:ident $method:ident ($($key:ident)?)),*) => {
        $(impl ser::$trait for Check {
            type Ok = bool;
            type Error = Lossy;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<(), Lossy> {
                $(let _ = $key;)?
                value.serialize(*self).map(drop)
            }

            fn end(self) -> Result<bool, Lossy> {
                VALUE
            }
        })*
    };
}

compound! {
    SerializeSeq serialize_element (),
    SerializeTuple serialize_element (),
    SerializeTupleStruct serialize_field (),
    SerializeTupleVariant serialize_field (),
    SerializeStruct serialize_field (name),
    SerializeStructVariant serialize_field (name)
}

impl ser::SerializeMap for Check {
    type Ok = bool;
    type Error = Lossy;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Lossy> {
        key.serialize(*self).map(drop)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Lossy> {
        value.serialize(*self).map(drop)
    }

    fn end(self) -> Result<bool, Lossy> {
        VALUE
    }
}
