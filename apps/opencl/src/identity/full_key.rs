//! The whole key, kept beside each binary; and its digest.

use std::fmt;

use sde::Fingerprint;
use sde::key::{Digest, commit};
use serde::{Deserialize, Serialize};

use super::DeviceIdentity;

/// Raised when what a key is made of, or how binaries are kept, changes.
pub(super) const FORMAT: u32 = 4;

/// The 256-bit name of one build: program, options, device, driver and switches.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Fingerprint, Serialize, Deserialize,
)]
pub struct ProgramKey(Digest);

impl ProgramKey {
    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// From 32 bytes as they are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Digest::from_bytes(bytes))
    }

    /// The first 12 hexadecimal digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        self.0.short()
    }

    /// The key with all but its first bits made 0, so that a test meets two programs of one digest.
    pub(crate) fn cut_to(self, bits: usize) -> Self {
        let mut bytes = *self.as_bytes();
        for (at, byte) in bytes.iter_mut().enumerate() {
            let kept = bits.saturating_sub(8 * at).min(8);
            *byte &= !(0xff_u16 >> kept) as u8;
        }
        Self::from_bytes(bytes)
    }
}

impl fmt::Display for ProgramKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for ProgramKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramKey({})", self.short())
    }
}

/// All that two builds have to have in common to be the same: compared as a whole before a binary is used,
/// and kept for people who ask what is in a cache.
#[derive(Clone, Debug, PartialEq, Eq, Fingerprint, Serialize, Deserialize)]
pub struct FullKey {
    /// The version of this crate's format.
    pub format: u32,
    /// What is compiled.
    pub material: Material,
    /// Options from the program, the call and the environment, in this order, as they are sent.
    pub options: String,
    /// The device and its driver.
    pub device: DeviceIdentity,
    /// The environment variables that change what the driver makes.
    pub switches: Vec<(String, String)>,
}

/// What is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Fingerprint, Serialize, Deserialize)]
pub enum Material {
    /// OpenCL C.
    Source {
        /// The text.
        text: String,
        /// Every file that it may include.
        included: Vec<Included>,
        /// The files of which its author says that it reads no others, if he does.
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
pub struct Included {
    /// The name by which it is included.
    pub name: String,
    /// Where it was found.
    pub path: String,
    /// Its content.
    pub content: Content,
}

/// The content of a file. Compilers take bytes that are no text too, in comments for example.
#[derive(Clone, Debug, PartialEq, Eq, Fingerprint, Serialize, Deserialize)]
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
    /// The digest that stands for it.
    pub(crate) fn key(&self) -> Result<ProgramKey, sde::key::FingerprintError> {
        Ok(ProgramKey(commit(self)?.digest()))
    }
}

impl Material {
    /// How long all is that a compiler reads.
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
