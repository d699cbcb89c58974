//! The metadata of frames, encoded by ciborium from the serde types in [`format`](crate::format).

use std::io::Read;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Encodes metadata.
pub(crate) fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    push(&mut bytes, value).map(|()| bytes)
}

/// Appends encoded metadata.
pub(crate) fn push<T: Serialize + ?Sized>(to: &mut Vec<u8>, value: &T) -> Result<(), String> {
    ciborium::into_writer(value, to).map_err(|error| error.to_string())
}

/// Decodes metadata at the front of some bytes; also gives the rest.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), String> {
    let mut rest = bytes;
    from_reader(&mut rest).map(|value| (value, rest))
}

/// Decodes metadata from a reader.
pub(crate) fn from_reader<T: DeserializeOwned>(from: impl Read) -> Result<T, String> {
    ciborium::from_reader(from).map_err(|error| error.to_string())
}

/// Bytes as one byte string, of any length.
pub(crate) mod bytes {
    use ciborium::Value;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let bytes = Value::deserialize(from)?.into_bytes();
        bytes.map_err(|_| D::Error::custom("it is no byte string"))
    }
}
