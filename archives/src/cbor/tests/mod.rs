//! Items, depth, errors; arrays of numbers are in `typed`, hostile bytes in `hostile`.

mod data;
mod hostile;
mod schema;
mod typed;

use serde::Serialize;
use serde::de::DeserializeOwned;

use serde::{Deserialize, Serializer};

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
    let codec = Codec::of::<Deep<u8>>();
    let bytes = encode(&ErasedValue::new(grown), &codec)
        .unwrap()
        .slices()
        .collect::<Vec<_>>()
        .concat();
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
    let error = encode(&ErasedValue::new(Fragile), &codec).err().unwrap();
    assert!(error.ends_with("panicked: too fragile"), "{error}");
}

#[test]
fn a_value_of_another_type_is_refused() {
    let error = encode(&ErasedValue::new(1_u8), &Codec::of::<String>())
        .err()
        .unwrap();
    assert_eq!(
        error,
        "a u8 was given to the codec of alloc::string::String"
    );
}

/// The bytes of a value of any type.
pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    let mut encoded = Encoded::new();
    value.serialize(Writer::new(&mut encoded))?;
    Ok(encoded.slices().collect::<Vec<_>>().concat())
}

/// The value of these bytes.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut reader = Reader::new(bytes);
    let value = T::deserialize(&mut reader)?;
    used_up(&reader).map(|()| value)
}
