//! Copies of short entries from other stores, for when these are gone.
//!
//! The frames are copied as they are, with the times and numbers of the computation: both stores have one computation.

use std::collections::HashSet;

use sde::Key;
use sde::archiver::ArchiveError;
use sde::record::RunId;

use crate::cbor::Encoded;
use crate::format::class::Part;
use crate::format::frame::FrameKind;
use crate::format::metadata::split_entry;
use crate::locks::lock;
use crate::read::frame::{EntryFrame, Frame};
use crate::store::DirStore;
use crate::writer::encode::IN_BODY;
use crate::writer::frame::{Body, EncodedProvenance, NewFrame, Payload};

/// The most entries that wait to be copied: a program that saves nothing would note them without end.
pub(super) const MOST: usize = 1 << 16;

/// Copies are written in pieces of about this many bytes.
const PIECE: u64 = 8 << 20;

impl DirStore {
    /// Copies the short entries that other stores gave, as they are. Gives whether any was written.
    ///
    /// An entry that can't be read any more, or not be written on a full disk, is not copied.
    pub(crate) fn copy_given(&self) -> Result<bool, ArchiveError> {
        let Some(also) = self.0.also.get() else {
            return Ok(false);
        };
        let wanted = std::mem::take(&mut *lock(&also.to_copy));
        let mut wanted = wanted.into_iter().peekable();
        let mut has_written = false;
        while wanted.peek().is_some() {
            let (mut frames, mut length) = (Vec::new(), 0);
            while length < PIECE
                && let Some((key, (number, run))) = wanted.next()
            {
                let copied = self.frames_of(&also.stores[number], &key, run);
                let copied = copied.unwrap_or_default();
                length += copied.iter().map(NewFrame::bytes).sum::<u64>();
                frames.extend(copied);
            }
            if frames.is_empty() {
                continue;
            }
            match self.0.writer.begin().finish(frames) {
                Err(error) if error.is_full() => break,
                written => written?,
            }
            has_written = true;
        }
        Ok(has_written)
    }

    /// The frames of a computation in another store, and those of its output files; `None` if they are long, or
    /// can't be read.
    fn frames_of(&self, from: &Self, key: &Key, run: RunId) -> Option<Vec<NewFrame>> {
        // Another process may have copied it; and beside an own computation, such as one that was marked, it may not
        // count.
        if !self.0.catalog.known(|index| index.entries(key).is_empty()) {
            return None;
        }
        // A compaction there may have moved it since.
        from.look_here(key).ok()??;
        let catalog = &from.0.catalog;
        let (mut frames, mut contents) = (Vec::<NewFrame>::new(), HashSet::new());
        // A longer value would be in a payload, not in the body.
        let mut left = IN_BODY;
        for known in catalog.known(|index| index.entries(key)) {
            let Ok(entry) = EntryFrame::read(catalog, &known.place) else {
                continue;
            };
            let header = entry.frame.header;
            if header.key != *key || entry.body.run(&entry.provenance) != run {
                continue;
            }
            if !entry.frame.payload().is_empty() {
                return None;
            }
            let (elements, provenance, rest) = split_entry(entry.frame.content())?;
            let provenance = match provenance {
                Ok(id) => catalog.provenance_bytes(&id).ok()?,
                Err(bytes) => bytes.to_vec(),
            };
            let values = entry.body.values.iter().flatten();
            let values = values.map(|place| place.length()).sum();
            let (app, class) = (&entry.provenance.app, header.class());
            let accepted = self.0.room.retention.accepts(app, class, values);
            let body = Body::Entry {
                elements,
                provenance: EncodedProvenance::new(provenance),
                rest: rest.to_vec(),
            };
            left = left.checked_sub(values)?;
            if accepted {
                contents.extend(entry.body.contents());
                frames.push(NewFrame::new(Part::Entries, header, body).ok()?);
            }
        }
        for content in contents {
            if self.copy_of(&content).is_none() {
                frames.insert(0, content_frame(from, &content, &mut left)?);
            }
        }
        Some(frames)
    }
}

/// The frame of a content with at most `left` bytes, which become fewer. Its bytes are in memory: a write must not fail
/// because another store is gone.
fn content_frame(from: &DirStore, key: &Key, left: &mut u64) -> Option<NewFrame> {
    let catalog = &from.0.catalog;
    let copies = catalog.known(|index| index.contents(key));
    copies.into_iter().find_map(|copy| {
        let frame = Frame::read(&catalog.vfs, &copy.place, FrameKind::Content).ok()?;
        let content = frame.file_content();
        if frame.header.key != *key {
            return None;
        }
        *left = left.checked_sub(content.length())?;
        let bytes = Payload::Encoded(vec![Encoded::of_bytes(content.read().ok()?)]);
        let (header, body) = (frame.header, Body::Bytes(Vec::new()));
        NewFrame::with_payload(Part::Entries, header, body, bytes).ok()
    })
}
