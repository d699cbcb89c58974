//! Reads the frames of a segment, by its index or from end to end.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use sde::archiver::Mark;

use super::scan;
use crate::cbor::metadata::from_bytes;
use crate::format::frame::{self, FrameKind};
use crate::format::id::UniqueId;
use crate::format::index_block::{IndexBlock, Row};
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::vfs::{Vfs, VfsFile};

/// Frames and segments that are new, and segments that are gone.
#[derive(Default)]
pub(crate) struct CatalogChanges {
    pub(crate) sealed: Vec<(Arc<Segment>, IndexBlock)>,
    pub(crate) frames: Vec<(Arc<Segment>, Vec<Row>)>,
    pub(crate) marks: Vec<Mark>,
    /// Segments whose files are gone, or replaced; their frames that still count are in the other fields.
    pub(crate) gone: HashSet<UniqueId>,
}

/// Reads an unknown segment, by its index if it has one. Frames before `from` were replaced; only their provenances
/// are taken, since later frames may refer to them. Gives the end of the frames, and whether the segment is sealed.
pub(super) fn read_anew(
    vfs: &dyn Vfs,
    segment: &Arc<Segment>,
    from: u64,
    has_looked: bool,
    changes: &mut CatalogChanges,
) -> io::Result<(u64, bool)> {
    let file = vfs.open(&segment.path)?;
    let length = file.length()?;
    if length <= from {
        return Ok((from, false));
    }
    let counts = |row: &Row| row.at() >= from || row.kind() == Some(FrameKind::Provenance);
    if let Some(block) = IndexBlock::read(segment, &*file, length)? {
        // The end of the frames, without the index: no manifest may vouch for an index.
        let end = block.end;
        changes.marks.extend(marks(&*file, segment, &block)?);
        match from == SEGMENT_HEADER as u64 {
            true => changes.sealed.push((Arc::clone(segment), block)),
            false => {
                let rows = block.rows.iter().filter(counts).collect();
                changes.frames.push((Arc::clone(segment), rows));
            }
        }
        return Ok((end.max(from), true));
    }
    let mut scanned = scan::scan(vfs, segment, SEGMENT_HEADER as u64)?;
    scanned.rows.retain(counts);
    let end = scanned.frames_end.max(from);
    note_scanned(vfs, segment, scanned, has_looked, changes);
    Ok((end, false))
}

/// Reads on in a segment. Gives the end of the frames read, and whether it is sealed.
pub(super) fn read_on(
    vfs: &dyn Vfs,
    segment: &Arc<Segment>,
    from: u64,
    has_looked: bool,
    changes: &mut CatalogChanges,
) -> io::Result<(u64, bool)> {
    let scanned = scan::scan(vfs, segment, from)?;
    let end = scanned.frames_end;
    let is_sealed = scanned.end > end && scanned.end == scanned.length;
    if scanned.end > from {
        note_scanned(vfs, segment, scanned, has_looked, changes);
    }
    Ok((end, is_sealed))
}

fn note_scanned(
    vfs: &dyn Vfs,
    segment: &Arc<Segment>,
    scanned: scan::Scanned,
    has_looked: bool,
    changes: &mut CatalogChanges,
) {
    // After the first look, the cut-off end of a save in progress is not warned of: it is read next time.
    let goes_on = || matches!(vfs.try_lock(&segment.path), Ok(None));
    if !(has_looked && scanned.is_cut_short() && goes_on()) {
        scanned.warn(&segment.path);
    }
    changes.marks.extend(scanned.marks);
    changes.frames.push((Arc::clone(segment), scanned.rows));
}

/// The marks in a sealed segment.
fn marks(file: &dyn VfsFile, segment: &Segment, block: &IndexBlock) -> io::Result<Vec<Mark>> {
    let mut marks = Vec::new();
    for row in block
        .rows
        .iter()
        .filter(|row| row.kind() == Some(FrameKind::Mark))
    {
        let frame = frame::read_at(file, segment, row.at())?;
        let read = |body: &[u8]| Some(from_bytes(body).ok()?.0);
        match frame.and_then(|(header, body)| read(header.content(&body))) {
            Some(mark) => marks.push(mark),
            None => sde::warning!("a mark in {} is damaged", segment.path.display()),
        }
    }
    Ok(marks)
}
