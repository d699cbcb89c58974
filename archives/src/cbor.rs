//! Values to CBOR and back, through serde and ciborium.
//!
//! What is read has passed its checksum, but may have been written by a program
//! whose types were others, or to do harm: depth is limited, bytes left over are
//! an error, and a panic in a user's own `Serialize` or `Deserialize` is an error
//! too. ciborium is always fed from memory; it is slow on unbuffered files.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sde::{Codec, ErasedValue};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::lossless;
use crate::plain_errors::{Aside, Plain};

/// ciborium passes byte strings and text to visitors that want to borrow them by
/// way of a buffer, and fails if they don't fit.
const BORROWED_AT_MOST: usize = 16 << 20;

/// The bytes of a value; an error says why it has none.
pub(crate) fn encode(value: &ErasedValue, codec: &Codec) -> Result<Vec<u8>, String> {
    guarded(|| {
        lossless::check(value, codec)?;
        to_bytes(&Shown { value, codec })
    })
}

/// The value of these bytes.
pub(crate) fn decode(bytes: &[u8], codec: &Codec) -> Result<ErasedValue, String> {
    guarded(|| {
        CODEC.set(Some(*codec));
        from_bytes::<Decoded>(bytes).map(|decoded| decoded.0)
    })
}

/// The bytes of metadata.
pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    match ciborium::into_writer(value, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(ciborium::ser::Error::Value(why)) => Err(why),
        Err(ciborium::ser::Error::Io(error)) => Err(error.to_string()),
    }
}

/// Reads metadata, or a value.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    use ciborium::de::Error;
    let mut rest = bytes;
    let mut buffer = vec![0; bytes.len().clamp(64, BORROWED_AT_MOST)];
    let read = ciborium::de::from_reader_with_buffer(&mut rest, &mut buffer);
    let value = read.map_err(|error| match error {
        Error::Io(_) => "it ends too early".to_owned(),
        Error::Syntax(at) => format!("it is not CBOR at byte {at}"),
        Error::Semantic(_, why) => why,
        Error::RecursionLimitExceeded => "it is nested too deeply".to_owned(),
    })?;
    match rest.len() {
        0 => Ok(value),
        more => Err(format!("{more} bytes are left over")),
    }
}

/// A value with the codec that knows its type.
struct Shown<'a> {
    value: &'a ErasedValue,
    codec: &'a Codec,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.codec.encode(self.value, to)
    }
}

thread_local! {
    /// The codec for the next [`Decoded`] of this thread: ciborium has no way to
    /// hand it one.
    static CODEC: Cell<Option<Codec>> = const { Cell::new(None) };
}

/// What the codec in [`CODEC`] read.
struct Decoded(ErasedValue);

impl<'de> Deserialize<'de> for Decoded {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Taken before anything is read, so that a `Deserialize` of the user's own
        // that decodes something itself finds it free.
        let codec = CODEC
            .take()
            .ok_or_else(|| D::Error::custom("no codec was set"))?;
        let aside = Aside::default();
        let mut from = <dyn erased_serde::Deserializer<'_>>::erase(Plain::new(from, &aside));
        codec.decode(&mut from).map(Self).map_err(D::Error::custom)
    }
}

/// A panic of the user's code must not take the store down with it.
fn guarded<T>(job: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(job))
        .unwrap_or_else(|panic| Err(format!("its serde code panicked: {}", text(&*panic))))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_left_over_are_refused() {
        let mut bytes = to_bytes(&7_u64).unwrap();
        assert_eq!(from_bytes::<u64>(&bytes), Ok(7));
        bytes.push(0);
        assert_eq!(
            from_bytes::<u64>(&bytes),
            Err("1 bytes are left over".to_owned())
        );
    }

    #[test]
    fn depth_is_limited() {
        let mut deep = vec![0x81; 100_000];
        deep.push(0xf6);
        let error = from_bytes::<ciborium::Value>(&deep).unwrap_err();
        assert!(error.contains("deeply"), "{error}");
    }

    #[test]
    fn a_length_that_is_not_there_allocates_nothing() {
        // An array, a text and a byte string of 2^62 elements each.
        for head in [0x9b, 0x7b, 0x5b] {
            let hostile = [head, 0x40, 0, 0, 0, 0, 0, 0, 0];
            assert!(from_bytes::<Vec<u64>>(&hostile).is_err());
            assert!(from_bytes::<String>(&hostile).is_err());
            assert!(from_bytes::<ciborium::Value>(&hostile).is_err());
        }
    }

    /// ciborium quotes and escapes an error each time it passes through: its text
    /// once had two to the power of the depth bytes.
    #[test]
    fn an_error_deep_down_is_short() {
        #[derive(Serialize, Deserialize)]
        enum Deep<T> {
            Leaf(T),
            One(Box<Deep<T>>),
            Two { of: Option<(Box<Deep<T>>,)> },
        }
        let grown = (0..30).fold(Deep::Leaf(1_u8), |inner, _| Deep::Two {
            of: Some((Box::new(Deep::One(Box::new(inner))),)),
        });
        let bytes = encode(&ErasedValue::new(grown), &Codec::of::<Deep<u8>>()).unwrap();
        assert!(decode(&bytes, &Codec::of::<Deep<u8>>()).is_ok());
        let error = decode(&bytes, &Codec::of::<Deep<String>>()).unwrap_err();
        assert!(error.contains("integer `1`, expected"), "{error}");
        assert!(error.len() < 100, "{error}");
    }

    #[test]
    fn a_panic_is_an_error() {
        #[derive(Deserialize)]
        struct Fragile;
        impl Serialize for Fragile {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                panic!("too fragile")
            }
        }
        let codec = Codec::of::<Fragile>();
        let error = encode(&ErasedValue::new(Fragile), &codec).unwrap_err();
        assert!(error.ends_with("panicked: too fragile"), "{error}");
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let error = encode(&ErasedValue::new(1_u8), &Codec::of::<String>()).unwrap_err();
        assert_eq!(
            error,
            "a u8 was given to the codec of alloc::string::String"
        );
    }
}
