//! Reads a segment from end to end, to learn its frames.
//!
//! A crash may leave a half-written frame at the end of a segment; a disk may damage any frame. After a frame that
//! is not whole, each place with the magic bytes is tried, and the checksum decides. Zeros are skipped at once: a
//! file that was made longer may have a hole of any size.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sde::Key;
use sde::archiver::Mark;

use crate::cbor::metadata::from_bytes;
use crate::format::frame::{self, FRAME_HEADER, FRAME_MAGIC, FrameHeader, FrameKind};
use crate::format::index_block::{Row, TRAILER, is_trailer};
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::vfs::{Vfs, VfsFile};

/// The frames found in part of a segment.
pub(crate) struct Scanned {
    pub(crate) rows: Vec<Row>,
    pub(crate) marks: Vec<Mark>,
    /// Where the next frame would begin: everything before was read.
    pub(crate) end: u64,
    /// The end of the frames without a final index: an index is not synced, so no manifest vouches for it.
    pub(crate) frames_end: u64,
    /// The file's length, without its writer's spare zeros.
    pub(crate) length: u64,
    /// The damaged ranges before `end`, with the reason.
    pub(crate) damaged: Vec<(Range<u64>, String)>,
}

impl Scanned {
    /// Whether only the end is missing.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.damaged.is_empty() && self.end < self.length
    }

    /// Warns of the bytes that are left out.
    pub(crate) fn warn(&self, path: &Path) {
        let path = path.display();
        for (place, why) in &self.damaged {
            let (from, to) = (place.start, place.end);
            sde::warning!(
                "bytes {from}..{to} of {path} are left out: {why}; what they held is computed again when needed"
            );
        }
        if self.end < self.length {
            let left = self.length - self.end;
            sde::warning!(
                "the last {left} bytes of {path} are left out: a save was cut short there or goes on, or they are damaged"
            );
        }
    }
}

/// Reads the header of a segment; `None` if the file is too short to have one.
pub(crate) fn open(vfs: &dyn Vfs, path: &Path) -> io::Result<Option<Result<Segment, String>>> {
    let file = vfs.open(path)?;
    let mut header = [0; SEGMENT_HEADER];
    match file.read_at(&mut header, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(Some(Segment::from_header(path.to_owned(), &header))),
    }
}

/// Reads the frames of a segment from a place on.
pub(crate) fn scan(vfs: &dyn Vfs, segment: &Segment, from: u64) -> io::Result<Scanned> {
    scan_with(vfs, segment, from, |_, _| Ok(()))
}

/// Reads the frames of a segment from a place on; calls `each` for every whole frame, with its body.
pub(crate) fn scan_with(
    vfs: &dyn Vfs,
    segment: &Segment,
    from: u64,
    mut each: impl FnMut(&FoundFrame, &[u8]) -> io::Result<()>,
) -> io::Result<Scanned> {
    let mut reader = SegmentReader::open(vfs, &segment.path)?;
    let mut scanned = Scanned {
        rows: Vec::new(),
        marks: Vec::new(),
        end: from,
        frames_end: from,
        length: reader.length,
        damaged: Vec::new(),
    };
    scanned.end = reader.each(segment, from, |stretch| match stretch {
        Stretch::Gap(place, _) => {
            let why = "it holds no frame".to_owned();
            scanned.damaged.push((place, why));
            Ok(())
        }
        Stretch::Frame(found, body) => {
            if let Err(why) = note(&found, body, &mut scanned) {
                scanned.damaged.push((found.at..found.end, why));
            }
            if found.header.kind() != Some(FrameKind::Index) {
                scanned.frames_end = found.end;
            }
            each(&found, body)
        }
    })?;
    reader.pass_trailer(segment, &mut scanned)?;
    if reader.next_data(scanned.end)?.is_none() {
        scanned.length = scanned.end;
    }
    if reader.zeros >= TOLD {
        let (path, zeros) = (segment.path.display(), reader.zeros);
        sde::warning!(
            "in {path} {zeros} bytes are zeros where frames should be; they are passed over, what is \
             whole before and after them is used"
        );
    }
    Ok(scanned)
}

/// Adds a frame's row, and its mark if it is one.
fn note(found: &FoundFrame, body: &[u8], to: &mut Scanned) -> Result<(), String> {
    match found.header.kind() {
        Some(FrameKind::About | FrameKind::Index) => return Ok(()),
        Some(FrameKind::Mark) => {
            let read = from_bytes(found.header.content(body));
            let (mark, _) = read.map_err(|why| format!("its body can't be read: {why}"))?;
            to.marks.push(mark);
        }
        _ => {}
    }
    to.rows.push(Row::new(&found.header, found.at));
    Ok(())
}

/// A whole frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundFrame {
    pub(crate) at: u64,
    pub(crate) header: FrameHeader,
    /// Where its payload begins.
    pub(crate) payload: u64,
    pub(crate) end: u64,
}

/// A piece of a segment.
pub(crate) enum Stretch<'a> {
    /// A whole frame, and its body.
    Frame(FoundFrame, &'a [u8]),
    /// Bytes that are no frame, and the key of a damaged header there.
    Gap(Range<u64>, Option<Key>),
}

/// A reader of a segment, with a part of it in memory.
pub(crate) struct SegmentReader {
    pub(crate) file: Arc<dyn VfsFile>,
    pub(crate) length: u64,
    start: u64,
    bytes: Vec<u8>,
    /// The number of zero bytes that were skipped.
    zeros: u64,
    /// The number of bytes that were hashed and were no frame.
    in_vain: u64,
}

/// The number of bytes read at once.
const READ: u64 = 1 << 16;

/// The least number of zeros that is warned of. A crash may leave fewer at the end of a file without damage.
const TOLD: u64 = 1 << 24;

/// The limit of bytes hashed in vain, in multiples of the file's length, and a constant added to it. Without it a
/// forged file full of frame headers would take for ever.
const IN_VAIN: u64 = 4;
const IN_VAIN_ANYWAY: u64 = 1 << 26;

impl SegmentReader {
    pub(crate) fn open(vfs: &dyn Vfs, path: &Path) -> io::Result<Self> {
        let file: Arc<dyn VfsFile> = Arc::from(vfs.open(path)?);
        Ok(Self {
            length: file.length()?,
            file,
            start: 0,
            bytes: Vec::new(),
            zeros: 0,
            in_vain: 0,
        })
    }

    /// Bytes of the file; `None` beyond its end.
    pub(crate) fn get(&mut self, at: u64, length: u64) -> io::Result<Option<&[u8]>> {
        let end = at.checked_add(length).filter(|end| *end <= self.length);
        let Some(end) = end else { return Ok(None) };
        if (at < self.start || end > self.start + self.bytes.len() as u64)
            && !self.fill(at, length)?
        {
            return Ok(None);
        }
        let from = (at - self.start) as usize;
        Ok(self.bytes.get(from..from + length as usize))
    }

    /// Fills the buffer from a place on; `false` if the file ends before `at + length`.
    fn fill(&mut self, at: u64, length: u64) -> io::Result<bool> {
        // The writer may cut off its spare zeros meanwhile.
        for _ in 0..2 {
            // No underflow: `at` is within the file.
            let wanted = length.max(READ).min(self.length - at);
            let wanted = usize::try_from(wanted).map_err(io::Error::other)?;
            self.bytes.clear();
            self.bytes.try_reserve_exact(wanted)?;
            self.bytes.resize(wanted, 0);
            self.start = at;
            let Err(error) = self.file.read_at(&mut self.bytes, at) else {
                return Ok(true);
            };
            self.bytes.clear();
            if error.kind() != io::ErrorKind::UnexpectedEof {
                return Err(error);
            }
            self.length = self.file.length()?;
            if self.length < at + length {
                break;
            }
        }
        Ok(false)
    }

    /// Calls `each` for the frames and gaps from a place on, up to the last whole frame; gives where that ends.
    pub(crate) fn each(
        &mut self,
        segment: &Segment,
        from: u64,
        mut each: impl FnMut(Stretch<'_>) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut at = from;
        while let Some(found) = self.next_frame(segment, at)? {
            if found.at > at {
                let key = self.header_at(at)?.map(|header| header.key);
                each(Stretch::Gap(at..found.at, key))?;
            }
            at = found.end;
            let body = self.get(found.at + FRAME_HEADER as u64, found.header.body.into())?;
            each(Stretch::Frame(found, body.unwrap_or_default()))?;
        }
        Ok(at)
    }

    /// The first whole frame at or after a place.
    fn next_frame(&mut self, segment: &Segment, from: u64) -> io::Result<Option<FoundFrame>> {
        // A forged manifest may give a length beyond the end.
        let mut at = from.min(self.length);
        loop {
            if let Some(found) = self.frame_at(segment, at)? {
                return Ok(Some(found));
            }
            let budget = self
                .length
                .saturating_mul(IN_VAIN)
                .saturating_add(IN_VAIN_ANYWAY);
            match self.next_magic(at + 1)? {
                Some(next) if self.in_vain <= budget => at = next,
                _ => return Ok(None),
            }
        }
    }

    /// The header that may begin here; it may be damaged.
    fn header_at(&mut self, at: u64) -> io::Result<Option<FrameHeader>> {
        let bytes = self.get(at, FRAME_HEADER as u64)?;
        Ok(bytes.and_then(FrameHeader::read))
    }

    /// The frame that begins here, if one does.
    pub(crate) fn frame_at(
        &mut self,
        segment: &Segment,
        at: u64,
    ) -> io::Result<Option<FoundFrame>> {
        let Some(header) = self.header_at(at)? else {
            return Ok(None);
        };
        let Some(bytes) = self.get(at, header.length())? else {
            return Ok(None);
        };
        if !frame::is_whole(bytes, segment, at) {
            self.in_vain += header.length();
            return Ok(None);
        }
        let payload = header.payload(&bytes[FRAME_HEADER..]);
        let start = at + header.length();
        let end = payload.and_then(|payload| start.checked_add(payload));
        let found = end.filter(|end| *end <= self.length).map(|end| FoundFrame {
            at,
            header,
            payload: start,
            end,
        });
        Ok(found)
    }

    /// The bytes in memory from a place on, at least a frame's header unless the file ends before; `None` beyond
    /// its end.
    fn some(&mut self, at: u64) -> io::Result<Option<&[u8]>> {
        let in_memory = self.start + self.bytes.len() as u64;
        let is_enough = in_memory == self.length || at + FRAME_HEADER as u64 <= in_memory;
        match (self.start..in_memory).contains(&at) && is_enough {
            true => Ok(self.bytes.get((at - self.start) as usize..)),
            false if at >= self.length || !self.fill(at, 1)? => Ok(None),
            false => Ok(Some(&self.bytes)),
        }
    }

    /// The first place from here on with the magic bytes of a frame.
    fn next_magic(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        loop {
            let data = self.next_data(at)?;
            self.zeros += data.unwrap_or(self.length).saturating_sub(at);
            let Some(data) = data else { return Ok(None) };
            let Some(bytes) = self.some(data)? else {
                return Ok(None);
            };
            let mut places = bytes.windows(FRAME_MAGIC.len());
            if let Some(place) = places.position(|four| four == FRAME_MAGIC) {
                return Ok(Some(data + place as u64));
            }
            let end = data + bytes.len() as u64;
            if end >= self.length {
                return Ok(None);
            }
            // The magic bytes may lie across the end of the buffer.
            at = (data + 1).max(end - FRAME_MAGIC.len() as u64 + 1);
        }
    }

    /// The first place from here on with a byte that is not zero.
    pub(crate) fn next_data(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        while let Some(bytes) = self.some(at)? {
            if let Some(zeros) = bytes.iter().position(|byte| *byte != 0) {
                return Ok(Some(at + zeros as u64));
            }
            let end = at + bytes.len() as u64;
            // A faulty file system may name an earlier place.
            match self.file.next_data(end)? {
                Some(data) => at = data.max(end),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Counts the trailer after the index of a sealed segment as read, not as damage.
    fn pass_trailer(&mut self, segment: &Segment, scanned: &mut Scanned) -> io::Result<()> {
        let left = self.length.saturating_sub(scanned.end);
        if left == TRAILER as u64
            && self
                .get(scanned.end, left)?
                .is_some_and(|bytes| is_trailer(segment, bytes))
        {
            scanned.end = self.length;
        }
        Ok(())
    }
}
