//! The header of a segment.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::class::Part;
use super::id::UniqueId;
use crate::format::VERSION;
use crate::locks::lock;

/// The length of a segment's header.
pub(crate) const SEGMENT_HEADER: usize = 64;

/// The most zeros that a writer keeps after the frames of a segment, to write into.
pub(crate) const SPARE: u64 = 1 << 14;

pub(crate) const SEGMENT_MAGIC: &[u8; 8] = b"SDEstore";

/// One file of a store, written by one writer.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) id: UniqueId,
    pub(crate) part: Part,
    /// The writer: one opening of the store in one process.
    pub(crate) writer: UniqueId,
    /// Whether another user owns the file, who is the author of what is in it.
    pub(crate) is_of_others: bool,
    /// Whether another member of the store's group owns the file. Only its owner replaces it.
    pub(crate) is_of_another: bool,
    /// The places of values that were found damaged on reading.
    damaged: Mutex<Vec<u64>>,
    /// Whether this process wrote it and abandoned it after an error, without an index.
    abandoned: AtomicBool,
}

impl Segment {
    pub(crate) fn new(path: PathBuf, id: UniqueId, part: Part, writer: UniqueId) -> Self {
        let damaged = Mutex::default();
        Self {
            path,
            id,
            part,
            writer,
            is_of_others: false,
            is_of_another: false,
            damaged,
            abandoned: AtomicBool::default(),
        }
    }

    /// The folder and name of its file, within the store.
    pub(crate) fn name(&self) -> String {
        path_in_store(self.part, &self.path)
    }

    /// Records that the value at this place is damaged, so that it is not offered again.
    pub(crate) fn note_damaged(&self, at: u64) {
        lock(&self.damaged).push(at);
    }

    pub(crate) fn is_damaged(&self, at: u64) -> bool {
        lock(&self.damaged).contains(&at)
    }

    /// Records that this process writes no more to it.
    pub(crate) fn note_abandoned(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// The header's bytes; see `docs/store-format.md`, section "A segment".
    pub(crate) fn header(&self) -> [u8; SEGMENT_HEADER] {
        let mut header = [0; SEGMENT_HEADER];
        header[..8].copy_from_slice(SEGMENT_MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12] = self.part.code();
        header[16..32].copy_from_slice(&self.id.0);
        header[32..48].copy_from_slice(&self.writer.0);
        let check = checksum(&header[..48]);
        header[48..].copy_from_slice(&check);
        header
    }

    /// Reads a header.
    pub(crate) fn from_header(
        path: PathBuf,
        header: &[u8; SEGMENT_HEADER],
    ) -> Result<Self, String> {
        if !header.starts_with(SEGMENT_MAGIC) {
            return Err("it does not begin as a segment does".to_owned());
        }
        let version = Self::version(header).ok_or("its header is damaged")?;
        if version != VERSION {
            return Err(format!(
                "it has format {version}, this program reads format {VERSION}"
            ));
        }
        let part = Part::from_code(header[12])
            .ok_or_else(|| format!("it has the unknown part {}", header[12]))?;
        let id = |at: usize| {
            let mut id = [0; 16];
            id.copy_from_slice(&header[at..at + 16]);
            UniqueId(id)
        };
        Ok(Self::new(path, id(16), part, id(32)))
    }

    /// The version of the format of a whole header, even one that this crate can't read.
    pub(crate) fn version(header: &[u8; SEGMENT_HEADER]) -> Option<u32> {
        let is_whole = header.starts_with(SEGMENT_MAGIC) && header[48..] == checksum(&header[..48]);
        let (_, version) = header[..12].split_last_chunk()?;
        is_whole.then(|| u32::from_le_bytes(*version))
    }
}

/// The folder and the name of the file of a segment.
pub(crate) fn path_in_store(part: Part, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    format!("{}/{}", part.folder(), name.to_string_lossy())
}

/// The first 16 bytes of a BLAKE3 digest.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; 16] {
    first(blake3::hash(bytes))
}

/// The first 16 bytes of a digest.
pub(crate) fn first(digest: blake3::Hash) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(&digest.as_bytes()[..16]);
    first
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A segment without a file.
    pub(crate) fn segment(id: u8) -> Segment {
        let (id, writer) = (UniqueId([id; 16]), UniqueId([9; 16]));
        Segment::new(PathBuf::new(), id, Part::Entries, writer)
    }

    #[test]
    fn a_segment_header_comes_back() {
        let header = segment(7).header();
        let read = Segment::from_header(PathBuf::new(), &header).unwrap();
        assert_eq!(read.id.0, [7; 16]);
        assert_eq!(read.part, Part::Entries);
        assert_eq!(read.writer.0, [9; 16]);
    }

    #[test]
    fn another_version_is_told_from_damage() {
        let mut header = segment(7).header();
        header[8] = 1;
        let damaged = Segment::from_header(PathBuf::new(), &header).unwrap_err();
        assert!(damaged.contains("damaged"), "{damaged}");
        let check = checksum(&header[..48]);
        header[48..].copy_from_slice(&check);
        let other = Segment::from_header(PathBuf::new(), &header).unwrap_err();
        assert!(other.contains("format 1"), "{other}");
    }
}
