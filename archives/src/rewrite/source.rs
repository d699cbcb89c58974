//! The input of a rewrite: segments, and their frames in the order of keys.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use sde::archiver::ArchiveError;

use crate::catalog::{Catalog, scan};
use crate::format::frame::FrameKind;
use crate::format::index_block::{IndexBlock, Row, Rows};
use crate::format::metadata::{Provenance, ProvenanceId};
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::read::error::ReadError;
use crate::read::frame::{EntryFrame, Frame, provenance_of};
use crate::vfs::{Vfs, VfsFile};

/// A segment to copy from, which nobody writes to any more.
pub(crate) struct Source {
    pub(crate) segment: Arc<Segment>,
    /// The end of its whole frames, with the index.
    pub(crate) length: u64,
    /// Whether its writer sealed it.
    pub(crate) sealed: bool,
    /// Whether a frame is damaged, if that was checked.
    pub(crate) damaged: bool,
    /// Its frames, without the one about its writer.
    pub(crate) rows: Rows,
}

impl Source {
    /// Reads a segment's index; without one, or if `looks_for_damage`, its frames. Frames before `from` were
    /// replaced: only provenances among them count.
    pub(crate) fn open(
        vfs: &dyn Vfs,
        segment: Arc<Segment>,
        from: u64,
        looks_for_damage: bool,
    ) -> io::Result<Self> {
        let file = vfs.open(&segment.path)?;
        let block = IndexBlock::read(&segment, &*file, file.length()?)?;
        let counts = |row: &Row| row.at() >= from || row.kind() == Some(FrameKind::Provenance);
        let sealed = block.is_some();
        let (rows, length, damaged) = match block {
            Some(block) if !looks_for_damage => (block.rows, block.length, false),
            _ => {
                let scanned = scan::scan(vfs, &segment, SEGMENT_HEADER as u64)?;
                let mut damaged = scanned.damaged.iter();
                let damaged = damaged.any(|(place, _)| place.end > from);
                (Rows::sorted(scanned.rows), scanned.end, damaged)
            }
        };
        let rows = match from > SEGMENT_HEADER as u64 {
            true => rows.iter().filter(counts).collect(),
            false => rows,
        };
        Ok(Self {
            segment,
            length: length.max(from),
            sealed,
            damaged,
            rows,
        })
    }

    /// Whether it has frames other than journals and uses.
    pub(crate) fn has_values(&self) -> bool {
        let is_of_processes =
            |row: Row| matches!(row.kind(), Some(FrameKind::Uses | FrameKind::Journal));
        !self.rows.iter().all(is_of_processes)
    }
}

/// A frame, by its source's number and its row's number in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) source: usize,
    pub(super) number: usize,
    pub(super) row: Row,
}

/// Calls `each` with the frames of all sources in the order of keys, one group for each prefix.
pub(super) fn by_key(
    sources: &[Source],
    mut each: impl FnMut(&[Member]) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let mut next = BinaryHeap::new();
    let member = |source: usize, number: usize| {
        let row = sources.get(source)?.rows.get(number)?;
        Some(Reverse((row.prefix, source, number)))
    };
    next.extend((0..sources.len()).filter_map(|source| member(source, 0)));
    let mut group: Vec<Member> = Vec::new();
    while let Some(Reverse((prefix, source, number))) = next.pop() {
        next.extend(member(source, number + 1));
        if group.last().is_some_and(|one| one.row.prefix != prefix) {
            each(&group)?;
            group.clear();
        }
        let row = sources[source].rows.get(number);
        group.extend(row.map(|row| Member {
            source,
            number,
            row,
        }));
    }
    match group.is_empty() {
        true => Ok(()),
        false => each(&group),
    }
}

/// The most files that are open at a time.
const FILES: usize = 64;

/// Reads frames of sources, in any order.
pub(super) struct FrameReader<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) sources: &'a [Source],
    /// The open files, the last used at the end.
    files: Vec<(usize, Arc<dyn VfsFile>)>,
}

impl<'a> FrameReader<'a> {
    pub(super) fn new(catalog: &'a Catalog, sources: &'a [Source]) -> Self {
        Self {
            catalog,
            sources,
            files: Vec::new(),
        }
    }

    /// A frame; `None` if it is damaged.
    pub(super) fn frame(&mut self, of: &Member) -> Result<Option<Frame<'a>>, ArchiveError> {
        let kind = of.row.kind();
        let Some(kind) = kind else { return Ok(None) };
        let frame = self.frame_at(of.source, of.row.at(), kind);
        whole(frame, &self.sources[of.source].segment)
    }

    /// The entry in a frame; `None` if its body is damaged, or its provenance is missing.
    pub(super) fn entry(
        &mut self,
        source: usize,
        frame: Frame<'a>,
    ) -> Result<Option<EntryFrame<'a>>, ArchiveError> {
        let entry = EntryFrame::of(frame, |id| self.provenance(source, id));
        whole(entry, &self.sources[source].segment)
    }

    fn frame_at(
        &mut self,
        source: usize,
        at: u64,
        kind: FrameKind,
    ) -> Result<Frame<'a>, ReadError> {
        let segment = &self.sources[source].segment;
        let file = self.file(source).map_err(|e| ReadError::io(segment, e))?;
        Frame::read_from(&*file, (&self.catalog.vfs, segment), at, kind)
    }

    fn file(&mut self, source: usize) -> io::Result<Arc<dyn VfsFile>> {
        let known = self.files.iter().position(|(known, _)| *known == source);
        let file = match known {
            Some(at) => self.files.remove(at).1,
            None => {
                if self.files.len() >= FILES {
                    self.files.remove(0);
                }
                Arc::from(self.catalog.vfs.open(&self.sources[source].segment.path)?)
            }
        };
        self.files.push((source, Arc::clone(&file)));
        Ok(file)
    }

    fn provenance(
        &mut self,
        source: usize,
        id: &ProvenanceId,
    ) -> Result<Arc<Provenance>, ReadError> {
        if let Some(known) = self.catalog.remembered(id) {
            return Ok(known);
        }
        let of = &self.sources[source];
        let file = self.file(source).ok();
        let found = file.and_then(|file| provenance_of(&*file, &of.segment, &of.rows, id));
        match found {
            Some(found) => Ok(self.catalog.remember(*id, found)),
            None => self.catalog.provenance(id, &of.segment),
        }
    }
}

/// `None` for damaged frames, which are useless; an error for those that can't be read, which may be sound.
fn whole<T>(found: Result<T, ReadError>, segment: &Segment) -> Result<Option<T>, ArchiveError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(ReadError::Damaged(_) | ReadError::OtherType(_) | ReadError::OtherKey) => Ok(None),
        Err(ReadError::Io(error)) => Err(error),
        Err(ReadError::Gone) => Err(ArchiveError::io(
            "reading",
            &segment.path,
            io::ErrorKind::NotFound.into(),
        )),
    }
}
