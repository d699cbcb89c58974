//! The index at the end of a sealed segment: one row for each frame, sorted by key.
//!
//! The index is a frame ([`FrameKind::Index`]) whose body is a CBOR array of the number of rows and the latest time
//! of saving, followed by the rows. A trailer gives its place. The index only repeats facts of the frames. A
//! segment without one, whose writer was killed or still writes, is read from end to end.

use std::io;

use sde::Key;

use super::frame::{self, FRAME_HEADER, FrameHeader, FrameKind, LONGEST};
use super::segment::{SEGMENT_HEADER, Segment, checksum};
use crate::cbor::metadata::{from_bytes, to_bytes};
use crate::vfs::{VfsFile, read_bytes};

/// The length of a row.
pub(crate) const ROW: usize = 24;
/// The number of frames at which a segment is full: half the rows of the longest index. Tests have a smaller limit.
pub(crate) const ROWS: usize = match cfg!(test) {
    true => 1 << 10,
    false => LONGEST as usize / ROW / 2,
};
/// The length of the trailer.
pub(crate) const TRAILER: usize = 32;
const TRAILER_MAGIC: &[u8; 8] = b"SDEindex";

/// The row of a frame. Keys are digests, so eight bytes are enough to find a frame, which has the whole key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) prefix: u64,
    /// The frame's place, shifted by a byte, and its kind in the lowest.
    pub(crate) place: u64,
    pub(crate) saved_at: u64,
}

impl Row {
    pub(crate) fn new(header: &FrameHeader, at: u64) -> Self {
        Self {
            prefix: prefix(&header.key),
            place: at << 8 | u64::from(header.code()),
            saved_at: header.saved_at,
        }
    }

    pub(crate) fn at(&self) -> u64 {
        self.place >> 8
    }

    /// `None` for kinds that only later releases know.
    pub(crate) fn kind(&self) -> Option<FrameKind> {
        FrameKind::of(self.place as u8)
    }

    /// Prefix, big-endian; place and kind; time of saving.
    pub(crate) fn bytes(&self) -> [u8; ROW] {
        let mut row = [0; ROW];
        row[..8].copy_from_slice(&self.prefix.to_be_bytes());
        row[8..16].copy_from_slice(&self.place.to_le_bytes());
        row[16..].copy_from_slice(&self.saved_at.to_le_bytes());
        row
    }

    pub(crate) fn read(row: &[u8; ROW]) -> Self {
        let part = |at: usize| {
            let mut part = [0; 8];
            part.copy_from_slice(&row[at..at + 8]);
            part
        };
        Self {
            prefix: u64::from_be_bytes(part(0)),
            place: u64::from_le_bytes(part(8)),
            saved_at: u64::from_le_bytes(part(16)),
        }
    }
}

/// The first eight bytes of a key, as rows have them.
pub(crate) fn prefix(key: &Key) -> u64 {
    let (first, _) = key.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    u64::from_be_bytes(*first)
}

/// Sorted rows. Keys are digests, evenly spread, so a row's position can be guessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows(pub(crate) Vec<u8>);

impl FromIterator<Row> for Rows {
    /// From sorted rows.
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Self {
        Self(rows.into_iter().flat_map(|row| row.bytes()).collect())
    }
}

impl Rows {
    pub(crate) fn sorted(mut rows: Vec<Row>) -> Self {
        rows.sort_unstable_by_key(|row| (row.prefix, row.place));
        rows.into_iter().collect()
    }

    /// The rows with this prefix, in the order of their places.
    pub(crate) fn find(&self, prefix: u64) -> impl Iterator<Item = Row> + '_ {
        self.find_numbered(prefix).map(|(_, row)| row)
    }

    /// The rows with this prefix, with their numbers.
    pub(crate) fn find_numbered(&self, prefix: u64) -> impl Iterator<Item = (usize, Row)> + '_ {
        let first = self.first_not_before(prefix);
        let numbered = (first..self.len()).map(|at| (at, self.get(at)));
        numbered.map_while(move |(at, row)| Some((at, row.filter(|row| row.prefix == prefix)?)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Row> + '_ {
        self.0.as_chunks().0.iter().map(Row::read)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len() / ROW
    }

    pub(crate) fn get(&self, at: usize) -> Option<Row> {
        self.0.as_chunks().0.get(at).map(Row::read)
    }

    /// The first row whose key is not before this one. Starts from a guess by the key's first 32 bits, takes
    /// doubling steps until it is past the row, then halves the interval.
    fn first_not_before(&self, prefix: u64) -> usize {
        let len = self.len();
        let guess = (((prefix >> 32) * len as u64) >> 32) as usize;
        let is_before = |at: usize| self.get(at).is_some_and(|row| row.prefix < prefix);
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

/// The index of a segment.
pub(crate) struct IndexBlock {
    pub(crate) rows: Rows,
    /// The latest time of saving in the segment.
    pub(crate) latest: u64,
    /// Where the index frame begins, which is the end of the frames.
    pub(crate) end: u64,
    /// The file's length.
    pub(crate) length: u64,
}

impl IndexBlock {
    /// The index, and the frame and trailer that seal a segment at `end`; `None` if they would be too long.
    pub(crate) fn seal(segment: &Segment, rows: Vec<Row>, end: u64) -> Option<(Self, Vec<u8>)> {
        let latest = rows.iter().map(|row| row.saved_at).max().unwrap_or(0);
        let text = to_bytes(&(rows.len() as u64, latest)).ok()?;
        let rows = Rows::sorted(rows);
        if (rows.0.len() + text.len()) as u64 > LONGEST {
            return None;
        }
        let header = FrameHeader::of_no_key(FrameKind::Index);
        let mut tail = Vec::with_capacity(rows.0.len() + text.len() + FRAME_HEADER + TRAILER);
        frame::append(&mut tail, header, 0, &[&text, &rows.0], (segment, end));
        tail.extend_from_slice(&trailer(segment, end));
        let length = end + tail.len() as u64;
        let block = Self {
            rows,
            latest,
            end,
            length,
        };
        Some((block, tail))
    }

    /// Reads the index of a segment; `None` if it is not sealed, or its index is damaged.
    pub(crate) fn read(
        segment: &Segment,
        file: &dyn VfsFile,
        length: u64,
    ) -> io::Result<Option<Self>> {
        let Some((end, bytes)) = index_frame(segment, file, length)? else {
            return Ok(None);
        };
        let block = FrameHeader::read(&bytes)
            .filter(|header| header.kind() == Some(FrameKind::Index))
            .filter(|header| header.length() == bytes.len() as u64)
            .filter(|_| frame::is_whole(&bytes, segment, end))
            .and_then(|_| from_bytes::<(u64, u64)>(&bytes[FRAME_HEADER..]).ok())
            .filter(|((count, _), rows)| count.checked_mul(ROW as u64) == Some(rows.len() as u64))
            .map(|((_, latest), rows)| (latest, rows.len()));
        Ok(block.map(|(latest, rows)| {
            let mut bytes = bytes;
            bytes.drain(..bytes.len() - rows);
            Self {
                rows: Rows(bytes),
                latest,
                end,
                length,
            }
        }))
    }
}

/// The frame that the trailer names, and its place; `None` without a valid trailer.
fn index_frame(
    segment: &Segment,
    file: &dyn VfsFile,
    length: u64,
) -> io::Result<Option<(u64, Vec<u8>)>> {
    let Some(frame_end) = length.checked_sub(TRAILER as u64) else {
        return Ok(None);
    };
    let mut end = [0; TRAILER];
    match file.read_at(&mut end, frame_end) {
        // The writer has just cut off its spare zeros.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    if !is_trailer(segment, &end) {
        return Ok(None);
    }
    let mut at = [0; 8];
    at.copy_from_slice(&end[8..16]);
    let at = u64::from_le_bytes(at);
    let longest = LONGEST + FRAME_HEADER as u64;
    match frame_end.checked_sub(at) {
        Some(bytes) if at >= SEGMENT_HEADER as u64 && bytes <= longest => {
            read_bytes(file, at, bytes).map(|bytes| Some((at, bytes)))
        }
        _ => Ok(None),
    }
}

/// The place of the index, with a checksum bound to the segment.
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

/// Whether these bytes are a trailer of the segment.
pub(crate) fn is_trailer(segment: &Segment, bytes: &[u8]) -> bool {
    let at = bytes.get(8..16).and_then(|at| at.try_into().ok());
    at.is_some_and(|at| bytes == trailer(segment, u64::from_le_bytes(at)))
}

#[cfg(test)]
mod tests {
    use super::super::class::Class;
    use super::super::segment::tests::segment;
    use super::*;
    use crate::vfs::{Disk, Vfs};

    /// A damaged index that is believed hides results, which are silently computed again.
    #[test]
    fn an_index_comes_back_and_no_flipped_bit_is_taken() {
        let row = |number| Row {
            prefix: number,
            place: number << 8 | 1,
            saved_at: number,
        };
        let end = SEGMENT_HEADER as u64;
        let rows = vec![row(70), row(3)];
        let (block, tail) = IndexBlock::seal(&segment(1), rows, end).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sde");
        let read = |tail: &[u8]| {
            std::fs::write(&path, [&[0; SEGMENT_HEADER], tail].concat()).unwrap();
            let file = Disk.open(&path).unwrap();
            IndexBlock::read(&segment(1), &*file, block.length).unwrap()
        };
        assert_eq!(read(&tail).unwrap().rows, block.rows);
        for bit in 0..tail.len() * 8 {
            let mut flipped = tail.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&flipped).is_none(), "{bit}");
        }
    }

    #[test]
    fn a_row_comes_back() {
        let key = Key::from_bytes([3; 32]);
        let header = FrameHeader::new(FrameKind::Entry, Class::Result, key, 7);
        let row = Row::new(&header, 12345);
        assert_eq!((row.at(), row.kind()), (12345, Some(FrameKind::Entry)));
        assert_eq!(Row::read(&row.bytes()), row);
    }

    fn row(prefix: u64, at: u64) -> Row {
        Row {
            prefix,
            place: at << 8 | 1,
            saved_at: at + 1,
        }
    }

    /// Evenly spread keys, crowded ones, one key many times, and missing ones.
    #[test]
    fn each_row_is_found_and_nothing_else() {
        let spread = |n: u64| n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let crowded = |n: u64| (0x7f7f_7f7f << 32) + n;
        for count in [0, 1, 2, 3, 10, 1000] {
            for key in [spread, crowded] {
                let rows: Vec<_> = (0..count).map(|n| row(key(n), 64 + n * 8)).collect();
                let sorted = Rows::sorted(rows.clone());
                for row in &rows {
                    assert_eq!(sorted.find(row.prefix).collect::<Vec<_>>(), [*row]);
                }
                for n in count..count + 100 {
                    assert_eq!(sorted.find(key(n)).count(), 0);
                }
                for edge in [0, u64::MAX] {
                    assert_eq!(sorted.find(edge).count(), 0);
                }
            }
        }
        let same: Vec<_> = (0..100).map(|n| row(5, 64 + n * 8)).collect();
        assert_eq!(Rows::sorted(same.clone()).find(5).collect::<Vec<_>>(), same);
    }
}
