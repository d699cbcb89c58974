//! Digests and keys as texts, as map keys, in data formats.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use sde::Key;
use sde::key::{BuildKeyHasher, Digest, ParseDigestError};

use super::digest;

#[test]
fn texts_go_there_and_back() {
    let one = digest("x");
    let text = one.to_string();
    assert_eq!(text.len(), 64);
    assert_eq!(text.parse(), Ok(one));
    assert_eq!(text.to_uppercase().parse(), Ok(one));
    assert_eq!(one.short(), text[..12]);
    assert_eq!(format!("{one:?}"), format!("Digest({})", one.short()));
    let got = text[1..].parse::<Key>();
    assert_eq!(got, Err(ParseDigestError::Length { found: 63 }));
    let bad = text.replacen(char::is_alphanumeric, "g", 1);
    assert_eq!(bad.parse::<Key>(), Err(ParseDigestError::NotHex { at: 0 }));
    let got = "é".repeat(64).parse::<Key>();
    assert_eq!(got, Err(ParseDigestError::NotHex { at: 0 }));
    let got = "".parse::<Key>();
    assert_eq!(got, Err(ParseDigestError::Length { found: 0 }));
}

#[test]
fn a_map_of_keys_finds_them() {
    let keys: Vec<Key> = (0..2_000_u32)
        .map(|n| Key::from_bytes(*digest(&n).as_bytes()))
        .collect();
    let map: HashMap<Key, usize, BuildKeyHasher> = keys
        .iter()
        .enumerate()
        .map(|(place, key)| (*key, place))
        .collect();
    assert_eq!(map.len(), keys.len());
    for (place, key) in keys.iter().enumerate() {
        assert_eq!(map.get(key), Some(&place));
    }
    let hashes: HashSet<u64> = keys
        .iter()
        .map(|key| BuildKeyHasher::default().hash_one(key))
        .collect();
    assert_eq!(hashes.len(), keys.len());
    let mut hasher = BuildKeyHasher::default().build_hasher();
    "other data".hash(&mut hasher);
}

/// Without a data format among this crate's dependencies, serde's own pieces stand for both kinds.
mod formats {
    use serde::de::value::{BytesDeserializer, Error, SeqDeserializer};
    use serde::de::{Deserialize, IntoDeserializer};

    use super::{Digest, digest};

    #[test]
    fn bytes_and_lists_are_read() {
        let one = digest("x");
        let bytes: Result<Digest, Error> = read(BytesDeserializer::new(one.as_bytes()));
        assert_eq!(bytes.unwrap(), one);
        let list = SeqDeserializer::<_, Error>::new(one.as_bytes().iter().copied());
        assert_eq!(read(list).unwrap(), one);
        let text = one.to_string();
        let text: Result<Digest, Error> = read(text.as_str().into_deserializer());
        assert_eq!(text.unwrap(), one);
        for wrong in [&one.as_bytes()[..31], &[0; 33]] {
            assert!(read(BytesDeserializer::<Error>::new(wrong)).is_err());
            let list = SeqDeserializer::<_, Error>::new(wrong.iter().copied());
            assert!(read(list).is_err());
        }
    }

    fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        Digest::deserialize(from)
    }
}
