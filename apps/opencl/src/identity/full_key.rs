//! The whole key, kept beside each binary; and its digest.

use sde::Fingerprint;
use sde::key::{Digest, commit};
use serde::{Deserialize, Serialize};

use crate::driver::DeviceIdentity;

/// Raised when the parts of a key, or the form of kept binaries, change.
pub(super) const FORMAT: u32 = 5;

/// All that equal builds have in common. It is compared as a whole before a binary is used,
/// and kept for people who inspect a cache.
#[derive(Clone, Debug, PartialEq, Eq, Fingerprint, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FullKey {
    /// The version of this crate's format.
    pub format: u32,
    /// The code that is compiled.
    pub material: Material,
    /// Options from the program, the call and the environment, in this order, as they are sent.
    pub options: String,
    /// The device and its driver.
    pub device: DeviceIdentity,
    /// The environment variables that change what the driver makes.
    pub switches: Vec<(String, String)>,
}

/// The code that is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Fingerprint, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Material {
    /// OpenCL C.
    Source {
        /// The text.
        text: String,
        /// Every file that it may include.
        included: Vec<Included>,
        /// The files that the author promises are the only others it reads, if he does.
        reads: Option<Vec<String>>,
    },
    /// An intermediate language.
    Il {
        /// The module.
        bytes: Vec<u8>,
        /// The specialization constants that were set: number and value.
        constants: Vec<(u32, Vec<u8>)>,
    },
    /// Parts, compiled each by itself and linked.
    Linked {
        /// The keys of the parts, in order.
        parts: Vec<FullKey>,
    },
}

/// One file that a source may include.
#[derive(Clone, Debug, PartialEq, Eq, Fingerprint, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Included {
    /// The name by which it is included.
    pub name: String,
    /// Where it was found.
    pub path: String,
    /// The first included file that is this same file, by whatever path. A compiler reads a file with `#pragma
    /// once` a single time.
    pub file: usize,
    /// Its content.
    pub content: Content,
}

/// The content of a file. Compilers also take bytes that are not UTF-8, in comments for example.
#[derive(Clone, Debug, PartialEq, Eq, Fingerprint, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Content {
    /// A text.
    Text(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
}

impl Content {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }

    fn length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

impl FullKey {
    /// The digest of the full key.
    pub(crate) fn key(&self) -> Result<Digest, sde::key::FingerprintError> {
        Ok(commit(self)?.digest())
    }
}

impl Material {
    /// The length of all text or bytes that a compiler reads.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Source { text, included, .. } => {
                let contents = included.iter().map(|one| one.content.length());
                text.len() + contents.sum::<usize>()
            }
            Self::Il { bytes, .. } => bytes.len(),
            Self::Linked { parts } => parts.iter().map(|part| part.material.length()).sum(),
        }
    }
}
