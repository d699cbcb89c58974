//! Encodes values as CBOR, and decodes them.
//!
//! Bytes to decode have passed their checksum, but may come from a program with other types, or from an attacker.
//! So depth is limited, left-over bytes are an error, and so is a panic in a user's own `Serialize` or
//! `Deserialize`.
//!
//! The conventions are ciborium's for serde: a struct is a map of its fields, a variant a text or a map with one
//! pair. But ciborium handles numbers one by one and copies input several times, so only its lower half is used
//! here, for the heads of items. Arrays of numbers ([`sde::bulk`]) are typed arrays of RFC 8746.

mod access;
mod encoded;
mod failure;
pub(crate) mod metadata;
mod read;
mod schema;
pub(crate) mod tags;
mod write;

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ciborium_ll::Header;
use sde::ErasedValue;
use sde::archiver::{Codec, WireBuffer};
use sde::bulk::BulkBytes;

use crate::locks::user_code;

pub(crate) use encoded::Encoded;
use read::Reader;
pub(crate) use schema::schema;
use write::Writer;

/// The greatest depth of nested arrays and maps.
pub(crate) const DEPTH: usize = 250;

/// Encodes a value; an error says why it can't be saved.
///
/// The numbers of a value that is itself an array are not copied: the result holds the value, and points to them.
pub(crate) fn encode(value: &ErasedValue, codec: &Codec) -> Result<Encoded, String> {
    guarded(|| match codec.bulk(value) {
        Some(bulk) => numbers(bulk, value, codec),
        None => {
            let mut encoded = Encoded::new();
            codec.encode(value, Writer::new(&mut encoded))?;
            Ok(encoded)
        }
    })
}

/// Encodes a value for other ranks.
pub(crate) fn encode_to<'a>(
    value: &'a ErasedValue,
    codec: &Codec,
    to: &mut WireBuffer<'a>,
) -> Result<(), String> {
    let bulk = guarded(|| Ok(codec.bulk(value)))?;
    let encoded = match &bulk {
        Some(bulk) => heads(bulk)?,
        None => encode(value, codec)?,
    };
    encoded.slices().for_each(|slice| to.append(slice));
    match bulk.map(|bulk| bulk.bytes) {
        Some(Cow::Borrowed(numbers)) => to.lend(numbers),
        Some(Cow::Owned(numbers)) => to.append(&numbers),
        None => {}
    }
    Ok(())
}

/// Encodes an array of numbers, with the bytes that [`BulkBytes`] would serialize to.
fn numbers(bulk: BulkBytes<'_>, value: &ErasedValue, codec: &Codec) -> Result<Encoded, String> {
    let mut encoded = heads(&bulk)?;
    match bulk.bytes {
        Cow::Borrowed(_) => encoded.append_numbers(value, codec),
        Cow::Owned(bytes) => encoded.append_owned(bytes),
    }
    Ok(encoded)
}

/// The heads before the numbers.
fn heads(bulk: &BulkBytes<'_>) -> Result<Encoded, String> {
    let tag = tags::of_numbers(bulk.numbers).ok_or("no tag is known for its numbers")?;
    let mut encoded = Encoded::new();
    let mut writer = Writer::new(&mut encoded);
    if let Some(shape) = &bulk.shape {
        writer.head(Header::Tag(tags::of_order(shape.order)))?;
        writer.head(Header::Array(Some(2)))?;
        writer.head(Header::Array(Some(shape.lengths.len())))?;
        for length in &shape.lengths {
            writer.head(Header::Positive(*length as u64))?;
        }
    }
    writer.head(Header::Tag(tag))?;
    writer.head(Header::Bytes(Some(bulk.bytes.len())))?;
    Ok(encoded)
}

/// Decodes a value.
pub(crate) fn decode(bytes: &[u8], codec: &Codec) -> Result<ErasedValue, String> {
    guarded(|| {
        let mut reader = Reader::new(bytes);
        let value = codec
            .decode(&mut reader)
            .map_err(|error| error.to_string())?;
        used_up(&reader).map(|()| value)
    })
}

fn used_up(reader: &Reader<'_>) -> Result<(), String> {
    match reader.left() {
        0 => Ok(()),
        more => Err(format!("{more} bytes are left over")),
    }
}

/// Turns a panic of the user's code into an error.
fn guarded<T>(job: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    user_code("what encodes or decodes a value");
    catch_unwind(AssertUnwindSafe(job))
        .unwrap_or_else(|panic| Err(format!("its serde code panicked: {}", text(&*panic))))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is no text")
}

#[cfg(test)]
pub(crate) mod tests;
