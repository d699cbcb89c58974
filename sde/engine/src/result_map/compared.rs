//! Comparing the bits of two values.

use super::codec::Codec;
use super::named::Content;
use super::stored::Stored;
use super::value::ErasedValue;
use crate::bulk::BulkBytes;
use crate::key::{BySerde, Commitment, commit};
use crate::output_file::in_value;
use crate::sync::user_code;

/// Whether two contents of a result have the same bits. A stored value is compared by its digest, and read only if the
/// digests differ. `None` if neither is possible: a value is gone, has output files, or its store keeps no digests.
pub(crate) fn have_same_bits(codec: &Codec, one: &Content, other: &Content) -> Option<bool> {
    match (value_of(one), value_of(other)) {
        (Some(one), Some(other)) => same_values(codec, &one, &other),
        (Some(value), None) => same_as_stored(codec, &value, stored(other)?),
        (None, Some(value)) => same_as_stored(codec, &value, stored(one)?),
        (None, None) => {
            let (one, other) = (stored(one)?, stored(other)?);
            let are_one = one.payload()?.digest()? == other.payload()?.digest()?;
            if are_one {
                return Some(true);
            }
            same_values(codec, one.get().ok()?, other.get().ok()?)
        }
    }
}

/// A value that is in memory.
fn value_of(content: &Content) -> Option<ErasedValue> {
    match content {
        Content::Held(value) => Some(value.clone()),
        Content::Weak(weak) => weak.upgrade(),
        Content::Stored(stored) => stored.if_read(),
        Content::Gone(_) => None,
    }
}

/// A value that is to be read.
fn stored(content: &Content) -> Option<&Stored> {
    match content {
        Content::Stored(stored) if !stored.has_files() => Some(stored),
        _ => None,
    }
}

fn same_as_stored(codec: &Codec, value: &ErasedValue, stored: &Stored) -> Option<bool> {
    let payload = stored.payload()?;
    match payload.digest()? == payload.digest_of(value, codec)? {
        true => Some(true),
        // The digests of equal maps differ if their orders of iteration do.
        false => same_values(codec, value, stored.get().ok()?),
    }
}

fn same_values(codec: &Codec, one: &ErasedValue, other: &ErasedValue) -> Option<bool> {
    let has_files = |value| !in_value(codec, value).is_empty();
    if one.ptr_eq(other) {
        return Some(true);
    }
    user_code("`Serialize`");
    if let (Some(one), Some(other)) = (codec.bulk(one), codec.bulk(other)) {
        let parts = |bulk: &BulkBytes<'_>| (bulk.numbers, bulk.shape.clone());
        return Some(parts(&one) == parts(&other) && one.bytes == other.bytes);
    }
    if has_files(one) || has_files(other) {
        return None;
    }
    Some(shown(codec, one)? == shown(codec, other)?)
}

/// The encoding of what a value shows serde, with its maps sorted.
fn shown(codec: &Codec, value: &ErasedValue) -> Option<Commitment> {
    let mut shown = None;
    codec.show(value, &mut |value| shown = commit(&BySerde(value)).ok());
    shown
}
