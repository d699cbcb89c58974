//! Metadata: ciborium's, from the serde types in [`format`](crate::format).

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes of metadata.
pub(crate) fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    push(&mut bytes, value).map(|()| bytes)
}

/// Appends the bytes of metadata.
pub(crate) fn push<T: Serialize + ?Sized>(to: &mut Vec<u8>, value: &T) -> Result<(), String> {
    ciborium::into_writer(value, to).map_err(|error| error.to_string())
}

/// Reads metadata from the front of some bytes; gives what comes after it, too.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), String> {
    let mut rest = bytes;
    let value = ciborium::from_reader(&mut rest).map_err(|error| error.to_string())?;
    Ok((value, rest))
}

/// Bytes as one byte string, of any length.
pub(crate) mod bytes {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a byte string")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(bytes)
            }
        }
        from.deserialize_byte_buf(Bytes)
    }
}
