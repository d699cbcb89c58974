//! The bytes of a segment: a header, then frames one after another.
//!
//! Nothing read from a disk is trusted before it is checked. A frame's header has
//! a checksum that covers the segment it belongs to and its place there, so that
//! bytes copied from elsewhere, or user data that looks like a frame, are never
//! taken for one; lengths are looked at only after that. The metadata's checksum
//! is in the header, those of the payloads are in the metadata.
//!
//! All numbers are little-endian. Frames begin at multiples of 8.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sde::Key;

use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::store::directory::VERSION;

/// The length of a segment's header.
pub(crate) const SEGMENT_HEADER: usize = 64;
/// The length of a frame's header.
pub(crate) const FRAME_HEADER: usize = 96;
/// Metadata, and an index, that is longer is neither written nor read: no run has as many inputs, and a
/// file may say anything of its lengths.
pub(crate) const LONGEST: u64 = 64 << 20;

pub(crate) const SEGMENT_MAGIC: &[u8; 8] = b"SDEstore";
pub(crate) const FRAME_MAGIC: &[u8; 4] = b"SDEf";

/// One file of a store, written by one writer.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) id: UniqueId,
    pub(crate) class: Class,
    /// Who writes it: one opening of the store in one process.
    pub(crate) writer: UniqueId,
    /// Where values begin that were found to be damaged when they were asked for.
    damaged: Mutex<Vec<u64>>,
}

impl Segment {
    pub(crate) fn new(path: PathBuf, id: UniqueId, class: Class, writer: UniqueId) -> Self {
        let damaged = Mutex::default();
        Self {
            path,
            id,
            class,
            writer,
            damaged,
        }
    }

    /// Notes that the value that begins here is damaged: it is not offered again.
    pub(crate) fn note_damaged(&self, at: u64) {
        self.damaged().push(at);
    }

    pub(crate) fn is_damaged(&self, at: u64) -> bool {
        self.damaged().contains(&at)
    }

    fn damaged(&self) -> MutexGuard<'_, Vec<u64>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first bytes of the file.
    ///
    /// | at | bytes | |
    /// |---|---|---|
    /// | 0 | 8 | `SDEstore` |
    /// | 8 | 4 | format version |
    /// | 12 | 1 | 1: results, 2: intermediates, 3: scratch |
    /// | 13 | 3 | 0 |
    /// | 16 | 16 | segment id |
    /// | 32 | 16 | writer id |
    /// | 48 | 16 | BLAKE3 of the bytes before, its first 16 bytes |
    pub(crate) fn header(&self) -> [u8; SEGMENT_HEADER] {
        let mut header = [0; SEGMENT_HEADER];
        header[..8].copy_from_slice(SEGMENT_MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12] = self.class.code();
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
        if &header[..8] != SEGMENT_MAGIC {
            return Err("it does not begin as a segment does".to_owned());
        }
        if header[48..] != checksum(&header[..48]) {
            return Err("its header is damaged".to_owned());
        }
        let version = u32_at(header, 8);
        if version != VERSION {
            return Err(format!(
                "it has format {version}, this program reads format {VERSION}"
            ));
        }
        let class = Class::from_code(header[12])
            .ok_or_else(|| format!("it has the unknown class {}", header[12]))?;
        let id = |at: usize| {
            let mut id = [0; 16];
            id.copy_from_slice(&header[at..at + 16]);
            UniqueId(id)
        };
        Ok(Self::new(path, id(16), class, id(32)))
    }
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An entry with its payloads.
    Entry,
    /// A scratch state.
    Scratch,
    /// A mark.
    Mark,
    /// What is in the segment, at its end.
    Index,
    /// Who writes the segment, and where.
    About,
    /// Which entries were used.
    Uses,
}

impl FrameKind {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Entry => 1,
            Self::Scratch => 2,
            Self::Mark => 3,
            Self::Index => 4,
            Self::About => 5,
            Self::Uses => 6,
        }
    }

    pub(crate) const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Entry),
            2 => Some(Self::Scratch),
            3 => Some(Self::Mark),
            4 => Some(Self::Index),
            5 => Some(Self::About),
            6 => Some(Self::Uses),
            _ => None,
        }
    }
}

/// The header of a frame. After it come the metadata, then the payloads, then
/// zeros up to a multiple of 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// `None` for a kind that a later release may add; such a frame is passed over.
    pub(crate) kind: Option<FrameKind>,
    /// As it is in the bytes, so that a copy of an unknown one is the same.
    code: u8,
    pub(crate) metadata: u32,
    pub(crate) payloads: u64,
    /// When it was saved, in nanoseconds since 1970.
    pub(crate) saved_at: u64,
    /// The run that it is of; zeros if it is of none.
    pub(crate) key: Key,
    pub(crate) metadata_checksum: [u8; 16],
}

impl FrameHeader {
    /// The header of a frame with this metadata; `None` if that is too long.
    pub(crate) fn new(kind: FrameKind, metadata: &[u8], payloads: u64) -> Option<Self> {
        let length = u32::try_from(metadata.len()).ok();
        Some(Self {
            kind: Some(kind),
            code: kind.code(),
            metadata: length.filter(|length| u64::from(*length) <= LONGEST)?,
            payloads,
            saved_at: 0,
            key: Key::from_bytes([0; 32]),
            metadata_checksum: checksum(metadata),
        })
    }

    /// The same, of a run.
    pub(crate) fn of(self, key: Key, saved_at: u64) -> Self {
        Self {
            saved_at,
            key,
            ..self
        }
    }

    /// The bytes of the header of a frame at this place.
    ///
    /// | at | bytes | |
    /// |---|---|---|
    /// | 0 | 4 | `SDEf` |
    /// | 4 | 1 | 1: entry, 2: scratch, 3: mark, 4: index, 5: about, 6: uses |
    /// | 5 | 3 | 0 |
    /// | 8 | 4 | length of the metadata |
    /// | 12 | 4 | 0 |
    /// | 16 | 8 | length of all payloads together |
    /// | 24 | 8 | when it was saved, in nanoseconds since 1970 |
    /// | 32 | 32 | key |
    /// | 64 | 16 | BLAKE3 of the metadata, its first 16 bytes |
    /// | 80 | 16 | BLAKE3 of segment id, place of the frame (8 bytes) and the bytes before, its first 16 bytes |
    pub(crate) fn bytes(&self, segment: &Segment, at: u64) -> [u8; FRAME_HEADER] {
        let mut header = [0; FRAME_HEADER];
        header[..4].copy_from_slice(FRAME_MAGIC);
        header[4] = self.code;
        header[8..12].copy_from_slice(&self.metadata.to_le_bytes());
        header[16..24].copy_from_slice(&self.payloads.to_le_bytes());
        header[24..32].copy_from_slice(&self.saved_at.to_le_bytes());
        header[32..64].copy_from_slice(self.key.as_bytes());
        header[64..80].copy_from_slice(&self.metadata_checksum);
        let check = frame_check(segment, at, &header);
        header[80..].copy_from_slice(&check);
        header
    }

    /// Reads the header of a frame at this place; `None` if there is none.
    pub(crate) fn read(bytes: &[u8; FRAME_HEADER], segment: &Segment, at: u64) -> Option<Self> {
        if &bytes[..4] != FRAME_MAGIC || bytes[80..] != frame_check(segment, at, bytes) {
            return None;
        }
        let metadata = u32_at(bytes, 8);
        if u64::from(metadata) > LONGEST {
            return None;
        }
        let mut metadata_checksum = [0; 16];
        metadata_checksum.copy_from_slice(&bytes[64..80]);
        let mut key = [0; 32];
        key.copy_from_slice(&bytes[32..64]);
        Some(Self {
            kind: FrameKind::of(bytes[4]),
            code: bytes[4],
            metadata,
            payloads: u64_at(bytes, 16),
            saved_at: u64_at(bytes, 24),
            key: Key::from_bytes(key),
            metadata_checksum,
        })
    }

    /// Where the metadata of the frame at this place begins.
    pub(crate) fn metadata_at(at: u64) -> u64 {
        at.saturating_add(FRAME_HEADER as u64)
    }

    /// Where its payloads begin.
    pub(crate) fn payloads_at(&self, at: u64) -> u64 {
        Self::metadata_at(at).saturating_add(self.metadata.into())
    }

    /// Where it ends, without the zeros after it.
    pub(crate) fn end(&self, at: u64) -> u64 {
        self.payloads_at(at).saturating_add(self.payloads)
    }
}

/// The next multiple of 8.
pub(crate) fn aligned(at: u64) -> u64 {
    at.checked_next_multiple_of(8).unwrap_or(u64::MAX)
}

/// The first 16 bytes of a BLAKE3 digest.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    first
}

fn frame_check(segment: &Segment, at: u64, header: &[u8; FRAME_HEADER]) -> [u8; 16] {
    let mut bound = [0; 104];
    bound[..16].copy_from_slice(&segment.id.0);
    bound[16..24].copy_from_slice(&at.to_le_bytes());
    bound[24..].copy_from_slice(&header[..80]);
    checksum(&bound)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(id: u8) -> Segment {
        Segment::new(
            PathBuf::new(),
            UniqueId([id; 16]),
            Class::Result,
            UniqueId([9; 16]),
        )
    }

    #[test]
    fn a_segment_header_comes_back() {
        let header = segment(7).header();
        let read = Segment::from_header(PathBuf::new(), &header).unwrap();
        assert_eq!(read.id.0, [7; 16]);
        assert_eq!(read.class, Class::Result);
        assert_eq!(read.writer.0, [9; 16]);
    }

    #[test]
    fn a_later_version_is_told_from_damage() {
        let mut header = segment(7).header();
        header[8] = 2;
        let damaged = Segment::from_header(PathBuf::new(), &header).unwrap_err();
        assert!(damaged.contains("damaged"), "{damaged}");
        let check = checksum(&header[..48]);
        header[48..].copy_from_slice(&check);
        let later = Segment::from_header(PathBuf::new(), &header).unwrap_err();
        assert!(later.contains("format 2"), "{later}");
    }

    #[test]
    fn a_frame_belongs_to_its_segment_and_place() {
        let header = FrameHeader::new(FrameKind::Scratch, b"metadata", 1 << 40)
            .unwrap()
            .of(Key::from_bytes([3; 32]), 77);
        let bytes = header.bytes(&segment(1), 96);
        assert_eq!(FrameHeader::read(&bytes, &segment(1), 96).unwrap(), header);
        assert_eq!(FrameHeader::read(&bytes, &segment(1), 104), None);
        assert_eq!(FrameHeader::read(&bytes, &segment(2), 96), None);
        for bit in 0..FRAME_HEADER * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::read(&flipped, &segment(1), 96), None, "{bit}");
        }
    }
}
