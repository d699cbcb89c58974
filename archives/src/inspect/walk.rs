//! Walks through a segment from end to end.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use sde::Key;
use sde::archiver::ArchiveError;
use sde::key::Digest;

use super::item::{Content, Entry, EntryUses, Item, SavedJournal, SavedState};
use super::listed::Listed;
use super::segments::SegmentFile;
use crate::catalog::scan::{FoundFrame, SegmentReader, Stretch};
use crate::cbor::metadata::from_bytes;
use crate::format::about::JournalBody;
use crate::format::frame::{FRAME_HEADER, FRAME_MAGIC, FrameKind};
use crate::format::index_block::{IndexBlock, Row, TRAILER};
use crate::format::metadata::{Provenance, ProvenanceId};
use crate::format::segment::{SEGMENT_HEADER, Segment, checksum};
use crate::format::uses::{self, Use};
use crate::read::error::{Damage, ReadError};
use crate::read::frame::{EntryFrame, Frame, provenance_of, scratch_body};
use crate::vfs::VfsFile;

/// A summary of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walked {
    /// The number of whole frames of any kind.
    pub frames: u64,
    /// The end of the frames, and of the index after them.
    pub end: u64,
    /// Whether it ends with a readable index: its writer has sealed it.
    pub sealed: bool,
    /// The number of bytes at the end that are no frame: a save was cut short there, or goes on.
    pub torn: u64,
    /// Whether those bytes are what a writer leaves when it is killed: part of a header, frame or index, or zeros.
    /// They were never acknowledged, unless a manifest lists them.
    pub unfinished: bool,
    /// Whether the file was removed since the listing. Its frames that count are in another.
    pub gone: bool,
}

const NO_FRAME: &str = "no frame can be read there";

type Wanted<'a> = dyn FnMut(&Listed) -> bool + 'a;

impl SegmentFile {
    /// Reads the segment's metadata from end to end, and passes each item to `each`, damage too, in order. Values
    /// are not read. A segment of [another format](Self::other_format) yields nothing.
    ///
    /// It takes the time to read the metadata, and memory for the largest frame's metadata, the provenances, and
    /// some 20 bytes for each frame.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn walk(&self, each: impl FnMut(Item)) -> Result<Walked, ArchiveError> {
        self.walk_some(None, each)
    }

    /// Passes the wanted frames to a function, as [`walk`](Self::walk) does with all. If the segment has an index,
    /// other frames are not read, and damage to them is not reported.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn walk_wanted(
        &self,
        mut wanted: impl FnMut(&Listed) -> bool,
        each: impl FnMut(Item),
    ) -> Result<Walked, ArchiveError> {
        self.walk_some(Some(&mut wanted), each)
    }

    fn walk_some(
        &self,
        wanted: Option<&mut Wanted<'_>>,
        each: impl FnMut(Item),
    ) -> Result<Walked, ArchiveError> {
        let walked = match &self.header {
            Ok(segment) => Walk::run(self, segment, wanted, each),
            Err(_) if self.is_barely_begun => {
                return Ok(Walked {
                    torn: self.length(),
                    unfinished: true,
                    ..Walked::default()
                });
            }
            // A later release can read it.
            Err(_) if self.other_format.is_some() => return Ok(Walked::default()),
            Err(why) => return Ok(self.unreadable(why, each)),
        };
        match walked {
            // A compaction has replaced and removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Walked {
                gone: true,
                ..Walked::default()
            }),
            walked => walked.map_err(|error| ArchiveError::io("reading", &*self.file, error)),
        }
    }

    fn unreadable(&self, why: &str, mut each: impl FnMut(Item)) -> Walked {
        each(Item::Damage(Damage::new(
            &*self.path,
            0..self.length(),
            why,
        )));
        Walked::default()
    }
}

struct Walk<'a, E> {
    of: &'a SegmentFile,
    segment: &'a Arc<Segment>,
    file: Arc<dyn VfsFile>,
    each: E,
    walked: Walked,
    /// The frames not yet found in the index.
    found: HashSet<u64>,
    provenances: RefCell<HashMap<ProvenanceId, Arc<Provenance>>>,
    index_at: Option<u64>,
    /// The index, when only wanted frames are read.
    block: Option<IndexBlock>,
}

impl<'a, E: FnMut(Item)> Walk<'a, E> {
    fn run(
        of: &'a SegmentFile,
        segment: &'a Arc<Segment>,
        wanted: Option<&mut Wanted<'_>>,
        each: E,
    ) -> io::Result<Walked> {
        let mut reader = SegmentReader::open(&*of.inspection.vfs, &of.file)?;
        let mut walk = Self {
            file: Arc::clone(&reader.file),
            of,
            segment,
            each,
            walked: Walked::default(),
            found: HashSet::new(),
            provenances: RefCell::default(),
            index_at: None,
            block: None,
        };
        match wanted {
            Some(wanted) => {
                walk.block = IndexBlock::read(segment, &*reader.file, reader.length)?;
                match walk.block {
                    Some(_) => walk.by_index(&mut reader, wanted)?,
                    None => walk.each_stretch(&mut reader, wanted)?,
                }
            }
            None => walk.each_stretch(&mut reader, &mut |_| true)?,
        }
        Ok(walk.walked)
    }

    fn by_index(&mut self, reader: &mut SegmentReader, wanted: &mut Wanted<'_>) -> io::Result<()> {
        let rows = self.block.iter().flat_map(|block| block.rows.iter());
        let mut rows: Vec<Row> = rows.filter(|row| wanted(&Listed(*row))).collect();
        rows.sort_unstable_by_key(Row::at);
        for row in rows {
            match reader.frame_at(self.segment, row.at())? {
                Some(frame) if Row::new(&frame.header, frame.at) == row => {
                    let place = frame.at + FRAME_HEADER as u64;
                    let body = reader.get(place, frame.header.body.into())?;
                    self.frame(&frame, body.unwrap_or_default());
                }
                _ => self.damage(row.at()..row.at(), NO_FRAME, None),
            }
        }
        self.walked.end = reader.length;
        self.walked.sealed = true;
        Ok(())
    }

    fn each_stretch(
        &mut self,
        reader: &mut SegmentReader,
        wanted: &mut Wanted<'_>,
    ) -> io::Result<()> {
        let end = reader.each(self.segment, SEGMENT_HEADER as u64, |stretch| {
            match stretch {
                Stretch::Gap(place, key) => {
                    let key = key.filter(|key| *key.as_bytes() != [0; 32]);
                    self.damage(place, NO_FRAME, key);
                }
                Stretch::Frame(frame, body) => {
                    // Wanted entries may need any provenance.
                    let is_shared = frame.header.kind() == Some(FrameKind::Provenance);
                    if is_shared || wanted(&Listed(Row::new(&frame.header, frame.at))) {
                        self.frame(&frame, body);
                    }
                }
            }
            Ok(())
        })?;
        self.walked.end = end.min(reader.length);
        self.ending(reader)
    }

    fn frame(&mut self, frame: &FoundFrame, body: &[u8]) {
        let header = frame.header;
        match self.item(frame, body) {
            Ok(item) => {
                self.walked.frames += 1;
                if !matches!(header.kind(), Some(FrameKind::About | FrameKind::Index)) {
                    self.found.insert(frame.at);
                }
                item.into_iter().for_each(&mut self.each);
            }
            Err(why) => {
                let key = (*header.key.as_bytes() != [0; 32]).then_some(header.key);
                self.damage(frame.at..frame.end, &why, key);
            }
        }
    }

    /// The item in a frame; `None` for an index, which is checked at the end.
    fn item(&mut self, frame: &FoundFrame, body: &[u8]) -> Result<Option<Item>, String> {
        let cannot = |why: String| format!("its body can't be read: {why}");
        let header = &frame.header;
        let content = header.content(body);
        Ok(Some(match header.kind() {
            Some(FrameKind::Entry) => Item::Entry(Box::new(self.entry(frame, body)?)),
            Some(FrameKind::Scratch) => Item::Scratch(self.scratch(frame, body)?),
            Some(FrameKind::Mark) => Item::Mark {
                at: frame.at,
                mark: from_bytes(content).map_err(cannot)?.0,
            },
            Some(FrameKind::About) => Item::About(from_bytes(content).map_err(cannot)?.0),
            Some(FrameKind::Index) => {
                self.index_at = Some(frame.at);
                return Ok(None);
            }
            Some(FrameKind::Uses) => Item::Uses {
                at: frame.at,
                uses: uses(uses::read(content).map_err(cannot)?),
            },
            Some(FrameKind::Content) => Item::Content(self.file_content(frame, body)),
            Some(FrameKind::Provenance) => {
                let provenance = Provenance::read(content).map_err(cannot)?;
                let mut known = self.provenances.borrow_mut();
                known.insert(checksum(content), Arc::new(provenance));
                Item::Other { at: frame.at }
            }
            Some(FrameKind::Journal) => {
                let body: JournalBody = from_bytes(content).map_err(cannot)?.0;
                Item::Journal(Box::new(SavedJournal {
                    at: frame.at,
                    saved_at: header.saved_at,
                    about: body.about,
                    journal: body.journal,
                    capacity: body.capacity,
                }))
            }
            None => Item::Other { at: frame.at },
        }))
    }

    fn entry(&self, frame: &FoundFrame, body: &[u8]) -> Result<Entry, String> {
        let entry = EntryFrame::of(self.as_read(frame, body), |id| self.provenance(id));
        Entry::of(&entry.map_err(why)?).map_err(why)
    }

    fn provenance(&self, id: &ProvenanceId) -> Result<Arc<Provenance>, ReadError> {
        if let Some(known) = self.provenances.borrow().get(id) {
            return Ok(Arc::clone(known));
        }
        let found = match self.in_block(id) {
            Some(provenance) => Arc::new(provenance),
            None => self.of.inspection.catalog().provenance(id, self.segment)?,
        };
        let mut known = self.provenances.borrow_mut();
        Ok(Arc::clone(known.entry(*id).or_insert(found)))
    }

    /// A provenance of which this segment has a whole copy.
    fn in_block(&self, id: &ProvenanceId) -> Option<Provenance> {
        let rows = &self.block.as_ref()?.rows;
        provenance_of(&*self.file, self.segment, rows, id)
    }

    fn file_content(&self, frame: &FoundFrame, body: &[u8]) -> Content {
        Content {
            place: frame.at..frame.end,
            saved_at: frame.header.saved_at,
            digest: Digest::from_bytes(*frame.header.key.as_bytes()),
            payload: self.as_read(frame, body).file_content(),
        }
    }

    fn scratch(&self, frame: &FoundFrame, body: &[u8]) -> Result<SavedState, String> {
        let (scratch, payload) = scratch_body(&self.as_read(frame, body)).map_err(why)?;
        Ok(SavedState {
            place: frame.at..frame.end,
            saved_at: frame.header.saved_at,
            key: frame.header.key,
            payload,
            app: scratch.app.to_string(),
        })
    }

    fn as_read(&self, frame: &FoundFrame, body: &[u8]) -> Frame<'_> {
        Frame {
            vfs: &self.of.inspection.vfs,
            segment: self.segment,
            at: frame.at,
            header: frame.header,
            body: body.to_vec(),
        }
    }

    /// Checks the end of the segment: index, trailer, and bytes left over.
    fn ending(&mut self, reader: &mut SegmentReader) -> io::Result<()> {
        let length = reader.length;
        let left = length.saturating_sub(self.walked.end);
        let block = match self.index_at {
            Some(_) => IndexBlock::read(self.segment, &*self.file, length)?,
            None => None,
        };
        let Some(block) = block else {
            let in_trailer = left < TRAILER as u64;
            match self.index_at {
                // The index only repeats facts of the frames.
                Some(at) if !in_trailer => {
                    let why = "its index can't be read; its frames are read instead";
                    self.walked.end = length;
                    self.damage(at..length, why, None);
                }
                begun => {
                    self.walked.torn = left;
                    self.walked.unfinished =
                        begun.is_some() || self.is_begun_frame(reader, left)?;
                }
            }
            return Ok(());
        };
        self.walked.sealed = true;
        self.walked.torn = left.saturating_sub(TRAILER as u64);
        self.walked.end = length - self.walked.torn;
        block.rows.iter().for_each(|row| {
            self.found.remove(&row.at());
        });
        if let Some(at) = self.found.iter().next().copied() {
            self.damage(at..at, "its index lacks this frame", None);
        }
        Ok(())
    }

    /// Whether the bytes left over are part of a frame, or zeros: a file may get its length before its contents.
    fn is_begun_frame(&self, reader: &mut SegmentReader, left: u64) -> io::Result<bool> {
        let at = self.walked.end;
        let first = left.min(FRAME_HEADER as u64);
        let Some(bytes) = reader.get(at, first)? else {
            return Ok(false);
        };
        // A frame here is not whole, so it was only begun.
        if bytes.starts_with(FRAME_MAGIC) || FRAME_MAGIC.starts_with(bytes) {
            return Ok(true);
        }
        Ok(reader.next_data(at)?.is_none())
    }

    fn damage(&mut self, place: Range<u64>, why: &str, key: Option<Key>) {
        (self.each)(Item::Damage(Damage {
            path: self.of.path.to_string(),
            place,
            why: why.to_owned(),
            key,
        }));
    }
}

fn why(error: ReadError) -> String {
    match error {
        ReadError::Damaged(why) => why,
        other => ArchiveError::from(other).to_string(),
    }
}

fn uses(read: Vec<(u64, Use)>) -> Vec<EntryUses> {
    let uses = read.into_iter();
    uses.map(|(prefix, one)| EntryUses {
        prefix,
        count: one.count,
        last: one.last,
    })
    .collect()
}
