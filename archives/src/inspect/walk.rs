//! From one end of a segment to the other.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use sde::{ArchiveError, Key, Record};

use super::item::{AboutWriter, Damage, Entry, EntryUses, Item, Saved, Scratch};
use super::payload::Payload;
use super::segments::SegmentFile;
use crate::catalog::scan::{FoundFrame, Window};
use crate::catalog::table::{TRAILER, Table};
use crate::cbor;
use crate::format::metadata::{About, EntryMetadata, PayloadMetadata, ScratchMetadata};
use crate::format::segment::{
    FRAME_HEADER, FRAME_MAGIC, FrameHeader, FrameKind, SEGMENT_HEADER, Segment, aligned, checksum,
};
use crate::store::uses::UsesMetadata;

/// What a walk found of the segment as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walked {
    /// How many frames are whole, whatever they hold.
    pub frames: u64,
    /// Up to where frames reach, and the index after them.
    pub end: u64,
    /// Whether it ends with an index that can be read: its writer has come to its end.
    pub sealed: bool,
    /// Bytes at the end that are no frame: a save was cut short there, or goes on.
    pub torn: u64,
    /// Whether those bytes are what a writer leaves that is killed while it writes: the beginning of
    /// a header, of a frame or of an index, or zeros. Nobody was told that they are saved, unless a
    /// manifest vouches for them.
    pub unfinished: bool,
}

impl SegmentFile {
    /// Reads the segment from end to end, metadata only, and gives each thing in it to `each`,
    /// damage too, in the order of their places. Values are not read. A segment of
    /// [another format](Self::other_format) gives nothing.
    ///
    /// The time is that of reading the metadata; memory that of the largest frame's metadata,
    /// and 40 bytes for each frame.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn walk(&self, each: impl FnMut(Item)) -> Result<Walked, ArchiveError> {
        let walked = match &self.header {
            Ok(segment) => Walk::new(self, segment, each).and_then(Walk::run),
            Err(_) if self.is_barely_begun() => {
                return Ok(Walked {
                    torn: self.length(),
                    unfinished: true,
                    ..Walked::default()
                });
            }
            // A later release reads it.
            Err(_) if self.other_format.is_some() => return Ok(Walked::default()),
            Err(why) => return Ok(self.unreadable(why, each)),
        };
        match walked {
            // It was removed since: a compaction has replaced it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Walked::default()),
            walked => walked.map_err(|error| ArchiveError::io("reading", &self.file, error)),
        }
    }

    fn unreadable(&self, why: &str, mut each: impl FnMut(Item)) -> Walked {
        each(Item::Damage(Damage {
            path: self.path.clone(),
            place: 0..self.length(),
            why: why.to_owned(),
            key: None,
        }));
        Walked::default()
    }
}

struct Walk<'a, E> {
    of: &'a SegmentFile,
    segment: &'a Arc<Segment>,
    window: Window,
    each: E,
    walked: Walked,
    /// The frames that the index should have.
    found: HashSet<(Key, u64)>,
    index_at: Option<u64>,
}

impl<'a, E: FnMut(Item)> Walk<'a, E> {
    fn new(of: &'a SegmentFile, segment: &'a Arc<Segment>, each: E) -> io::Result<Self> {
        Ok(Self {
            window: Window::open(&*of.medium, &of.file)?,
            of,
            segment,
            each,
            walked: Walked::default(),
            found: HashSet::new(),
            index_at: None,
        })
    }

    fn run(mut self) -> io::Result<Walked> {
        let mut at = SEGMENT_HEADER as u64;
        while let Some(frame) = self.window.next_frame(self.segment, at)? {
            if frame.at > at {
                self.damage(at, frame.at, "no frame can be read there", None);
            }
            at = aligned(frame.header.end(frame.at));
            self.frame(&frame, at)?;
        }
        self.walked.end = at.min(self.window.length);
        self.ending()?;
        Ok(self.walked)
    }

    fn frame(&mut self, frame: &FoundFrame, end: u64) -> io::Result<()> {
        let header = frame.header;
        let key = (*header.key.as_bytes() != [0; 32]).then_some(header.key);
        match self
            .metadata(frame)?
            .and_then(|metadata| self.item(frame, &metadata))
        {
            Ok(item) => {
                self.walked.frames += 1;
                if matches!(header.kind, Some(FrameKind::Entry | FrameKind::Scratch)) {
                    self.found.insert((header.key, frame.at));
                }
                item.into_iter().for_each(&mut self.each);
            }
            Err(why) => self.damage(frame.at, end, &why, key),
        }
        Ok(())
    }

    fn metadata(&mut self, frame: &FoundFrame) -> io::Result<Result<Vec<u8>, String>> {
        let at = FrameHeader::metadata_at(frame.at);
        let Some(metadata) = self.window.get(at, frame.header.metadata.into())? else {
            return Ok(Err("it ends too early".to_owned()));
        };
        Ok(match checksum(metadata) == frame.header.metadata_checksum {
            true => Ok(metadata.to_vec()),
            false => Err("its metadata is damaged".to_owned()),
        })
    }

    /// What a frame holds; `None` for an index, which is looked at in the end.
    fn item(&mut self, frame: &FoundFrame, metadata: &[u8]) -> Result<Option<Item>, String> {
        let cannot = |why: String| format!("its metadata can't be read: {why}");
        let header = &frame.header;
        let place = frame.at..header.end(frame.at);
        Ok(Some(match header.kind {
            Some(FrameKind::Entry) => {
                let read = cbor::from_bytes::<EntryMetadata<Record>>(metadata).map_err(cannot)?;
                if read.record.key != header.key {
                    return Err("its record is of another key".to_owned());
                }
                let results = read.results.into_iter().map(|result| {
                    let payload = result.payload.map(|payload| self.payload(frame, payload));
                    Ok(Saved {
                        payload: payload.transpose()?,
                        name: result.name,
                        tags: result.tags,
                    })
                });
                Item::Entry(Box::new(Entry {
                    results: results.collect::<Result<_, String>>()?,
                    place,
                    saved_at: header.saved_at,
                    record: read.record,
                }))
            }
            Some(FrameKind::Scratch) => {
                let read = cbor::from_bytes::<ScratchMetadata>(metadata).map_err(cannot)?;
                Item::Scratch(Scratch {
                    place,
                    saved_at: header.saved_at,
                    key: header.key,
                    payload: self.payload(frame, read.payload)?,
                    app: read.app,
                })
            }
            Some(FrameKind::Mark) => Item::Mark {
                at: frame.at,
                mark: cbor::from_bytes(metadata).map_err(cannot)?,
            },
            Some(FrameKind::About) => {
                Item::About(about(cbor::from_bytes(metadata).map_err(cannot)?))
            }
            Some(FrameKind::Index) => {
                self.index_at = Some(frame.at);
                return Ok(None);
            }
            Some(FrameKind::Uses) => Item::Uses {
                at: frame.at,
                uses: uses(cbor::from_bytes(metadata).map_err(cannot)?),
            },
            None => Item::Other { at: frame.at },
        }))
    }

    fn payload(&self, frame: &FoundFrame, metadata: PayloadMetadata) -> Result<Payload, String> {
        let start = frame.header.payloads_at(frame.at);
        let end = frame.header.end(frame.at);
        let at = start.checked_add(metadata.at);
        let fits = |at: &u64| {
            let last = at.checked_add(metadata.length);
            last.is_some_and(|last| last <= end)
        };
        let at = at.filter(fits).ok_or("a value lies outside of its frame")?;
        Ok(Payload {
            medium: Arc::clone(&self.of.medium),
            file: self.of.file.clone(),
            path: self.of.path.clone(),
            place: at..at + metadata.length,
            checksum: metadata.checksum,
            type_name: metadata.type_name,
        })
    }

    /// Whether the segment is sealed, and what is left over.
    fn ending(&mut self) -> io::Result<()> {
        let length = self.window.length;
        let left = length.saturating_sub(self.walked.end);
        let table = match self.index_at {
            Some(_) => Table::read(self.segment, &*self.window.file, length)?,
            None => None,
        };
        let Some(table) = table else {
            let in_trailer = left < TRAILER as u64;
            match self.index_at {
                // It says nothing that the frames do not.
                Some(at) if !in_trailer => {
                    let why = "its index can't be read; its frames are read instead";
                    self.walked.end = length;
                    self.damage(at, length, why, None);
                }
                begun => {
                    self.walked.torn = left;
                    self.walked.unfinished = begun.is_some() || self.is_begun_frame(left)?;
                }
            }
            return Ok(());
        };
        self.walked.sealed = true;
        self.walked.torn = left.saturating_sub(TRAILER as u64);
        self.walked.end = length - self.walked.torn;
        let lacks = |(key, at): &&(Key, u64)| !table.find(key).any(|row| row.at == *at);
        if let Some((key, at)) = self.found.iter().find(lacks).copied() {
            self.damage(at, at, "its index lacks this frame", Some(key));
        }
        Ok(())
    }

    /// Whether the bytes that are left are the beginning of a frame, or zeros: a file may be made
    /// longer before what it is to hold is written.
    fn is_begun_frame(&mut self, left: u64) -> io::Result<bool> {
        let at = self.walked.end;
        let first = left.min(FRAME_HEADER as u64);
        let Some(bytes) = self.window.get(at, first)? else {
            return Ok(false);
        };
        if let Ok(header) = bytes.try_into() {
            // It was found to be no whole frame.
            if FrameHeader::read(header, self.segment, at).is_some() {
                return Ok(true);
            }
        } else if bytes.starts_with(FRAME_MAGIC) || FRAME_MAGIC.starts_with(bytes) {
            return Ok(true);
        }
        self.only_zeros(at)
    }

    fn only_zeros(&mut self, from: u64) -> io::Result<bool> {
        let mut at = from;
        while at < self.window.length {
            let length = (self.window.length - at).min(1 << 16);
            match self.window.get(at, length)? {
                Some(bytes) if bytes.iter().all(|byte| *byte == 0) => at += length,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn damage(&mut self, from: u64, to: u64, why: &str, key: Option<Key>) {
        (self.each)(Item::Damage(Damage {
            path: self.of.path.clone(),
            place: from..to,
            why: why.to_owned(),
            key,
        }));
    }
}

fn uses(metadata: UsesMetadata) -> Vec<EntryUses> {
    let uses = metadata.uses.into_iter();
    uses.map(|(key, one)| EntryUses {
        key,
        count: one.count,
        last: one.last,
    })
    .collect()
}

fn about(about: About) -> AboutWriter {
    AboutWriter {
        host: about.host,
        process: about.process,
        program: about.program,
        target: about.target,
        sde: about.sde,
    }
}
