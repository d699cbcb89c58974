//! Reading a segment from end to end, to learn what is in it.
//!
//! A crash may leave a frame half written at the end of a segment; a disk may
//! damage any other. Each frame stands for itself, so what can't be read is passed
//! over and everything else is found: after a damaged header the next frame is
//! looked for at each multiple of 8, and its checksum says that it is one.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::cbor;
use crate::disk;
use crate::index::{EntryAt, Item, Place};
use crate::metadata::{EntryMetadata, RecordHead};
use crate::segment::{FRAME_HEADER, FrameHeader, Kind, SEGMENT_HEADER, Segment, aligned, checksum};

/// What was found in part of a segment.
pub(crate) struct Scanned {
    pub(crate) items: Vec<Item>,
    /// Where the next frame would begin: up to here nothing is left to read.
    pub(crate) end: u64,
    /// What is damaged before that, and how.
    pub(crate) damaged: Vec<(Range<u64>, String)>,
}

/// Reads the header of a segment; `None` if the file is too short to have one.
pub(crate) fn open(path: &Path) -> io::Result<Option<Result<Segment, String>>> {
    let file = disk::open_file(path)?;
    let mut header = [0; SEGMENT_HEADER];
    match disk::read_at(&file, &mut header, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(Some(Segment::from_header(path.to_owned(), &header))),
    }
}

/// Reads the frames of a segment from a place where one may begin.
pub(crate) fn scan(segment: &Arc<Segment>, from: u64) -> io::Result<Scanned> {
    let mut window = Window::open(&segment.path)?;
    let mut scanned = Scanned {
        items: Vec::new(),
        end: from,
        damaged: Vec::new(),
    };
    let mut at = from;
    while let Some(next) = window.next_frame(segment, at)? {
        if next.at > at {
            let why = "it holds no frame".to_owned();
            scanned.damaged.push((at..next.at, why));
        }
        let end = aligned(next.header.end(next.at));
        match window.item(segment, &next)? {
            Ok(item) => scanned.items.extend(item),
            Err(why) => scanned.damaged.push((next.at..end, why)),
        }
        at = end;
        scanned.end = end;
    }
    Ok(scanned)
}

/// A frame that is there in its whole length.
struct Frame {
    at: u64,
    header: FrameHeader,
}

/// A file of which a part is in memory.
struct Window {
    file: File,
    length: u64,
    start: u64,
    bytes: Vec<u8>,
}

/// How much is read at once.
const READ: u64 = 1 << 16;

impl Window {
    fn open(path: &Path) -> io::Result<Self> {
        let file = disk::open_file(path)?;
        Ok(Self {
            length: file.metadata()?.len(),
            file,
            start: 0,
            bytes: Vec::new(),
        })
    }

    /// Bytes of the file; `None` if it is not that long.
    fn get(&mut self, at: u64, length: u64) -> io::Result<Option<&[u8]>> {
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
            if let Err(error) = disk::read_at(&self.file, &mut self.bytes, at) {
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
    fn next_frame(&mut self, segment: &Segment, from: u64) -> io::Result<Option<Frame>> {
        let mut at = aligned(from);
        while let Some(bytes) = self.get(at, FRAME_HEADER as u64)? {
            let header = bytes
                .try_into()
                .ok()
                .and_then(|bytes| FrameHeader::read(bytes, segment, at));
            if let Some(header) = header
                && header.end(at) <= self.length
            {
                return Ok(Some(Frame { at, header }));
            }
            at += 8;
        }
        Ok(None)
    }

    /// What a frame says; `None` if it is of a kind that is not known.
    fn item(
        &mut self,
        segment: &Arc<Segment>,
        frame: &Frame,
    ) -> io::Result<Result<Option<Item>, String>> {
        let header = frame.header;
        let at = FrameHeader::metadata_at(frame.at);
        let Some(metadata) = self.get(at, header.metadata.into())? else {
            return Ok(Err("it ends too early".to_owned()));
        };
        if checksum(metadata) != header.metadata_checksum {
            return Ok(Err("its metadata is damaged".to_owned()));
        }
        let place = Place {
            segment: Arc::clone(segment),
            at: frame.at,
        };
        let Some(kind) = header.kind else {
            return Ok(Ok(None));
        };
        Ok(item(kind, metadata, place).map(Some))
    }
}

fn item(kind: Kind, metadata: &[u8], place: Place) -> Result<Item, String> {
    let unreadable = |why: String| format!("its metadata can't be read: {why}");
    match kind {
        Kind::Entry => {
            let entry: EntryMetadata<RecordHead> =
                cbor::from_bytes(metadata).map_err(unreadable)?;
            let found = EntryAt::new(place, &entry.record, &entry);
            Ok(Item::Entry(entry.record.key, found))
        }
        Kind::Scratch => {
            let scratch = cbor::from_bytes(metadata).map_err(unreadable)?;
            Ok(Item::scratch(place, &scratch))
        }
        Kind::Mark => cbor::from_bytes(metadata)
            .map(Item::Mark)
            .map_err(unreadable),
    }
}
