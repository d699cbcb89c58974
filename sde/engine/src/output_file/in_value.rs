//! The output files in a value of any type.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use serde::de::value::Error;
use serde::ser::{self, Serialize, Serializer};

use super::{OutputFile, USED};
use crate::result_map::{Codec, ErasedValue};

/// The output files in a value: serde is shown all of it. Arrays of numbers have none, and in a program that uses no output files no
/// value has.
pub(crate) fn in_value(codec: &Codec, value: &ErasedValue) -> Vec<OutputFile> {
    if !USED.load(Ordering::Relaxed) || codec.bulk(value).is_some() {
        return Vec::new();
    }
    // A value that can't be written is reported when it is saved.
    let show = || drop(codec.encode(value, Discard));
    let (_, shown) = OutputFile::shown_in(|| catch_unwind(AssertUnwindSafe(show)));
    shown
}

/// Takes anything, and keeps nothing of it.
struct Discard;

macro_rules! discard {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, _: $type) -> Result<(), Error> { Ok(()) })*
    };
}

impl Serializer for Discard {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    discard! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
        serialize_f32(f32) serialize_f64(f64) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_unit_struct(&'static str)
    }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &str, _: u32, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &str,
        _: u32,
        _: &str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &str, _: u32, _: &str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct(self, _: &str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct_variant(self, _: &str, _: u32, _: &str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! discard_parts {
    ($($trait:ident $method:ident($($key:ty)?);)*) => {
        $(impl ser::$trait for Discard {
            type Ok = ();
            type Error = Error;
            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Error> {
                value.serialize(Self)
            }
            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })*
    };
}

discard_parts! {
    SerializeSeq serialize_element();
    SerializeTuple serialize_element();
    SerializeTupleStruct serialize_field();
    SerializeTupleVariant serialize_field();
    SerializeStruct serialize_field(&'static str);
    SerializeStructVariant serialize_field(&'static str);
}

impl ser::SerializeMap for Discard {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        key.serialize(Self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(Self)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    enum Nested {
        Map(BTreeMap<u8, Option<OutputFile>>),
        Pair(f64, (String, Vec<OutputFile>)),
        Named { text: String, file: OutputFile },
        Flat(Flat),
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Flat {
        #[serde(flatten)]
        file: OutputFile,
    }

    #[test]
    fn files_are_found_wherever_serde_goes() {
        let file = OutputFile::new("Cargo.toml").unwrap();
        let map = BTreeMap::from([(1, None), (2, Some(file.clone()))]);
        let found = |value: Nested| {
            let codec = Codec::of::<Nested>();
            in_value(&codec, &ErasedValue::new(value)).len()
        };
        assert_eq!(found(Nested::Map(map)), 1);
        let two = vec![file.clone(), file.clone()];
        assert_eq!(found(Nested::Pair(0.5, (String::new(), two))), 2);
        let text = String::new();
        assert_eq!(
            found(Nested::Named {
                text,
                file: file.clone()
            }),
            1
        );
        assert_eq!(found(Nested::Flat(Flat { file })), 1);
        let numbers = ErasedValue::new(vec![1.0_f64]);
        assert!(in_value(&Codec::of::<Vec<f64>>(), &numbers).is_empty());
    }
}
