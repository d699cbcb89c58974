//! The schema of a type as serde sees it: a digest, so that bytes are never read as a type that has changed since.
//!
//! A type keeps its name when a field is added or an `f64` becomes an `f32`; decoded as the new type, old bytes
//! could give a value that no run ever computed. serde does not describe types, but a type asks its deserializer
//! for what it wants. This deserializer records each request and answers with the smallest possible value. The
//! variants of an enum are tried in turn, in passes. If a type rejects an answer (a text that is no address), its
//! schema covers the requests up to there.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Mutex;

use sde::ErasedValue;
use sde::archiver::Codec;
use sde::key::Digest;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::failure::{Failure, Result};
use super::guarded;
use crate::locks::lock;

/// The most requests in one pass, which describe a recursive type well enough.
const QUESTIONS: usize = 2000;
/// The greatest depth; below it lists are empty and options `None`.
const DEPTH: usize = 12;
/// The most passes, and so the most variants tried of all enums in a type together.
const PASSES: usize = 200;

/// The schema of a type, computed once for each type.
pub(crate) fn schema(codec: &Codec) -> Digest {
    static KNOWN: Mutex<Option<HashMap<TypeId, Digest>>> = Mutex::new(None);
    /// The values made from the answers. Their destructors may save, or remove files, so they are never dropped.
    static MADE: Mutex<Vec<ErasedValue>> = Mutex::new(Vec::new());
    let of = codec.type_id();
    let known = |known: &Option<HashMap<_, Digest>>| known.as_ref()?.get(&of).copied();
    let found = known(&lock(&KNOWN));
    if let Some(digest) = found {
        return digest;
    }
    let digest = trace(|tracer| {
        codec
            .decode(tracer)
            .map(|value| lock(&MADE).push(value))
            .map_err(|error| error.to_string())
    });
    lock(&KNOWN)
        .get_or_insert_with(HashMap::new)
        .insert(of, digest);
    digest
}

fn trace(mut ask: impl FnMut(&mut Tracer) -> std::result::Result<(), String>) -> Digest {
    let mut tracer = Tracer::default();
    for _ in 0..PASSES {
        tracer.questions = 0;
        tracer.depth = 0;
        tracer.more = false;
        // Only the requests matter, not whether decoding succeeds.
        let _ = guarded(|| ask(&mut tracer));
        if !tracer.more {
            break;
        }
        tracer.note("pass");
    }
    Digest::from_bytes(*tracer.asked.finalize().as_bytes())
}

/// Answers every request, and records it.
#[derive(Default)]
struct Tracer {
    asked: blake3::Hasher,
    questions: usize,
    depth: usize,
    /// The number of variants given out, for each enum.
    given: HashMap<&'static str, usize>,
    /// Whether an enum has variants not given out yet.
    more: bool,
}

impl Tracer {
    fn note(&mut self, text: &str) {
        self.asked.update(&(text.len() as u64).to_le_bytes());
        self.asked.update(text.as_bytes());
    }

    fn asks(&mut self, what: &str) -> Result<()> {
        self.questions += 1;
        if self.questions > QUESTIONS {
            return Err(Failure("it asks for too much".to_owned()));
        }
        self.note(what);
        Ok(())
    }

    fn asks_for(&mut self, what: &str, name: &str, parts: &[&str]) -> Result<()> {
        self.asks(what)?;
        self.note(name);
        self.asked.update(&(parts.len() as u64).to_le_bytes());
        parts.iter().for_each(|part| self.note(part));
        Ok(())
    }

    fn is_deep(&self) -> bool {
        self.depth >= DEPTH
    }

    fn inside<T>(&mut self, job: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        let outcome = job(self);
        self.depth -= 1;
        self.note("end");
        outcome
    }

    /// A list of `count` elements; without a fixed length, of one.
    fn items<'de, V: Visitor<'de>>(&mut self, count: usize, visitor: V) -> Result<V::Value> {
        self.inside(|tracer| visitor.visit_seq(Items { tracer, count }))
    }
}

/// Requests with a fixed answer.
macro_rules! answers {
    ($($ask:ident $visit:ident $answer:expr;)*) => {$(
        fn $ask<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.asks(stringify!($ask))?;
            visitor.$visit($answer)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Tracer {
    type Error = Failure;

    answers! {
        deserialize_bool visit_bool false;
        deserialize_i8 visit_i8 1;
        deserialize_i16 visit_i16 1;
        deserialize_i32 visit_i32 1;
        deserialize_i64 visit_i64 1;
        deserialize_i128 visit_i128 1;
        deserialize_u8 visit_u8 1;
        deserialize_u16 visit_u16 1;
        deserialize_u32 visit_u32 1;
        deserialize_u64 visit_u64 1;
        deserialize_u128 visit_u128 1;
        deserialize_f32 visit_f32 1.0;
        deserialize_f64 visit_f64 1.0;
        deserialize_char visit_char 'a';
        deserialize_str visit_str "";
        deserialize_string visit_str "";
        deserialize_identifier visit_str "";
        deserialize_bytes visit_bytes &[];
        deserialize_byte_buf visit_bytes &[];
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.asks("any")?;
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.asks("option")?;
        match self.is_deep() {
            true => visitor.visit_none(),
            false => self.inside(|tracer| visitor.visit_some(tracer)),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.asks("unit")?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.asks_for("unit struct", name, &[])?;
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.asks_for("newtype", name, &[])?;
        self.inside(|tracer| visitor.visit_newtype_struct(tracer))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.asks("list")?;
        let count = usize::from(!self.is_deep());
        self.items(count, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value> {
        self.asks_for("tuple", &length.to_string(), &[])?;
        self.items(length, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.asks_for("tuple struct", name, &[])?;
        self.items(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.asks("map")?;
        let count = usize::from(!self.is_deep());
        self.inside(|tracer| visitor.visit_map(Items { tracer, count }))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.asks_for("struct", name, fields)?;
        self.inside(|tracer| visitor.visit_map(Fields { tracer, fields }))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.asks_for("enum", name, variants)?;
        let given = self.given.entry(name).or_default();
        // Gives each variant once, then the first, which in most types ends the recursion.
        let variant = variants.get(*given).or(variants.first());
        let variant = *variant.ok_or_else(|| Failure("it has no variants".to_owned()))?;
        *given = (*given + 1).min(variants.len());
        self.more |= *given < variants.len();
        self.note(variant);
        self.inside(|tracer| visitor.visit_enum(Variant { tracer, variant }))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a list, or the pairs of a map.
struct Items<'a> {
    tracer: &'a mut Tracer,
    count: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Failure;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.count == 0 {
            return Ok(None);
        }
        self.count -= 1;
        seed.deserialize(&mut *self.tracer).map(Some)
    }
}

impl<'de> MapAccess<'de> for Items<'_> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.tracer)
    }
}

/// The fields of a struct, in its own order.
struct Fields<'a> {
    tracer: &'a mut Tracer,
    fields: &'static [&'static str],
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        let Some((field, rest)) = self.fields.split_first() else {
            return Ok(None);
        };
        self.fields = rest;
        let field: StrDeserializer<'_, Failure> = (*field).into_deserializer();
        seed.deserialize(field).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.tracer)
    }
}

/// One variant of an enum.
struct Variant<'a> {
    tracer: &'a mut Tracer,
    variant: &'static str,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        let variant: StrDeserializer<'_, Failure> = self.variant.into_deserializer();
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Failure;

    fn unit_variant(self) -> Result<()> {
        self.tracer.asks("unit variant")
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        self.tracer.asks("newtype variant")?;
        seed.deserialize(self.tracer)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value> {
        self.tracer.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.tracer.deserialize_struct("", fields, visitor)
    }
}
