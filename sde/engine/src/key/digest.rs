//! The two kinds of 256-bit names: [`Digest`] names content, [`Key`] names a run.
//!
//! They hold the same 32 bytes but mean different things, so they are different types: a content
//! digest can never be looked up as if it were a key.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Tells why a text is not a digest or a key.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseDigestError {
    /// The text does not have 64 characters.
    #[error(
        "a digest has 64 hexadecimal digits, this text has {found} characters; give the whole digest, not its short form"
    )]
    Length {
        /// The number of characters in the text.
        found: usize,
    },
    /// A character is not a hexadecimal digit.
    #[error("character {at} of the digest is not a hexadecimal digit (0-9, a-f)")]
    NotHex {
        /// The position of the character, from 0.
        at: usize,
    },
}

crate::error::debug_as_said!(ParseDigestError);

fn parse_hex(text: &str) -> Result<[u8; 32], ParseDigestError> {
    let found = text.chars().count();
    if found != 64 {
        return Err(ParseDigestError::Length { found });
    }
    let mut bytes = [0_u8; 32];
    for (at, digit) in text.chars().enumerate() {
        // `to_digit(16)` gives at most 15, so the cast loses nothing.
        let value = digit.to_digit(16).ok_or(ParseDigestError::NotHex { at })? as u8;
        bytes[at / 2] = bytes[at / 2] << 4 | value;
    }
    Ok(bytes)
}

/// Accepts the 32 bytes in each form that a data format may give them.
struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = [u8; 32];

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the 32 bytes of a digest, or its 64 hexadecimal digits")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        bytes
            .try_into()
            .map_err(|_| E::invalid_length(bytes.len(), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        parse_hex(text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut bytes = [0_u8; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = items
                .next_element()?
                .ok_or_else(|| de::Error::invalid_length(at, &self))?;
        }
        match items.next_element::<u8>()? {
            None => Ok(bytes),
            Some(_) => Err(de::Error::invalid_length(33, &self)),
        }
    }
}

macro_rules! name_of_32_bytes {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Takes 32 bytes as they are; nothing is hashed.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The 32 bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// The first 12 hexadecimal digits: enough to tell apart what one person looks at, not
            /// enough to identify anything.
            #[must_use]
            pub fn short(&self) -> String {
                blake3::Hash::from_bytes(self.0).to_hex()[..12].to_owned()
            }
        }

        impl From<[u8; 32]> for $name {
            fn from(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&blake3::Hash::from_bytes(self.0).to_hex())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self.short())
            }
        }

        /// Feeds 8 of the 32 bytes: they are uniform, so more would only cost more.
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                let [a, b, c, d, e, f, g, h, ..] = self.0;
                state.write_u64(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
            }
        }

        /// Reads 64 hexadecimal digits, as [`Display`](fmt::Display) writes them.
        impl FromStr for $name {
            type Err = ParseDigestError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_hex(text).map(Self)
            }
        }

        /// 32 bytes in binary formats, hexadecimal text in formats for people.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    serializer.serialize_bytes(&self.0)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(BytesVisitor).map(Self)
                } else {
                    deserializer.deserialize_bytes(BytesVisitor).map(Self)
                }
            }
        }
    };
}

name_of_32_bytes! {
    /// The BLAKE3 digest of an encoding: names what a value *is*.
    ///
    /// ```
    /// use sde::key::Digest;
    /// let digest = Digest::from_bytes([0xab; 32]);
    /// assert_eq!(digest.short(), "abababababab");
    /// assert_eq!(digest.to_string().parse::<Digest>(), Ok(digest));
    /// ```
    Digest
}

name_of_32_bytes! {
    /// The 256-bit name of one run of one app.
    ///
    /// Two runs are the same exactly when their keys are equal. Hashing a key into a map is a
    /// copy of 8 bytes with [`BuildKeyHasher`](super::BuildKeyHasher).
    Key
}
