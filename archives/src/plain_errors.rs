//! Errors that don't grow on their way up.
//!
//! A type-erased value is read in turns by the user's type and by ciborium, one
//! turn for each level of nesting, and at each turn an error passes from one to
//! the other as text. ciborium shows an error as Rust source, so the text is quoted
//! and all its quotes are escaped once more: it doubles at each level. A wrong type
//! thirty levels down would make a message of a gigabyte.
//!
//! [`Plain`] stands between the two. It keeps the text of an error that passes to
//! ciborium aside, sends an empty one in its place, and puts the text back when
//! that comes out again.

use std::cell::RefCell;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// Where the text of an error waits.
pub(crate) type Aside = RefCell<Option<String>>;

/// A deserializer, or any part of one, whose errors are plain text.
pub(crate) struct Plain<'a, T> {
    inner: T,
    aside: &'a Aside,
}

/// An error as the user's type said it.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl Error for Failure {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

impl<'a, T> Plain<'a, T> {
    pub(crate) fn new(inner: T, aside: &'a Aside) -> Self {
        Self { inner, aside }
    }
}

/// To ciborium.
fn hidden<E: Error>(aside: &Aside) -> impl FnOnce(Failure) -> E {
    |failure| {
        aside.replace(Some(failure.0));
        E::custom("")
    }
}

/// From ciborium: the text kept aside, or what it has to say itself.
fn shown<E: Error>(aside: &Aside) -> impl FnOnce(E) -> Failure {
    |error| Failure(aside.take().unwrap_or_else(|| error.to_string()))
}

macro_rules! deserialize {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($argument: $type,)*
            visitor: V,
        ) -> Result<V::Value, Failure> {
            let visitor = Plain::new(visitor, self.aside);
            self.inner.$method($($argument,)* visitor).map_err(shown(self.aside))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Plain<'_, D> {
    type Error = Failure;

    deserialize! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32()
        deserialize_i64() deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32()
        deserialize_u64() deserialize_u128() deserialize_f32() deserialize_f64() deserialize_char()
        deserialize_str() deserialize_string() deserialize_bytes() deserialize_byte_buf()
        deserialize_option() deserialize_unit() deserialize_seq() deserialize_map()
        deserialize_identifier() deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($type:ty))*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value).map_err(hidden(self.aside))
        })*
    };
}

macro_rules! visit_with {
    ($($method:ident: $trait:ident)*) => {
        $(fn $method<A: $trait<'de>>(self, access: A) -> Result<V::Value, A::Error> {
            let access = Plain::new(access, self.aside);
            self.inner.$method(access).map_err(hidden(self.aside))
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Plain<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64)
        visit_i128(i128) visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64)
        visit_u128(u128) visit_f32(f32) visit_f64(f64) visit_char(char) visit_str(&str)
        visit_borrowed_str(&'de str) visit_string(String) visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none().map_err(hidden(self.aside))
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit().map_err(hidden(self.aside))
    }

    visit_with! {
        visit_some: Deserializer
        visit_newtype_struct: Deserializer
        visit_seq: SeqAccess
        visit_map: MapAccess
        visit_enum: EnumAccess
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Plain<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let from = Plain::new(from, self.aside);
        self.inner.deserialize(from).map_err(hidden(self.aside))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Plain<'_, A> {
    type Error = Failure;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Failure> {
        let seed = Plain::new(seed, self.aside);
        self.inner
            .next_element_seed(seed)
            .map_err(shown(self.aside))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Plain<'_, A> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Failure> {
        let seed = Plain::new(seed, self.aside);
        self.inner.next_key_seed(seed).map_err(shown(self.aside))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Failure> {
        let seed = Plain::new(seed, self.aside);
        self.inner.next_value_seed(seed).map_err(shown(self.aside))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Plain<'a, A> {
    type Error = Failure;
    type Variant = Plain<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), Failure> {
        let seed = Plain::new(seed, self.aside);
        match self.inner.variant_seed(seed) {
            Ok((value, variant)) => Ok((value, Plain::new(variant, self.aside))),
            Err(error) => Err(shown(self.aside)(error)),
        }
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Plain<'_, A> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        self.inner.unit_variant().map_err(shown(self.aside))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Failure> {
        let seed = Plain::new(seed, self.aside);
        self.inner
            .newtype_variant_seed(seed)
            .map_err(shown(self.aside))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let visitor = Plain::new(visitor, self.aside);
        self.inner
            .tuple_variant(length, visitor)
            .map_err(shown(self.aside))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let visitor = Plain::new(visitor, self.aside);
        self.inner
            .struct_variant(fields, visitor)
            .map_err(shown(self.aside))
    }
}
