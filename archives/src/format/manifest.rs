//! The bytes of a manifest: the record of what a store held at a commit.
//!
//! Frames stand for themselves, so a store can be read without any manifest. A manifest adds what is *not* there:
//! segments that were lost or cut short since, and segments that a compaction has replaced and that must not come
//! back.
//!
//! Its bytes are in `docs/store-format.md`, section "A manifest".

use serde::{Deserialize, Serialize};

use crate::cbor::metadata::{from_bytes, to_bytes};
use crate::format::VERSION;
use crate::format::id::UniqueId;
use crate::format::segment::Segment;

const MAGIC: &[u8; 8] = b"SDEmanif";
const HEADER: usize = 56;

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// One more than the latest of its parents.
    pub generation: u64,
    /// The id of its writer.
    pub writer: String,
    /// When it was written, in nanoseconds since 1970.
    pub at: u64,
    /// The file names of the manifests that it supersedes.
    pub parents: Vec<String>,
    /// The segments that it vouches for.
    pub segments: Vec<ListedSegment>,
    /// The segments that were replaced by others.
    pub replaced: Vec<ReplacedSegment>,
    /// The last compaction, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) swept: Option<Sweep>,
}

/// A compaction, recorded to tell when the next is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sweep {
    /// When, in nanoseconds since 1970.
    pub(crate) at: u64,
    /// The bytes left in the store.
    pub(crate) bytes: u64,
}

/// A segment that a manifest vouches for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedSegment {
    /// The folder and name of its file.
    pub path: String,
    /// Its id.
    pub id: String,
    /// The number of its bytes that were durable.
    pub length: u64,
}

/// A segment that others replace, up to a length. Frames after that still count: its writer seemed dead and was
/// not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplacedSegment {
    /// The folder and name of its file.
    pub path: String,
    /// Its id.
    pub id: String,
    /// The length that was replaced: frames before it that count are in other segments.
    pub length: u64,
    /// When it was replaced, in nanoseconds since 1970; 0 if no reader needs time.
    pub at: u64,
}

impl ListedSegment {
    pub(crate) fn new(segment: &Segment, length: u64) -> Self {
        Self {
            path: segment.name(),
            id: segment.id.to_string(),
            length,
        }
    }
}

impl ReplacedSegment {
    pub(crate) fn new(segment: &Segment, length: u64, at: u64) -> Self {
        Self {
            path: segment.name(),
            id: segment.id.to_string(),
            length,
            at,
        }
    }
}

impl Manifest {
    /// The file name. Names sort by generation.
    pub(crate) fn name(&self) -> String {
        let (generation, writer) = (self.generation, &self.writer);
        format!("{generation:010}-{writer}.{EXTENSION}")
    }

    /// The replaced segments, and up to where each is.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = (UniqueId, u64)> + '_ {
        let id = |one: &ReplacedSegment| Some((UniqueId::parse(&one.id)?, one.length));
        self.replaced.iter().filter_map(id)
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        let text = to_bytes(self)?;
        let mut bytes = head(text.len() as u64).to_vec();
        let check = check(&bytes, &text);
        bytes.extend_from_slice(&check);
        bytes.extend_from_slice(&text);
        Ok(bytes)
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let damaged = || "it is damaged".to_owned();
        let (header, text) = bytes.split_at_checked(HEADER).ok_or_else(damaged)?;
        if !header.starts_with(MAGIC) {
            return Err("it does not begin as a manifest does".to_owned());
        }
        Self::version(bytes).ok_or_else(damaged)?;
        if header[..24] != head(text.len() as u64) {
            let why = "it has another format than this program reads";
            return Err(why.to_owned());
        }
        match from_bytes(text)? {
            (manifest, []) => Ok(manifest),
            (_, more) => Err(format!("{} bytes are left over", more.len())),
        }
    }

    /// The version of the format of a whole manifest, even one that this crate can't read.
    pub(crate) fn version(bytes: &[u8]) -> Option<u32> {
        let (header, text) = bytes.split_at_checked(HEADER)?;
        let is_whole = header.starts_with(MAGIC) && header[24..] == check(&header[..24], text);
        let (_, version) = header[..12].split_last_chunk()?;
        is_whole.then(|| u32::from_le_bytes(*version))
    }
}

/// The folder of the manifests in a store.
pub(crate) const FOLDER: &str = "manifests";

/// The extension of manifest files.
pub(crate) const EXTENSION: &str = "manifest";

fn head(length: u64) -> [u8; 24] {
    let mut head = [0; 24];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[16..].copy_from_slice(&length.to_le_bytes());
    head
}

fn check(head: &[u8], text: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new()
        .update(head)
        .update(text)
        .finalize()
        .as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_and_no_flipped_bit_is_taken() {
        let manifest = Manifest {
            generation: 12,
            writer: "ab".repeat(16),
            at: 7,
            parents: vec!["0000000011-x.manifest".to_owned()],
            segments: vec![ListedSegment {
                path: "entries/a.sde".to_owned(),
                id: "cd".repeat(16),
                length: 64,
            }],
            replaced: Vec::new(),
            swept: Some(Sweep { at: 9, bytes: 64 }),
        };
        let bytes = manifest.bytes().unwrap();
        assert_eq!(Manifest::read(&bytes).unwrap(), manifest);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::read(&flipped).is_err(), "{bit}");
        }
        for length in 0..bytes.len() {
            assert!(Manifest::read(&bytes[..length]).is_err(), "{length}");
        }
    }
}
