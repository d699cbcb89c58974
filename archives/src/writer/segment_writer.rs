//! Appending to the segments of one part of a store.
//!
//! A save is acknowledged only after its bytes, and the name of a new segment, are on the medium. After any error
//! the segment is abandoned: nobody knows which of its bytes are there, and a second sync may report success
//! without writing. The next save begins a new segment. If a write fails before anything is durable, the segment
//! has nothing acknowledged and is removed, or a full disk would fill with such files.
//!
//! A segment has one writer. If the file's length is not what the writer made it, or the writer is a forked copy,
//! it begins a segment of its own.
//!
//! When results are made durable one by one, the writer keeps zeros after the frames, and writes into these: a sync
//! is faster if the file's length does not change. Sealing cuts them off.
//!
//! A full segment is sealed with an [index](crate::format::index_block); so is the last one when its writer ends.
//!
//! A provenance's first entry has it in its own body, so a run that saves one result writes nothing else. Before
//! the second entry it is written as frames of its own, and later entries have its digest only.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::archiver::{ArchiveError, Mark};

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

/// The buffer is written once it is this long.
const WRITE: usize = 1 << 20;
/// The action in errors of writing.
const WRITING: &str = "writing to";
/// After this many consecutive syncs of less than [`SPARE`] bytes, spare zeros are written.
const SMALL_SYNCS: u32 = 4;
const ZEROS: [u8; SPARE as usize] = [0; SPARE as usize];
/// Payloads of at least this size are not copied to the buffer.
const DIRECTLY: usize = 1 << 16;
/// Longer payloads are written in pieces of this size: the disk has the first while the next is copied.
const LONGEST_WRITE: usize = 8 << 20;

/// The configuration of a writer.
#[derive(Clone)]
pub(crate) struct WriterConfig {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    /// The id of this opening of the store.
    pub(crate) opening: UniqueId,
    /// The length at which a segment is sealed.
    pub(crate) segment_size: u64,
}

impl WriterConfig {
    /// The most bytes of frames held in memory before they are written: at most a segment.
    pub(crate) fn piece(&self) -> u64 {
        self.segment_size.min(1 << 18)
    }

    /// Shorter segments are merged.
    pub(crate) fn short(&self) -> u64 {
        self.segment_size / 4
    }

    /// The writer's id: of this opening of the store, in this process. A forked child has another.
    pub(crate) fn writer(&self) -> UniqueId {
        self.opening.of_part(&std::process::id().to_le_bytes())
    }
}

/// The writer of one part.
pub(crate) struct SegmentWriter {
    part: Part,
    active: Option<ActiveSegment>,
    /// The durable segments that wait to be sealed. They are among `ended` too, until they are.
    pub(crate) full: Vec<ActiveSegment>,
    /// The number of abandoned segments.
    abandoned: u64,
    /// The error of the last one, if a write or sync failed.
    failed: Option<ArchiveError>,
    /// The segments without an index, with their durable ends.
    ended: Vec<(Arc<Segment>, u64)>,
}

/// A segment that is being written.
pub(crate) struct ActiveSegment {
    file: Box<dyn VfsFile>,
    segment: Arc<Segment>,
    /// The process that began it: after a fork two have it open.
    process: u32,
    end: u64,
    /// The end of the bytes written.
    written: u64,
    /// The length of the file, with spare zeros.
    length: u64,
    /// The number of consecutive syncs with few bytes.
    small_syncs: u32,
    /// Bytes that are not written yet.
    buffer: Vec<u8>,
    /// Whether its name is on the medium.
    named: bool,
    /// Whether all bytes written are on the medium.
    synced: bool,
    /// The durable end.
    durable: u64,
    /// The rows of its frames.
    rows: Vec<Row>,
    /// The number of rows reported as written.
    told: usize,
    /// The marks in frames not yet reported.
    marks: Vec<Mark>,
    /// The provenances of its entries, each with the length at which it is written again.
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

    /// The number of abandoned segments: if it changes, frames appended before and not synced are lost.
    pub(crate) fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// The error of a save whose earlier pieces were lost when another save failed.
    pub(crate) fn why_abandoned(&self) -> ArchiveError {
        let why = "the files that this save was written to are gone; nothing of it was saved: save it again";
        let failed = self.failed.clone();
        failed.unwrap_or_else(|| ArchiveError::Other(why.to_owned()))
    }

    /// Leaves all segments, since their files are gone.
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

    /// The segments without an index, with their durable ends. Of abandoned ones nothing beyond that is relied on.
    pub(crate) fn durable(&self) -> impl Iterator<Item = (Arc<Segment>, u64)> {
        let active = self.active.iter();
        let active = active.map(|active| (Arc::clone(&active.segment), active.durable));
        self.ended.iter().cloned().chain(active)
    }

    /// The segment that is being written.
    pub(crate) fn active(&self) -> Option<UniqueId> {
        self.active.as_ref().map(|active| active.segment.id)
    }

    /// Whether the active segment has this length, or as many rows as an index takes.
    pub(crate) fn is_full(&self, length: u64) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|active| active.end >= length || active.rows.len() >= ROWS)
    }

    /// Appends a frame, which is not durable yet.
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

    /// Writes the buffer; gives the frames that can be read now. They are not durable yet.
    pub(crate) fn flush(&mut self, config: &WriterConfig) -> Result<Option<Written>, ArchiveError> {
        match self.active.is_some() {
            true => self.on_active(WRITING, config, |active| {
                active.flush()?;
                Ok(Some(active.tell()))
            }),
            false => Ok(None),
        }
    }

    /// Makes all frames durable; gives those not reported before.
    pub(crate) fn sync(&mut self, config: &WriterConfig) -> Result<Option<Written>, ArchiveError> {
        if self.active.as_ref().is_none_or(ActiveSegment::is_durable) {
            return Ok(None);
        }
        self.on_active(WRITING, config, ActiveSegment::flush)?;
        self.on_active("syncing", config, |active| active.sync(config))
            .map(Some)
    }

    /// Closes the segment, which is durable, if it is at least this long: it waits to be sealed.
    pub(crate) fn close(&mut self, length: u64) {
        let full = self.active.take_if(|active| active.end >= length);
        let has_ended = full
            .iter()
            .map(|one| (Arc::clone(&one.segment), one.durable));
        self.ended.extend(has_ended);
        self.full.extend(full);
    }

    /// In a forked child, leaves the parent's segments to it.
    pub(crate) fn leave_to_parent(&mut self, process: u32) {
        self.full.retain(|full| full.process == process);
        if let Some(active) = self.active.take_if(|active| active.process != process) {
            // The buffer is written by the parent, or by nobody.
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
            // After a failed sync the name may belong to another's file.
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
    /// Begins a segment, which is not durable yet.
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

    /// The frames written since the last report.
    fn tell(&mut self) -> Written {
        let from = std::mem::replace(&mut self.told, self.rows.len());
        Written {
            segment: Arc::clone(&self.segment),
            rows: self.rows[from..].to_vec(),
            marks: std::mem::take(&mut self.marks),
        }
    }

    /// Appends a frame without its payload to the buffer.
    fn append(&mut self, header: FrameHeader, payload: u64, body: &[&[u8]]) -> FrameHeader {
        let place = (&*self.segment, self.end);
        let header = frame::append(&mut self.buffer, header, payload, body, place);
        self.end += header.length();
        header
    }

    /// Whether an entry has only its provenance's digest, as all but the first do. Before the second entry the
    /// provenance gets two frames, so that damage to one costs nothing. It gets another each time that the segment
    /// is eight times as long.
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

    /// Appends a piece of payload; long ones are written directly, short ones buffered.
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

    /// Writes the buffer and this piece.
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
            // Whoever made the folders may not have synced their names.
            let folder = self.segment.path.parent();
            folder.map_or(Ok(()), |folder| vfs.sync_dir(folder))?;
            vfs.sync_dir(&config.dir)?;
            self.named = true;
        }
        self.is_still_there(vfs)?;
        self.durable = self.end;
        Ok(self.tell())
    }

    /// Checks the file's name and length. Another process may have removed or closed the file, or a person cut it
    /// or written to it: then nobody would find further frames there.
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

    /// Appends the index, without a sync: it only repeats facts of the frames, and has a checksum.
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

/// The path of a new segment.
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
        // The state after a fork.
        writer.leave_to_parent(std::process::id() ^ 1);
        assert!(writer.full.is_empty());
        let own = put(&mut writer);
        assert_ne!(own.path, parents.path);
        assert_eq!(std::fs::read(&parents.path).unwrap(), before);
        assert_eq!(writer.durable().count(), 2);
    }
}
