//! Appending to the segments of one class.
//!
//! A save is acknowledged only after its bytes, and the name of a new segment,
//! are on the medium. If anything fails on the way the segment is abandoned: after
//! a failed sync nobody knows which of its bytes are there, and a second sync
//! may report success without writing them. The next save begins a new one. One that a
//! write failed on before anything in it was durable holds nothing that anybody was told of: it is
//! removed, or a full disk would fill with them.
//!
//! A segment has one writer. Who finds that it is not as long as he made it, or that he is
//! a copy of the process that began it, begins one of his own.
//!
//! A segment that has grown long is sealed with an [index](crate::catalog::table), and so is the
//! last one when its writer ends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::{ArchiveError, Mark};

use crate::catalog::table::{Row, Table};
use crate::cbor;
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::format::metadata::About;
use crate::format::segment::{FrameKind, SEGMENT_HEADER, Segment, aligned};
use crate::store::directory::make_folder;
use crate::vfs::{Vfs, VfsFile};
use crate::writer::frame::{NewFrame, Written};

/// How segments are called.
pub(crate) const EXTENSION: &str = "sde";

/// What is written at once, if it is that much.
const WRITE: usize = 1 << 20;
/// What fails when bytes can't be given to the medium.
const WRITING: &str = "writing to";
/// A payload of this size is written from where it lies.
const DIRECTLY: usize = 1 << 16;

/// Where and how to write.
pub(crate) struct Ground {
    pub(crate) medium: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    /// This opening of the store.
    pub(crate) writer: UniqueId,
    /// A segment that is as long is sealed.
    pub(crate) segment_size: u64,
}

/// The writer of one class.
pub(crate) struct Lane {
    class: Class,
    open: Option<Open>,
    /// How many segments were abandoned.
    abandoned: u64,
    /// Those that have no index, and up to where they are durable.
    ended: Vec<(Arc<Segment>, u64)>,
}

/// A segment that is being written.
struct Open {
    file: Box<dyn VfsFile>,
    segment: Arc<Segment>,
    /// The process that began it: after a fork two have it open.
    process: u32,
    end: u64,
    /// What is not yet given to the medium.
    buffer: Vec<u8>,
    /// Whether its name is on the medium.
    named: bool,
    /// Whether all that was given to the medium is on it.
    synced: bool,
    /// Up to where it is.
    durable: u64,
    rows: Vec<Row>,
    marks: Vec<Mark>,
}

impl Lane {
    pub(crate) fn new(class: Class) -> Self {
        Self {
            class,
            open: None,
            abandoned: 0,
            ended: Vec::new(),
        }
    }

    /// Counts the segments that were abandoned: what was put before and not synced is lost
    /// if this has changed.
    pub(crate) fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// Leaves all segments: their files are gone.
    pub(crate) fn forget(&mut self) {
        self.abandoned += u64::from(self.open.take().is_some());
        self.ended.clear();
    }

    /// Forgets segments that have no index and are not written to any more.
    pub(crate) fn let_go(&mut self, goes: impl Fn(&UniqueId) -> bool) {
        self.ended.retain(|(segment, _)| !goes(&segment.id));
    }

    /// The segments that have no index, and how much of each is durable: also of those that were
    /// abandoned, where no more is to be relied on, whatever they have.
    pub(crate) fn durable(&self) -> impl Iterator<Item = (&Arc<Segment>, u64)> {
        let open = self.open.iter().map(|open| (&open.segment, open.durable));
        self.ended().chain(open)
    }

    /// Those of them that are not written to any more.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (&Arc<Segment>, u64)> {
        self.ended
            .iter()
            .map(|(segment, length)| (segment, *length))
    }

    /// How long the segment is that is being written.
    pub(crate) fn length(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.end)
    }

    /// Appends a frame. It is not durable yet.
    pub(crate) fn put(
        &mut self,
        frame: &NewFrame,
        ground: &Ground,
    ) -> Result<Written, ArchiveError> {
        self.leave_to_parent();
        if self.open.is_none() {
            self.open = Some(Open::begin(self.class, ground)?);
        }
        self.on_open(WRITING, ground, |open| open.put(frame))
    }

    /// Makes everything durable that was put.
    pub(crate) fn sync(&mut self, ground: &Ground) -> Result<(), ArchiveError> {
        self.leave_to_parent();
        if self.open.as_ref().is_none_or(Open::is_durable) {
            return Ok(());
        }
        self.on_open(WRITING, ground, Open::flush)?;
        self.on_open("syncing", ground, |open| open.sync(ground))
    }

    /// Seals the segment if it is as long as this; gives its table.
    pub(crate) fn seal(&mut self, length: u64) -> Option<Table> {
        self.leave_to_parent();
        let mut open = self.open.take_if(|open| open.end >= length)?;
        match open.seal() {
            Ok(table) => Some(table),
            Err(error) => {
                // Its frames are on the medium: only the index is not.
                let path = open.segment.path.display();
                sde::warning!("{path} has no index, it is read from end to end: {error}");
                self.ended.push((open.segment, open.durable));
                None
            }
        }
    }

    /// In a child after a fork, what the parent was writing stays his.
    fn leave_to_parent(&mut self) {
        let own = std::process::id();
        if let Some(open) = self.open.take_if(|open| open.process != own) {
            // What is in its buffer is written by the parent, or by nobody.
            self.abandoned += 1;
            self.ended.push((open.segment, open.durable));
        }
    }

    fn on_open<T>(
        &mut self,
        doing: &'static str,
        ground: &Ground,
        job: impl FnOnce(&mut Open) -> io::Result<T>,
    ) -> Result<T, ArchiveError> {
        let Some(open) = &mut self.open else {
            return Err(ArchiveError::Other("no segment is open".to_owned()));
        };
        let path = open.segment.path.clone();
        job(open).map_err(|error| {
            self.abandoned += 1;
            let open = self.open.take().map(|open| (open.segment, open.durable));
            // After a failed sync it may be another's file that has the name.
            let in_vain = doing == WRITING && open.as_ref().is_some_and(|(_, to)| *to == 0);
            if !(in_vain && ground.medium.remove(&path).is_ok()) {
                self.ended.extend(open);
            }
            ArchiveError::io(doing, path, error)
        })
    }
}

impl Open {
    /// Begins a segment. It is not yet durable.
    fn begin(class: Class, ground: &Ground) -> Result<Self, ArchiveError> {
        let dir = ground.dir.join(class.folder());
        let medium = &*ground.medium;
        make_folder(medium, &ground.dir, &dir)
            .map_err(|e| ArchiveError::io("making the directory", &dir, e))?;
        let id = UniqueId::new();
        let path = path(&ground.dir, class, &ground.writer, &id);
        let created = medium.create(&path);
        let file = created.map_err(|e| ArchiveError::io("creating", &path, e))?;
        file.lock_while_open();
        let segment = Arc::new(Segment::new(path, id, class, ground.writer));
        let mut open = Self {
            buffer: segment.header().to_vec(),
            file,
            segment,
            process: std::process::id(),
            end: SEGMENT_HEADER as u64,
            named: false,
            synced: false,
            durable: 0,
            rows: Vec::new(),
            marks: Vec::new(),
        };
        let about = cbor::to_bytes(&About::this())
            .and_then(|about| NewFrame::new(class, FrameKind::About, about, Vec::new()));
        if let Ok(about) = about {
            let put = open.put(&about);
            put.map_err(|e| ArchiveError::io("writing to", &open.segment.path, e))?;
        }
        Ok(open)
    }

    fn is_durable(&self) -> bool {
        self.synced && self.named && self.buffer.is_empty()
    }

    fn put(&mut self, frame: &NewFrame) -> io::Result<Written> {
        let at = self.end;
        let header = frame.header.bytes(&self.segment, at);
        self.buffer.extend_from_slice(&header);
        self.buffer.extend_from_slice(&frame.metadata);
        frame.payloads.each(|piece| self.take(piece))?;
        let end = frame.header.end(at);
        self.end = aligned(end);
        let padding = (self.end - end) as usize;
        self.buffer.extend_from_slice(&[0; 8][..padding]);
        if self.buffer.len() >= WRITE {
            self.flush()?;
        }
        let row = frame.row(at);
        self.rows.extend(row);
        self.marks.extend(frame.mark.clone());
        Ok(Written {
            segment: Arc::clone(&self.segment),
            row,
            mark: frame.mark.clone(),
        })
    }

    /// Appends part of a payload: what is long from where it lies, what is short with what
    /// else is short.
    fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        if piece.len() < DIRECTLY {
            self.buffer.extend_from_slice(piece);
            return Ok(());
        }
        self.file.append(&[&self.buffer, piece])?;
        self.synced = false;
        self.buffer.clear();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.file.append(&[&self.buffer])?;
            self.synced = false;
            self.buffer.clear();
        }
        Ok(())
    }

    fn sync(&mut self, ground: &Ground) -> io::Result<()> {
        self.file.sync()?;
        self.synced = true;
        let medium = &*ground.medium;
        if !self.named {
            // Whoever made these names may not have synced them.
            let folder = self.segment.path.parent();
            folder.map_or(Ok(()), |folder| medium.sync_dir(folder))?;
            medium.sync_dir(&ground.dir)?;
            self.named = true;
        }
        self.is_still_there(medium)?;
        self.durable = self.end;
        Ok(())
    }

    /// Somebody may have removed the file, or taken it for one of a process that has
    /// ended; or cut it, or written to it, and the frames are not where their headers say:
    /// then nobody will find what is written there.
    fn is_still_there(&self, medium: &dyn Vfs) -> io::Result<()> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the file was removed or renamed");
        let found = medium.look(&self.segment.path)?.ok_or_else(gone)?;
        if found.length == self.end {
            return Ok(());
        }
        let why = format!(
            "the file has {} bytes where {} were written: somebody has replaced it, cut it or written to it",
            found.length, self.end
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }

    fn seal(&mut self) -> io::Result<Table> {
        self.flush()?;
        let rows = std::mem::take(&mut self.rows);
        let marks = std::mem::take(&mut self.marks);
        let sealed = Table::seal(&self.segment, rows, marks, self.end);
        let (table, tail) = sealed.ok_or(io::ErrorKind::FileTooLarge)?;
        // Not synced: it says nothing that the frames do not, and has checksums.
        self.file.append(&[&tail])?;
        Ok(table)
    }
}

/// Where a segment is that somebody has begun.
pub(crate) fn path(store: &Path, class: Class, writer: &UniqueId, id: &UniqueId) -> PathBuf {
    folder(store, class).join(format!("{}-{id}.{EXTENSION}", writer.short()))
}

/// Where a class has its segments.
pub(crate) fn folder(store: &Path, class: Class) -> PathBuf {
    store.join(class.folder())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::Disk;

    #[test]
    fn a_child_begins_a_segment_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let ground = Ground {
            medium: Arc::new(Disk),
            dir: dir.path().to_owned(),
            writer: UniqueId::new(),
            segment_size: 1 << 20,
        };
        let frame =
            || NewFrame::new(Class::Result, FrameKind::Entry, vec![0xf6], Vec::new()).unwrap();
        let mut lane = Lane::new(Class::Result);
        let parents = lane.put(&frame(), &ground).unwrap().segment;
        lane.sync(&ground).unwrap();
        let before = std::fs::read(&parents.path).unwrap();
        // As it is after a fork.
        lane.open.as_mut().unwrap().process ^= 1;
        assert!(lane.seal(0).is_none());
        let own = lane.put(&frame(), &ground).unwrap().segment;
        lane.sync(&ground).unwrap();
        assert_ne!(own.path, parents.path);
        assert_eq!(std::fs::read(&parents.path).unwrap(), before);
        assert_eq!(lane.durable().count(), 2);
    }
}
