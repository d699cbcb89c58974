//! Appending to the segments of one part of a store.
//!
//! A save is acknowledged only after its bytes, and the name of a new segment, are on the medium. If anything fails on the way
//! the segment is abandoned: after a failed sync nobody knows which of its bytes are there, and a second sync may report success
//! without writing them. The next save begins a new one. One that a write failed on before anything in it was durable holds
//! nothing that anybody was told of: it is removed, or a full disk would fill with them.
//!
//! A segment has one writer. A writer that finds that it is not as long as it made it, or that it is a copy of the process that
//! began it, begins one of its own.
//!
//! Where one result after the other is made durable, the writer has zeros written behind what it writes, and writes to these
//! from then on: a sync that need not make a file longer too is faster. They are cut off when the segment is sealed.
//!
//! A segment that has grown long is sealed with an [index](crate::format::index_block), and so is the last when its writer ends.
//!
//! The first entry of a provenance has it in its own body; of a run that saves one result nothing else is written. With the
//! second it is written as frames of its own, and entries from then on have its digest only.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::{ArchiveError, Mark};

use crate::catalog::Written;
use crate::cbor::metadata::to_bytes;
use crate::format::about::About;
use crate::format::class::{Class, EXTENSION, Part, folder};
use crate::format::directory::make_folder;
use crate::format::frame::{self, FrameHeader, FrameKind};
use crate::format::id::UniqueId;
use crate::format::index_block::{IndexBlock, ROWS, Row};
use crate::format::metadata::{ProvenanceId, provenance_key};
use crate::format::segment::{SEGMENT_HEADER, SPARE, Segment};
use crate::vfs::{Vfs, VfsFile};
use crate::writer::frame::{Body, EncodedProvenance, NewFrame};

/// What is written at once, if it is that much.
const WRITE: usize = 1 << 20;
/// What fails when bytes can't be given to the medium.
const WRITING: &str = "writing to";
/// After so many syncs of a segment that wrote less than [`SPARE`] each, zeros are written behind what is.
const SMALL_SYNCS: u32 = 4;
const ZEROS: [u8; SPARE as usize] = [0; SPARE as usize];
/// A payload of this size is written from where it lies.
const DIRECTLY: usize = 1 << 16;
/// A longer payload is written in pieces of this: the disk has the first while the next is copied.
const LONGEST_WRITE: usize = 8 << 20;

/// Where and how to write.
#[derive(Clone)]
pub(crate) struct WriterConfig {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    /// This opening of the store.
    pub(crate) opening: UniqueId,
    /// A segment that is as long is sealed.
    pub(crate) segment_size: u64,
}

impl WriterConfig {
    /// How many bytes of frames wait in memory at most before they are written: as many as a segment has, if that is short.
    pub(crate) fn piece(&self) -> u64 {
        self.segment_size.min(1 << 18)
    }

    /// A segment that is shorter is merged with others.
    pub(crate) fn short(&self) -> u64 {
        self.segment_size / 4
    }

    /// Who writes: this opening of the store, in this process. A child after a fork is another.
    pub(crate) fn writer(&self) -> UniqueId {
        self.opening.of_part(&std::process::id().to_le_bytes())
    }
}

/// The writer of one part.
pub(crate) struct SegmentWriter {
    part: Part,
    active: Option<ActiveSegment>,
    /// The segments that are durable and long enough, and wait to be sealed. Until then they are among `ended` too.
    pub(crate) full: Vec<ActiveSegment>,
    /// How many segments were abandoned.
    abandoned: u64,
    /// Why the last of them was, if a write or sync failed.
    failed: Option<ArchiveError>,
    /// Those that have no index, and up to where they are durable.
    ended: Vec<(Arc<Segment>, u64)>,
}

/// A segment that is being written.
pub(crate) struct ActiveSegment {
    file: Box<dyn VfsFile>,
    segment: Arc<Segment>,
    /// The process that began it: after a fork two have it open.
    process: u32,
    end: u64,
    /// Up to where bytes were given to the medium.
    written: u64,
    /// How long the file is: zeros may come after these.
    length: u64,
    /// How many syncs there were one after another that wrote little.
    small_syncs: u32,
    /// What is not yet given to the medium.
    buffer: Vec<u8>,
    /// Whether its name is on the medium.
    named: bool,
    /// Whether all that was given to the medium is on it.
    synced: bool,
    /// Up to where it is.
    durable: u64,
    /// Its frames.
    rows: Vec<Row>,
    /// How many of them were given out as written.
    told: usize,
    /// The marks in those that were not.
    marks: Vec<Mark>,
    /// The provenances of its entries, and where each is to be written next.
    provenances: HashMap<ProvenanceId, Option<u64>>,
}

impl SegmentWriter {
    pub(crate) fn new(part: Part) -> Self {
        Self {
            part,
            active: None,
            full: Vec::new(),
            abandoned: 0,
            failed: None,
            ended: Vec::new(),
        }
    }

    /// Counts the segments that were abandoned: what was put before and not synced is lost
    /// if this has changed.
    pub(crate) fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// Why pieces of a save are lost that were put before another save failed.
    pub(crate) fn why_abandoned(&self) -> ArchiveError {
        let why = "the files that this save was written to are gone; nothing of it was saved: save it again";
        let failed = self.failed.clone();
        failed.unwrap_or_else(|| ArchiveError::Other(why.to_owned()))
    }

    /// Leaves all segments: their files are gone.
    pub(crate) fn forget(&mut self) {
        self.abandoned += u64::from(self.active.take().is_some());
        self.failed = None;
        self.full.clear();
        self.ended.clear();
    }

    /// Forgets segments that have no index and are not written to any more.
    pub(crate) fn let_go(&mut self, goes: impl Fn(&UniqueId) -> bool) {
        self.ended.retain(|(segment, _)| !goes(&segment.id));
    }

    /// The segments that have no index, and how much of each is durable: also of those that were
    /// abandoned, where no more is to be relied on, whatever they have.
    pub(crate) fn durable(&self) -> impl Iterator<Item = (Arc<Segment>, u64)> {
        let active = self.active.iter();
        let active = active.map(|active| (Arc::clone(&active.segment), active.durable));
        self.ended.iter().cloned().chain(active)
    }

    /// The segment that is being written.
    pub(crate) fn active(&self) -> Option<UniqueId> {
        self.active.as_ref().map(|active| active.segment.id)
    }

    /// Whether that is as long as this, or has as many frames as an index takes.
    pub(crate) fn is_full(&self, length: u64) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|active| active.end >= length || active.rows.len() >= ROWS)
    }

    /// Appends a frame. It is not durable yet.
    pub(crate) fn put(
        &mut self,
        frame: &NewFrame,
        config: &WriterConfig,
    ) -> Result<(), ArchiveError> {
        if self.active.is_none() {
            self.active = Some(ActiveSegment::begin(self.part, config)?);
        }
        self.on_active(WRITING, config, |active| active.put(frame))
    }

    /// Gives everything to the medium that was put; gives that. It is not durable yet.
    pub(crate) fn flush(&mut self, config: &WriterConfig) -> Result<Option<Written>, ArchiveError> {
        match self.active.is_some() {
            true => self.on_active(WRITING, config, |active| {
                active.flush()?;
                Ok(Some(active.tell()))
            }),
            false => Ok(None),
        }
    }

    /// Makes everything durable that was put; gives what was not given before.
    pub(crate) fn sync(&mut self, config: &WriterConfig) -> Result<Option<Written>, ArchiveError> {
        if self.active.as_ref().is_none_or(ActiveSegment::is_durable) {
            return Ok(None);
        }
        self.on_active(WRITING, config, ActiveSegment::flush)?;
        self.on_active("syncing", config, |active| active.sync(config))
            .map(Some)
    }

    /// Writes no more to the segment, which is durable, if it is as long as this: it waits to be sealed.
    pub(crate) fn close(&mut self, length: u64) {
        let full = self.active.take_if(|active| active.end >= length);
        let has_ended = full
            .iter()
            .map(|one| (Arc::clone(&one.segment), one.durable));
        self.ended.extend(has_ended);
        self.full.extend(full);
    }

    /// In a child after a fork, what the parent was writing stays his.
    pub(crate) fn leave_to_parent(&mut self, process: u32) {
        self.full.retain(|full| full.process == process);
        if let Some(active) = self.active.take_if(|active| active.process != process) {
            // What is in its buffer is written by the parent, or by nobody.
            self.abandoned += 1;
            self.failed = None;
            self.ended.push((active.segment, active.durable));
        }
    }

    fn on_active<T>(
        &mut self,
        doing: &'static str,
        config: &WriterConfig,
        job: impl FnOnce(&mut ActiveSegment) -> io::Result<T>,
    ) -> Result<T, ArchiveError> {
        let Some(active) = &mut self.active else {
            return Err(ArchiveError::Other("no segment is open".to_owned()));
        };
        let path = active.segment.path.clone();
        job(active).map_err(|error| {
            self.abandoned += 1;
            let active = self.active.take();
            let ended = active.map(|active| (active.segment, active.durable));
            // After a failed sync it may be another's file that has the name.
            let in_vain = doing == WRITING && ended.as_ref().is_some_and(|(_, to)| *to == 0);
            if !(in_vain && config.vfs.remove(&path).is_ok()) {
                ended.iter().for_each(|(one, _)| one.note_abandoned());
                self.ended.extend(ended);
            }
            let error = ArchiveError::io(doing, path, error);
            self.failed = Some(error.clone());
            error
        })
    }
}

impl ActiveSegment {
    /// Begins a segment. It is not yet durable.
    fn begin(part: Part, config: &WriterConfig) -> Result<Self, ArchiveError> {
        let dir = folder(&config.dir, part);
        let vfs = &*config.vfs;
        make_folder(vfs, &config.dir, &dir)
            .map_err(|e| ArchiveError::io("making the directory", &dir, e))?;
        let id = UniqueId::new();
        let writer = config.writer();
        let path = path(&config.dir, part, &writer, &id);
        let created = vfs.create(&path);
        let file = created.map_err(|e| ArchiveError::io("creating", &path, e))?;
        file.lock_while_open();
        let segment = Arc::new(Segment::new(path, id, part, writer));
        let mut active = Self {
            buffer: segment.header().to_vec(),
            file,
            segment,
            process: std::process::id(),
            end: SEGMENT_HEADER as u64,
            written: 0,
            length: 0,
            small_syncs: 0,
            named: false,
            synced: false,
            durable: 0,
            rows: Vec::new(),
            told: 0,
            marks: Vec::new(),
            provenances: HashMap::new(),
        };
        if let Ok(about) = to_bytes(&About::this()) {
            active.append(FrameHeader::of_no_key(FrameKind::About), 0, &[&about]);
        }
        Ok(active)
    }

    fn is_durable(&self) -> bool {
        self.synced && self.buffer.is_empty()
    }

    fn put(&mut self, frame: &NewFrame) -> io::Result<()> {
        let shared = match &frame.body {
            Body::Bytes(_) => false,
            Body::Entry { provenance, .. } => self.is_shared(provenance),
        };
        let at = self.end;
        let payload = frame.payload.length();
        let put = |parts: &[&[u8]]| self.append(frame.header, payload, parts);
        let header = frame.body.with_parts(shared, put);
        frame.payload.each(|piece| self.take(piece))?;
        self.end += payload;
        self.rows.push(Row::new(&header, at));
        self.marks.extend(frame.mark.clone());
        if self.buffer.len() >= WRITE {
            self.flush()?;
        }
        Ok(())
    }

    /// What was written since it was told last.
    fn tell(&mut self) -> Written {
        let from = std::mem::replace(&mut self.told, self.rows.len());
        Written {
            segment: Arc::clone(&self.segment),
            rows: self.rows[from..].to_vec(),
            marks: std::mem::take(&mut self.marks),
        }
    }

    /// Appends a frame to what is to be given to the medium, without its payload.
    fn append(&mut self, header: FrameHeader, payload: u64, body: &[&[u8]]) -> FrameHeader {
        let place = (&*self.segment, self.end);
        let header = frame::append(&mut self.buffer, header, payload, body, place);
        self.end += header.length();
        header
    }

    /// Whether entries of this provenance have its digest only. From the second on they do, and then it has frames of
    /// its own: two at first, so that damage to one costs nothing, and one more each time that the segment is eight times as
    /// long.
    fn is_shared(&mut self, provenance: &EncodedProvenance) -> bool {
        let end = self.end;
        let copies = match self.provenances.entry(provenance.id).or_insert(None) {
            known @ None => {
                *known = Some(0);
                return false;
            }
            Some(due) if end < *due => 0,
            Some(due) => {
                let is_first = *due == 0;
                *due = end.saturating_mul(8);
                1 + u32::from(is_first)
            }
        };
        (0..copies).for_each(|_| self.put_provenance(provenance));
        true
    }

    fn put_provenance(&mut self, provenance: &EncodedProvenance) {
        let key = provenance_key(&provenance.id);
        let header = FrameHeader::new(FrameKind::Provenance, Class::Result, key, 0);
        let at = self.end;
        let header = self.append(header, 0, &[&provenance.bytes]);
        self.rows.push(Row::new(&header, at));
    }

    /// Appends part of a payload: what is long from where it lies, what is short with what else is short.
    fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        if piece.len() < DIRECTLY {
            self.buffer.extend_from_slice(piece);
            return Ok(());
        }
        let mut pieces = piece.chunks(LONGEST_WRITE);
        pieces.try_for_each(|piece| self.write(piece))
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write(&[])
    }

    /// Gives what was put, and this, to the medium.
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let more = self.buffer.len() as u64 + piece.len() as u64;
        let end = self.written + more;
        let spare = match end > self.length && more < SPARE && self.small_syncs >= SMALL_SYNCS {
            true => &ZEROS[..],
            false => &[],
        };
        let slices = [&*self.buffer, piece, spare];
        self.file.write_at(&slices, self.written)?;
        self.written = end;
        self.length = self.length.max(end + spare.len() as u64);
        self.synced = false;
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self, config: &WriterConfig) -> io::Result<Written> {
        self.file.sync()?;
        self.synced = true;
        self.small_syncs = match self.written - self.durable < SPARE {
            true => self.small_syncs.saturating_add(1),
            false => 0,
        };
        let vfs = &*config.vfs;
        if !self.named {
            // Whoever made these names may not have synced them.
            let folder = self.segment.path.parent();
            folder.map_or(Ok(()), |folder| vfs.sync_dir(folder))?;
            vfs.sync_dir(&config.dir)?;
            self.named = true;
        }
        self.is_still_there(vfs)?;
        self.durable = self.end;
        Ok(self.tell())
    }

    /// Somebody may have removed the file, or taken it for one of a process that has
    /// ended; or cut it, or written to it, and the frames are not where their headers say:
    /// then nobody will find what is written there.
    fn is_still_there(&self, vfs: &dyn Vfs) -> io::Result<()> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the file was removed or renamed");
        let length = vfs.length_of(&self.segment.path)?.ok_or_else(gone)?;
        if length == self.length {
            return Ok(());
        }
        let why = format!(
            "the file has {length} bytes where {} were written: somebody has replaced it, cut it or written to it",
            self.length
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// Appends the index. It is not synced: it says nothing that the frames do not, and has checksums.
    pub(crate) fn seal(mut self) -> Result<(Arc<Segment>, IndexBlock), ArchiveError> {
        match self.write_index() {
            Ok(block) => Ok((self.segment, block)),
            Err(error) => {
                self.segment.note_abandoned();
                let path = &self.segment.path;
                Err(ArchiveError::io("writing the index of", path, error))
            }
        }
    }

    fn write_index(&mut self) -> io::Result<IndexBlock> {
        let rows = std::mem::take(&mut self.rows);
        let sealed = IndexBlock::seal(&self.segment, rows, self.end);
        let (block, tail) = sealed.ok_or(io::ErrorKind::FileTooLarge)?;
        if self.length > self.end {
            self.file.cut(self.end)?;
        }
        self.file.write_at(&[&tail], self.end)?;
        Ok(block)
    }
}

/// Where a segment is that somebody has begun.
pub(crate) fn path(store: &Path, part: Part, writer: &UniqueId, id: &UniqueId) -> PathBuf {
    folder(store, part).join(format!("{}-{id}.{EXTENSION}", writer.short()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::Disk;

    #[test]
    fn a_child_begins_a_segment_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let config = WriterConfig {
            vfs: Arc::new(Disk),
            dir: dir.path().to_owned(),
            opening: UniqueId::new(),
            segment_size: 1 << 20,
        };
        let put = |writer: &mut SegmentWriter| {
            let body = Body::Bytes(vec![0xf6]);
            let frame = NewFrame::new(Part::Entries, FrameHeader::of_no_key(FrameKind::Uses), body)
                .unwrap();
            writer.put(&frame, &config).unwrap();
            writer.sync(&config).unwrap().unwrap().segment
        };
        let mut writer = SegmentWriter::new(Part::Entries);
        let parents = put(&mut writer);
        let before = std::fs::read(&parents.path).unwrap();
        // As it is after a fork.
        writer.leave_to_parent(std::process::id() ^ 1);
        assert!(writer.full.is_empty());
        let own = put(&mut writer);
        assert_ne!(own.path, parents.path);
        assert_eq!(std::fs::read(&parents.path).unwrap(), before);
        assert_eq!(writer.durable().count(), 2);
    }
}
