//! What is in a sealed segment, known without reading it from end to end.
//!
//! A store of a million entries must open in a moment. So a writer that is done with
//! a segment adds an index at its end: one row for each frame, sorted by key. Keys
//! are digests, evenly spread, so a row is found by guessing where it must be.
//!
//! The index is one more frame ([`FrameKind::Index`]), followed by a trailer of 32 bytes that
//! says where it begins. A segment without one (its writer was killed, or is still at
//! it) is read from end to end instead: the index says nothing that the frames do not.

use std::io;
use std::sync::Arc;

use sde::key::Digest;
use sde::{Key, Mark};
use serde::{Deserialize, Serialize};

use crate::catalog::filter::Filter;
use crate::cbor;
use crate::format::segment::{
    FRAME_HEADER, FrameHeader, FrameKind, LONGEST, SEGMENT_HEADER, Segment, aligned, checksum,
};
use crate::vfs::VfsFile;

/// The length of a row: key, place and kind, time of saving.
pub(crate) const ROW: usize = 48;
/// The length of the trailer.
pub(crate) const TRAILER: usize = 32;
const TRAILER_MAGIC: &[u8; 8] = b"SDEindex";

/// One frame, as a row has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) at: u64,
    pub(crate) kind: FrameKind,
    pub(crate) saved_at: u64,
}

impl Row {
    /// Key, then the place with the kind in its three lowest bits (frames begin at multiples of 8),
    /// then the time of saving.
    pub(crate) fn bytes(&self) -> [u8; ROW] {
        let mut row = [0; ROW];
        row[..32].copy_from_slice(self.key.as_bytes());
        let place = self.at | u64::from(self.kind.code());
        row[32..40].copy_from_slice(&place.to_le_bytes());
        row[40..].copy_from_slice(&self.saved_at.to_le_bytes());
        row
    }

    /// Rows one after the other.
    pub(crate) fn all(rows: &[u8]) -> Vec<Self> {
        rows.chunks_exact(ROW).filter_map(Self::read).collect()
    }

    fn read(row: &[u8]) -> Option<Self> {
        let (key, rest) = row.split_first_chunk::<32>()?;
        let (place, saved_at) = rest.split_first_chunk::<8>()?;
        let place = u64::from_le_bytes(*place);
        Some(Self {
            key: Key::from_bytes(*key),
            at: place & !7,
            kind: FrameKind::of((place & 7) as u8)?,
            saved_at: u64::from_le_bytes(*saved_at.first_chunk::<8>()?),
        })
    }
}

/// What the index frame says of itself.
#[derive(Serialize, Deserialize)]
struct IndexMetadata {
    rows: u64,
    /// The BLAKE3 digest of the rows.
    checksum: Digest,
    /// The latest time of saving in the segment.
    latest: u64,
    marks: Vec<Mark>,
}

/// The index of a sealed segment.
pub(crate) struct Table {
    pub(crate) segment: Arc<Segment>,
    rows: Vec<u8>,
    filter: Filter,
    pub(crate) marks: Vec<Mark>,
    pub(crate) latest: u64,
    /// Where the index frame begins: up to there reach the frames.
    pub(crate) end: u64,
    /// How long the file is.
    pub(crate) length: u64,
}

impl Table {
    /// The frame and the trailer that seal a segment which ends here, and the table; `None` if they would
    /// be too long.
    pub(crate) fn seal(
        segment: &Arc<Segment>,
        mut rows: Vec<Row>,
        marks: Vec<Mark>,
        end: u64,
    ) -> Option<(Self, Vec<u8>)> {
        rows.sort_unstable_by_key(|row| (*row.key.as_bytes(), row.at));
        let latest = rows.iter().map(|row| row.saved_at).max().unwrap_or(0);
        let bytes: Vec<u8> = rows.iter().flat_map(Row::bytes).collect();
        let metadata = IndexMetadata {
            rows: rows.len() as u64,
            checksum: Digest::from_bytes(*blake3::hash(&bytes).as_bytes()),
            latest,
            marks,
        };
        let text = cbor::to_bytes(&metadata).ok()?;
        if bytes.len() as u64 > LONGEST {
            return None;
        }
        let header = FrameHeader::new(FrameKind::Index, &text, bytes.len() as u64)?;
        let mut tail = header.bytes(segment, end).to_vec();
        tail.extend_from_slice(&text);
        tail.extend_from_slice(&bytes);
        let frame_end = header.end(end);
        tail.resize(tail.len() + (aligned(frame_end) - frame_end) as usize, 0);
        tail.extend_from_slice(&trailer(segment, end));
        let table = Self {
            segment: Arc::clone(segment),
            filter: filter(&bytes),
            rows: bytes,
            marks: metadata.marks,
            latest,
            end,
            length: end + tail.len() as u64,
        };
        Some((table, tail))
    }

    /// Reads the index of a segment; `None` if it is not sealed, or its index is damaged.
    pub(crate) fn read(
        segment: &Arc<Segment>,
        file: &dyn VfsFile,
        length: u64,
    ) -> io::Result<Option<Self>> {
        let Some((at, header)) = index_frame(segment, file, length)? else {
            return Ok(None);
        };
        let metadata = bytes(file, FrameHeader::metadata_at(at), header.metadata.into())?;
        if checksum(&metadata) != header.metadata_checksum {
            return Ok(None);
        }
        let Ok(metadata) = cbor::from_bytes::<IndexMetadata>(&metadata) else {
            return Ok(None);
        };
        if metadata.rows.checked_mul(ROW as u64) != Some(header.payloads) {
            return Ok(None);
        }
        let rows = bytes(file, header.payloads_at(at), header.payloads)?;
        if blake3::hash(&rows).as_bytes() != metadata.checksum.as_bytes() {
            return Ok(None);
        }
        Ok(Some(Self {
            segment: Arc::clone(segment),
            filter: filter(&rows),
            rows,
            marks: metadata.marks,
            latest: metadata.latest,
            end: at,
            length,
        }))
    }

    /// The table of a segment that somebody else has read: sorted rows, where the index begins, and how
    /// long the file is.
    pub(crate) fn told(
        segment: &Arc<Segment>,
        rows: Vec<u8>,
        latest: u64,
        (end, length): (u64, u64),
    ) -> Self {
        Self {
            segment: Arc::clone(segment),
            filter: filter(&rows),
            rows,
            marks: Vec::new(),
            latest,
            end,
            length,
        }
    }

    /// All rows, as they are in the index frame.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.rows
    }

    /// The rows of a key, in the order of their places.
    pub(crate) fn find(&self, key: &Key) -> impl Iterator<Item = Row> + '_ {
        let key = *key;
        let first = match self.filter.may_have(&key) {
            true => self.first_not_before(key.as_bytes()),
            false => self.len(),
        };
        (first..self.len()).map_while(move |at| self.row(at).filter(|row| row.key == key))
    }

    /// All rows, by key.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.len()).filter_map(|at| self.row(at))
    }

    fn len(&self) -> usize {
        self.rows.len() / ROW
    }

    fn row(&self, at: usize) -> Option<Row> {
        Row::read(self.rows.get(at * ROW..(at + 1) * ROW)?)
    }

    fn key(&self, at: usize) -> &[u8] {
        self.rows.get(at * ROW..at * ROW + 32).unwrap_or_default()
    }

    /// The first row whose key is not before this one: a guess from the key's first 32 bits,
    /// steps away from it that double until they are past it, then halving.
    fn first_not_before(&self, key: &[u8; 32]) -> usize {
        let len = self.len();
        let first = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
        let guess = ((u64::from(first) * len as u64) >> 32) as usize;
        let is_before = |at: usize| self.key(at) < &key[..];
        let (mut low, mut high);
        let mut step = 4;
        if guess < len && is_before(guess) {
            low = guess + 1;
            while low + step < len && is_before(low + step) {
                low += step + 1;
                step *= 2;
            }
            high = (low + step).min(len);
        } else {
            high = guess;
            while high > step && !is_before(high - step) {
                high -= step;
                step *= 2;
            }
            low = high.saturating_sub(step);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(middle) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

fn filter(rows: &[u8]) -> Filter {
    let rows = rows.chunks_exact(ROW);
    let keys = rows.clone().filter_map(|row| row.first_chunk::<32>());
    Filter::of(rows.len(), keys.map(|key| Key::from_bytes(*key)))
}

fn trailer(segment: &Segment, at: u64) -> [u8; TRAILER] {
    let mut trailer = [0; TRAILER];
    trailer[..8].copy_from_slice(TRAILER_MAGIC);
    trailer[8..16].copy_from_slice(&at.to_le_bytes());
    let mut bound = [0; 32];
    bound[..16].copy_from_slice(&segment.id.0);
    bound[16..].copy_from_slice(&trailer[..16]);
    trailer[16..].copy_from_slice(&checksum(&bound));
    trailer
}

/// Whether these bytes, at the end of a segment, are a trailer.
pub(crate) fn is_trailer(segment: &Segment, bytes: &[u8]) -> bool {
    let at = bytes.get(8..16).and_then(|at| at.try_into().ok());
    at.is_some_and(|at| bytes == trailer(segment, u64::from_le_bytes(at)))
}

/// The index frame that the trailer names, if all of that is there.
fn index_frame(
    segment: &Segment,
    file: &dyn VfsFile,
    length: u64,
) -> io::Result<Option<(u64, FrameHeader)>> {
    if length < (SEGMENT_HEADER + FRAME_HEADER + TRAILER) as u64 {
        return Ok(None);
    }
    let mut end = [0; TRAILER];
    file.read_at(&mut end, length - TRAILER as u64)?;
    if !is_trailer(segment, &end) {
        return Ok(None);
    }
    let mut at = [0; 8];
    at.copy_from_slice(&end[8..16]);
    let at = u64::from_le_bytes(at);
    if at > length - (FRAME_HEADER + TRAILER) as u64 {
        return Ok(None);
    }
    let mut header = [0; FRAME_HEADER];
    file.read_at(&mut header, at)?;
    let header = FrameHeader::read(&header, segment, at)
        .filter(|header| header.kind == Some(FrameKind::Index) && header.payloads <= LONGEST)
        .filter(|header| aligned(header.end(at)) == length - TRAILER as u64);
    Ok(header.map(|header| (at, header)))
}

/// Bytes of a file that is known to be so long.
pub(crate) fn bytes(file: &dyn VfsFile, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length)?;
    bytes.resize(length, 0);
    file.read_at(&mut bytes, at)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::format::class::Class;
    use crate::format::id::UniqueId;

    fn row(key: [u8; 32], at: u64) -> Row {
        Row {
            key: Key::from_bytes(key),
            at,
            kind: FrameKind::Entry,
            saved_at: at + 1,
        }
    }

    fn table(rows: Vec<Row>) -> Table {
        let id = UniqueId([1; 16]);
        let segment = Segment::new(PathBuf::new(), id, Class::Result, UniqueId([2; 16]));
        Table::seal(&Arc::new(segment), rows, Vec::new(), 64)
            .unwrap()
            .0
    }

    /// Evenly spread keys, crowded ones, one key many times, and what is not there.
    #[test]
    fn each_row_is_found_and_nothing_else() {
        let spread = |n: u64| *blake3::hash(&n.to_le_bytes()).as_bytes();
        let crowded = |n: u64| {
            let mut key = [0x7f; 32];
            key[24..].copy_from_slice(&n.to_be_bytes());
            key
        };
        for count in [0, 1, 2, 3, 10, 1000] {
            for key in [spread, crowded] {
                let rows: Vec<_> = (0..count).map(|n| row(key(n), 64 + n * 8)).collect();
                let table = table(rows.clone());
                for row in &rows {
                    assert_eq!(table.find(&row.key).collect::<Vec<_>>(), [*row]);
                }
                for n in count..count + 100 {
                    assert_eq!(table.find(&Key::from_bytes(key(n))).count(), 0);
                }
                for edge in [[0; 32], [0xff; 32]] {
                    assert_eq!(table.find(&Key::from_bytes(edge)).count(), 0);
                }
            }
        }
        let same: Vec<_> = (0..100).map(|n| row([5; 32], 64 + n * 8)).collect();
        assert_eq!(
            table(same.clone())
                .find(&Key::from_bytes([5; 32]))
                .collect::<Vec<_>>(),
            same
        );
    }

    #[test]
    fn a_row_comes_back() {
        for kind in [FrameKind::Entry, FrameKind::Scratch, FrameKind::Mark] {
            let row = Row {
                kind,
                ..row([3; 32], !7)
            };
            assert_eq!(Row::read(&row.bytes()), Some(row));
        }
    }
}
