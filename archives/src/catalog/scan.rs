//! Reading a segment from end to end, to learn what is in it.
//!
//! A crash may leave a frame half written at the end of a segment; a disk may
//! damage any other. Each frame stands for itself, so what can't be read is passed
//! over and everything else is found: after a damaged header the next frame is
//! looked for at each multiple of 8, and its checksum says that it is one. What is all zeros is
//! passed over at once: a file that was made longer may have a hole of any size.

use std::io;
use std::ops::Range;
use std::path::Path;

use sde::Mark;

use crate::catalog::table::{Row, TRAILER, is_trailer};
use crate::cbor;
use crate::format::segment::{
    FRAME_HEADER, FrameHeader, FrameKind, SEGMENT_HEADER, Segment, aligned, checksum,
};
use crate::vfs::{Vfs, VfsFile};

/// What was found in part of a segment.
pub(crate) struct Scanned {
    pub(crate) rows: Vec<Row>,
    pub(crate) marks: Vec<Mark>,
    /// Where the next frame would begin: up to here nothing is left to read.
    pub(crate) end: u64,
    /// The same without an index at the end: nobody may vouch for that, since it is not synced.
    pub(crate) frames_end: u64,
    /// How long the file was.
    pub(crate) length: u64,
    /// What is damaged before that, and how.
    pub(crate) damaged: Vec<(Range<u64>, String)>,
}

impl Scanned {
    /// Warns of what is left out.
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
                "the last {left} bytes of {path} are left out: a save was cut short there, or goes on"
            );
        }
    }
}

/// Reads the header of a segment; `None` if the file is too short to have one.
pub(crate) fn open(medium: &dyn Vfs, path: &Path) -> io::Result<Option<Result<Segment, String>>> {
    let file = medium.open(path)?;
    let mut header = [0; SEGMENT_HEADER];
    match file.read_at(&mut header, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(Some(Segment::from_header(path.to_owned(), &header))),
    }
}

/// Reads the frames of a segment from a place where one may begin.
pub(crate) fn scan(medium: &dyn Vfs, segment: &Segment, from: u64) -> io::Result<Scanned> {
    scan_with(medium, segment, from, |_| ())
}

/// The same; `each` is called for every whole frame.
pub(crate) fn scan_with(
    medium: &dyn Vfs,
    segment: &Segment,
    from: u64,
    mut each: impl FnMut(&FoundFrame),
) -> io::Result<Scanned> {
    let mut window = Window::open(medium, &segment.path)?;
    let mut scanned = Scanned {
        rows: Vec::new(),
        marks: Vec::new(),
        end: from,
        frames_end: from,
        length: window.length,
        damaged: Vec::new(),
    };
    let mut at = from;
    while let Some(next) = window.next_frame(segment, at)? {
        if next.at > at {
            let why = "it holds no frame".to_owned();
            scanned.damaged.push((at..next.at, why));
        }
        let end = aligned(next.header.end(next.at));
        match window.add(&next, &mut scanned)? {
            Ok(()) => each(&next),
            Err(why) => scanned.damaged.push((next.at..end, why)),
        }
        at = end;
        scanned.end = end;
        if next.header.kind != Some(FrameKind::Index) {
            scanned.frames_end = end;
        }
    }
    window.pass_trailer(segment, &mut scanned)?;
    if window.zeros >= TOLD {
        let (path, zeros) = (segment.path.display(), window.zeros);
        sde::warning!(
            "in {path} {zeros} bytes are zeros where frames should be; they are passed over, what is \
             whole before and after them is used"
        );
    }
    Ok(scanned)
}

/// A frame that is there in its whole length.
pub(crate) struct FoundFrame {
    pub(crate) at: u64,
    pub(crate) header: FrameHeader,
}

/// A file of which a part is in memory.
pub(crate) struct Window {
    pub(crate) file: Box<dyn VfsFile>,
    pub(crate) length: u64,
    start: u64,
    bytes: Vec<u8>,
    /// How many bytes were passed over that are zeros.
    zeros: u64,
}

/// How much is read at once.
const READ: u64 = 1 << 16;

/// So many zeros are told of. A crash may leave some at the end of a file, and that is no damage.
const TOLD: u64 = 1 << 24;

impl Window {
    pub(crate) fn open(medium: &dyn Vfs, path: &Path) -> io::Result<Self> {
        let file = medium.open(path)?;
        Ok(Self {
            length: file.length()?,
            file,
            start: 0,
            bytes: Vec::new(),
            zeros: 0,
        })
    }

    /// Bytes of the file; `None` if it is not that long.
    pub(crate) fn get(&mut self, at: u64, length: u64) -> io::Result<Option<&[u8]>> {
        let Some(end) = at.checked_add(length).filter(|end| *end <= self.length) else {
            return Ok(None);
        };
        if at < self.start || end > self.start + self.bytes.len() as u64 {
            let wanted = length.max(READ).min(self.length - at);
            // It fits: the file is as long as that.
            let wanted = usize::try_from(wanted).map_err(io::Error::other)?;
            self.bytes.clear();
            self.bytes.try_reserve_exact(wanted)?;
            self.bytes.resize(wanted, 0);
            self.start = at;
            if let Err(error) = self.file.read_at(&mut self.bytes, at) {
                self.bytes.clear();
                return match error.kind() {
                    io::ErrorKind::UnexpectedEof => Ok(None),
                    _ => Err(error),
                };
            }
        }
        let from = (at - self.start) as usize;
        Ok(self.bytes.get(from..from + length as usize))
    }

    /// The first whole frame at or after a place.
    pub(crate) fn next_frame(
        &mut self,
        segment: &Segment,
        from: u64,
    ) -> io::Result<Option<FoundFrame>> {
        let mut at = aligned(from);
        while let Some(bytes) = self.get(at, FRAME_HEADER as u64)? {
            let header = bytes
                .try_into()
                .ok()
                .and_then(|bytes| FrameHeader::read(bytes, segment, at));
            if let Some(header) = header
                && header.end(at) <= self.length
            {
                return Ok(Some(FoundFrame { at, header }));
            }
            let Some(next) = self.past_zeros(at)? else {
                self.zeros += self.length - at;
                return Ok(None);
            };
            self.zeros += next - at;
            at = next.max(at + 8);
        }
        Ok(None)
    }

    /// The first multiple of 8 from a place in memory on where there may be anything but zeros;
    /// `None` if there is nothing else to the end.
    fn past_zeros(&self, at: u64) -> io::Result<Option<u64>> {
        let from = self.bytes.get((at - self.start) as usize..);
        let mut words = from.unwrap_or_default().chunks_exact(8);
        let zeros = words.position(|word| word != [0; 8]);
        if let Some(zeros) = zeros {
            return Ok(Some(at + 8 * zeros as u64));
        }
        // To the end of what is in memory.
        let end = (self.start + self.bytes.len() as u64) & !7;
        let data = self.file.next_data(end)?;
        // A place that lies before is a medium's mistake.
        Ok(data.map(|data| (data & !7).max(end)))
    }

    /// Notes a frame, if its metadata is whole.
    fn add(&mut self, frame: &FoundFrame, to: &mut Scanned) -> io::Result<Result<(), String>> {
        let header = frame.header;
        let at = FrameHeader::metadata_at(frame.at);
        let Some(metadata) = self.get(at, header.metadata.into())? else {
            return Ok(Err("it ends too early".to_owned()));
        };
        if checksum(metadata) != header.metadata_checksum {
            return Ok(Err("its metadata is damaged".to_owned()));
        }
        match header.kind {
            Some(kind @ (FrameKind::Entry | FrameKind::Scratch)) => to.rows.push(Row {
                key: header.key,
                at: frame.at,
                kind,
                saved_at: header.saved_at,
            }),
            Some(FrameKind::Mark) => match cbor::from_bytes(metadata) {
                Ok(mark) => to.marks.push(mark),
                Err(why) => return Ok(Err(format!("its metadata can't be read: {why}"))),
            },
            // Also those that a later release may add.
            Some(FrameKind::Index | FrameKind::About | FrameKind::Uses) | None => {}
        }
        Ok(Ok(()))
    }

    /// What comes after the index of a sealed segment is no damage.
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
