//! The bytes of a frame: header, body, and as payload the values too long for the body.
//!
//! A checksum covers header and body, and binds them to the segment and their place in it. So bytes copied from
//! elsewhere, or user data that look like a frame, are never taken for one. Nothing in a frame is trusted before
//! its checksum is compared. Values in the payload, which are not read with the frame, have digests of their own in
//! the body.
//!
//! All numbers are little-endian. A frame may begin anywhere.

use std::io;

use sde::Key;

use super::class::Class;
use super::segment::{Segment, first};
use crate::vfs::VfsFile;

/// The length of a frame's header.
pub(crate) const FRAME_HEADER: usize = 66;
/// The longest body that is written or read: a damaged file may give any length.
pub(crate) const LONGEST: u64 = 64 << 20;

pub(crate) const FRAME_MAGIC: &[u8; 4] = b"SDEf";

/// The bytes read at once, which hold most frames without their payload.
const MOSTLY: usize = 1024;

/// The checksum covers the bytes from here on.
const COVERED: usize = 20;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// The results of a run.
    Entry = 1,
    /// A state of a run that has not finished.
    Scratch = 2,
    /// Invalidates an entry, or revokes that.
    Mark = 3,
    /// The index of the segment, at its end.
    Index = 4,
    /// The segment's writer and its machine.
    About = 5,
    /// Which entries were used.
    Uses = 6,
    /// The common data of many entries, under their digest.
    Provenance = 7,
    /// The bytes of an output file, as the payload. Their digest is the key.
    Content = 8,
    /// A process's activity in the store so far.
    Journal = 9,
}

impl FrameKind {
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    pub(crate) const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Entry),
            2 => Some(Self::Scratch),
            3 => Some(Self::Mark),
            4 => Some(Self::Index),
            5 => Some(Self::About),
            6 => Some(Self::Uses),
            7 => Some(Self::Provenance),
            8 => Some(Self::Content),
            9 => Some(Self::Journal),
            _ => None,
        }
    }
}

/// The frame is of intermediates.
const INTERMEDIATE: u8 = 1;
/// The body begins with the length of the payload that follows it.
const PAYLOAD: u8 = 2;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// The kind's number. Frames of unknown kinds are skipped, and copied as they are.
    code: u8,
    flags: u8,
    /// The length of the body.
    pub(crate) body: u32,
    /// When it was saved, in nanoseconds since 1970; 0 for kinds without a time: index, about, uses and provenance.
    pub(crate) saved_at: u64,
    /// The key of the run, or another name by which the frame is found; zeros if it has none.
    pub(crate) key: Key,
}

impl FrameHeader {
    /// The header of a frame whose body is not known yet.
    pub(crate) fn new(kind: FrameKind, class: Class, key: Key, saved_at: u64) -> Self {
        Self {
            code: kind.code(),
            flags: match class {
                Class::Intermediate => INTERMEDIATE,
                Class::Result | Class::Scratch => 0,
            },
            body: 0,
            saved_at,
            key,
        }
    }

    /// The header of a frame without a key.
    pub(crate) fn of_no_key(kind: FrameKind) -> Self {
        Self::new(kind, Class::Result, Key::from_bytes([0; 32]), 0)
    }

    /// `None` for kinds that only later releases know.
    pub(crate) fn kind(&self) -> Option<FrameKind> {
        FrameKind::of(self.code)
    }

    pub(crate) fn class(&self) -> Class {
        match self.kind() {
            Some(FrameKind::Scratch) => Class::Scratch,
            _ if self.flags & INTERMEDIATE != 0 => Class::Intermediate,
            _ => Class::Result,
        }
    }

    /// The number of its kind.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// The part of the header that copies share; their bodies may refer to a provenance or have it inline.
    pub(crate) fn identity(&self) -> [u8; 42] {
        let mut identity = [self.code; 42];
        identity[1] = self.flags & !PAYLOAD;
        identity[2..10].copy_from_slice(&self.saved_at.to_le_bytes());
        identity[10..].copy_from_slice(self.key.as_bytes());
        identity
    }

    /// The length of the frame without its payload.
    pub(crate) fn length(&self) -> u64 {
        FRAME_HEADER as u64 + u64::from(self.body)
    }

    /// Reads a frame's header without comparing its checksum; `None` if none begins here.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; FRAME_HEADER] = bytes.first_chunk()?;
        let (mut body, mut saved_at, mut key) = ([0; 4], [0; 8], [0; 32]);
        body.copy_from_slice(&bytes[22..26]);
        saved_at.copy_from_slice(&bytes[26..34]);
        key.copy_from_slice(&bytes[34..]);
        let header = Self {
            code: bytes[20],
            flags: bytes[21],
            body: u32::from_le_bytes(body),
            saved_at: u64::from_le_bytes(saved_at),
            key: Key::from_bytes(key),
        };
        (bytes.starts_with(FRAME_MAGIC) && u64::from(header.body) <= LONGEST).then_some(header)
    }

    /// The length of the payload; `None` if the body is too short to give it.
    pub(crate) fn payload(&self, body: &[u8]) -> Option<u64> {
        match self.flags & PAYLOAD {
            0 => Some(0),
            _ => body.first_chunk().map(|length| u64::from_le_bytes(*length)),
        }
    }

    /// The body without the payload's length.
    pub(crate) fn content<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        match self.flags & PAYLOAD {
            0 => body,
            _ => body.get(8..).unwrap_or_default(),
        }
    }
}

/// Whether header and body match their checksum at this place of the segment.
pub(crate) fn is_whole(frame: &[u8], segment: &Segment, at: u64) -> bool {
    frame
        .get(4..COVERED)
        .is_some_and(|check| *check == checksum(&frame[COVERED..], segment, at))
}

/// Appends a frame without its payload; `body` is in parts. Gives the header.
///
/// Its bytes are in `docs/store-format.md`, section "A segment".
pub(crate) fn append(
    to: &mut Vec<u8>,
    mut header: FrameHeader,
    payload: u64,
    body: &[&[u8]],
    (segment, at): (&Segment, u64),
) -> FrameHeader {
    let start = to.len();
    header.flags &= !PAYLOAD;
    if payload > 0 {
        header.flags |= PAYLOAD;
    }
    to.extend_from_slice(FRAME_MAGIC);
    to.extend_from_slice(&[0; 16]);
    to.extend_from_slice(&[header.code, header.flags, 0, 0, 0, 0]);
    to.extend_from_slice(&header.saved_at.to_le_bytes());
    to.extend_from_slice(header.key.as_bytes());
    if payload > 0 {
        to.extend_from_slice(&payload.to_le_bytes());
    }
    body.iter().for_each(|part| to.extend_from_slice(part));
    let length = to.len() - start - FRAME_HEADER;
    // Longer bodies were refused before.
    header.body = u32::try_from(length).unwrap_or(u32::MAX);
    to[start + 22..start + 26].copy_from_slice(&header.body.to_le_bytes());
    let check = checksum(&to[start + COVERED..], segment, at);
    to[start + 4..start + COVERED].copy_from_slice(&check);
    header
}

/// Reads header and body of the frame at a place; `None` if no whole one begins there.
pub(crate) fn read_at(
    file: &dyn VfsFile,
    segment: &Segment,
    at: u64,
) -> io::Result<Option<(FrameHeader, Vec<u8>)>> {
    let mut bytes = vec![0; MOSTLY];
    let there = file.read_up_to(&mut bytes, at)?;
    bytes.truncate(there);
    let Some(header) = FrameHeader::read(&bytes) else {
        return Ok(None);
    };
    let length = usize::try_from(header.length()).map_err(io::Error::other)?;
    if length > bytes.len() {
        let read = bytes.len();
        if read < MOSTLY || at.saturating_add(header.length()) > file.length()? {
            return Ok(None);
        }
        bytes.resize(length, 0);
        file.read_at(&mut bytes[read..], at + read as u64)?;
    }
    bytes.truncate(length);
    let is_whole = is_whole(&bytes, segment, at);
    bytes.drain(..FRAME_HEADER);
    Ok(is_whole.then_some((header, bytes)))
}

fn checksum(covered: &[u8], segment: &Segment, at: u64) -> [u8; 16] {
    let mut bound = [0; 32];
    bound[..16].copy_from_slice(&segment.id.0);
    bound[16..24].copy_from_slice(&at.to_le_bytes());
    first(blake3::keyed_hash(&bound, covered))
}

#[cfg(test)]
mod tests {
    use super::super::segment::tests::segment;
    use super::*;

    #[test]
    fn a_frame_belongs_to_its_segment_and_place() {
        let key = Key::from_bytes([3; 32]);
        let header = FrameHeader::new(FrameKind::Entry, Class::Intermediate, key, 77);
        let mut bytes = b"before".to_vec();
        let body: [&[u8]; 2] = [b"bo", b"dy"];
        let header = append(&mut bytes, header, 1 << 40, &body, (&segment(1), 96));
        let bytes = &bytes[6..];
        assert_eq!(FrameHeader::read(bytes), Some(header));
        assert_eq!(header.length(), bytes.len() as u64);
        assert_eq!(header.payload(&bytes[FRAME_HEADER..]), Some(1 << 40));
        assert_eq!(header.content(&bytes[FRAME_HEADER..]), b"body");
        assert_eq!(header.class(), Class::Intermediate);
        assert!(is_whole(bytes, &segment(1), 96));
        assert!(!is_whole(bytes, &segment(1), 97));
        assert!(!is_whole(bytes, &segment(2), 96));
        for bit in 32..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_whole(&flipped, &segment(1), 96), "{bit}");
        }
    }
}
