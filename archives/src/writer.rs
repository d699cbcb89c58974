//! Appending to a segment.
//!
//! A save is acknowledged only after its bytes, and the name of a new segment,
//! are on the disk. If anything fails on the way the segment is abandoned: after
//! a failed sync nobody knows which of its bytes the disk has, and a second sync
//! may report success without writing them. The next save begins a new one.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use sde::{ArchiveError, Selection};

use crate::cbor::Encoded;
use crate::disk;
use crate::id::FileId;
use crate::index::{Item, Place};
use crate::segment::{FrameHeader, Kind, SEGMENT_HEADER, Segment, aligned};

/// How segments are called.
pub(crate) const EXTENSION: &str = "sde";

/// A segment that this process appends to.
pub(crate) struct Open {
    file: File,
    segment: Arc<Segment>,
    end: u64,
    /// Whether its name and header are on the disk.
    named: bool,
}

impl Open {
    /// Begins a segment. It is not yet durable.
    fn create(store: &Path, selection: Selection) -> Result<Self, ArchiveError> {
        let dir = store.join(selection.name());
        disk::make_private_dir(&dir)
            .map_err(|e| ArchiveError::io("making the directory", &dir, e))?;
        let id = FileId::new();
        let path = dir.join(format!("{}-{id}.{EXTENSION}", std::process::id()));
        let created = disk::create_private_file(&path);
        let file = created.map_err(|e| ArchiveError::io("creating", &path, e))?;
        let segment = Arc::new(Segment::new(path, id, selection));
        Ok(Self {
            file,
            segment,
            end: 0,
            named: false,
        })
    }
}

/// One save on its way. Dropped before [`commit`](Self::commit), it abandons its
/// segment.
pub(crate) struct Appender<'a> {
    slot: &'a mut Option<Open>,
    open: Open,
    /// What is not yet given to the system.
    buffer: Vec<u8>,
    items: Vec<Item>,
}

/// How much is gathered for one write.
const WRITE: usize = 1 << 20;

impl<'a> Appender<'a> {
    /// Goes on with the segment in the slot, or begins one.
    pub(crate) fn begin(
        slot: &'a mut Option<Open>,
        store: &Path,
        selection: Selection,
    ) -> Result<Self, ArchiveError> {
        let open = match slot.take() {
            Some(open) => open,
            None => Open::create(store, selection)?,
        };
        let mut appender = Self {
            slot,
            open,
            buffer: Vec::new(),
            items: Vec::new(),
        };
        if appender.open.end == 0 {
            let header = appender.open.segment.header();
            appender.buffer.extend_from_slice(&header);
            appender.open.end = SEGMENT_HEADER as u64;
        }
        Ok(appender)
    }

    /// The segment it appends to.
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.open.segment
    }

    /// Appends a frame; `item` makes what the index is to know of it.
    pub(crate) fn frame(
        &mut self,
        kind: Kind,
        metadata: &[u8],
        payloads: &[Encoded],
        item: impl FnOnce(Place) -> Item,
    ) -> Result<(), ArchiveError> {
        let at = self.open.end;
        let length = payloads.iter().map(Encoded::length).sum();
        let header = FrameHeader::new(kind, metadata, length).ok_or_else(|| {
            ArchiveError::Other(format!(
                "the metadata of an entry has {} bytes, more than a store can take",
                metadata.len()
            ))
        })?;
        self.put(&header.bytes(&self.open.segment, at))?;
        self.put(metadata)?;
        for piece in payloads.iter().flat_map(Encoded::slices) {
            self.put(piece)?;
        }
        let end = header.end(at);
        let padding = aligned(end) - end;
        self.put(&[0; 8][..padding as usize])?;
        self.open.end = aligned(end);
        self.items.push(item(Place {
            segment: Arc::clone(&self.open.segment),
            at,
        }));
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        if self.buffer.len() + bytes.len() <= WRITE {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        let written = self
            .open
            .file
            .write_all(&self.buffer)
            .and_then(|()| self.open.file.write_all(bytes));
        self.buffer.clear();
        written.map_err(|e| self.abandoned("writing to", e))
    }

    /// Makes everything durable; from here on it is saved.
    pub(crate) fn commit(mut self) -> Result<Vec<Item>, ArchiveError> {
        let written = self.open.file.write_all(&self.buffer);
        written.map_err(|e| self.abandoned("writing to", e))?;
        self.sync().map_err(|e| self.abandoned("syncing", e))?;
        self.open.named = true;
        *self.slot = Some(self.open);
        Ok(self.items)
    }

    fn sync(&self) -> io::Result<()> {
        if self.open.named {
            return self.open.file.sync_data();
        }
        self.open.file.sync_all()?;
        let dir = self.open.segment.path.parent();
        dir.map_or(Ok(()), disk::sync_dir)
    }

    fn abandoned(&self, doing: &'static str, error: io::Error) -> ArchiveError {
        let path = &self.open.segment.path;
        tracing::warn!(
            "{} is not written to any more after an error: {error}; the next save begins a new file",
            path.display()
        );
        ArchiveError::io(doing, path, error)
    }
}
