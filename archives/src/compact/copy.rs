//! Writing what is kept to segments of its own.

use std::path::PathBuf;
use std::sync::Arc;

use sde::ArchiveError;

use super::plan::Plan;
use super::survey::{Candidate, Held, What};
use crate::cbor;
use crate::class::Class;
use crate::frame::NewFrame;
use crate::lane::{Ground, Lane};
use crate::medium::MediumFile;
use crate::scan;
use crate::segment::{FrameHeader, FrameKind, SEGMENT_HEADER, Segment};
use crate::table::Table;
use crate::uses::{UsesMetadata, UsesOf};

/// Copies what a plan keeps of some classes, makes it durable and reads it back; gives how many
/// segments that took. If it fails, what was written is removed.
pub(crate) fn all(ground: &Ground, plan: &Plan, classes: &[Class]) -> Result<usize, ArchiveError> {
    let mut copiers = Vec::new();
    for class in classes {
        let mut copier = Copier::new(ground, *class);
        for (candidate, kept) in plan.candidates.iter().zip(&plan.kept) {
            if candidate.class() == *class && !kept.is_empty() {
                copier.copy(
                    candidate,
                    kept.iter().map(|frame| &candidate.frames[*frame]),
                )?;
            }
        }
        if *class == Class::Result {
            copier.uses(plan.uses.clone())?;
        }
        copiers.push(copier);
    }
    let mut segments = 0;
    for copier in &mut copiers {
        segments += copier.finish()?;
    }
    copiers.iter_mut().for_each(Copier::take);
    Ok(segments)
}

/// A frame as it is in a segment, to be written elsewhere.
pub(crate) fn frame(
    class: Class,
    held: &Held,
    file: &Arc<dyn MediumFile>,
) -> std::io::Result<NewFrame> {
    let at = FrameHeader::metadata_at(held.at);
    let metadata = crate::table::bytes(&**file, at, held.header.metadata.into())?;
    let payloads_at = held.header.payloads_at(held.at);
    let frame = NewFrame::copy(class, held.header, metadata, Arc::clone(file), payloads_at);
    Ok(match &held.what {
        What::Mark(mark) => frame.with_mark(mark.clone()),
        _ => frame,
    })
}

/// New segments of one class. They are removed again unless they are taken.
struct Copier<'a> {
    ground: &'a Ground,
    class: Class,
    lane: Lane,
    sealed: Vec<Arc<Segment>>,
    frames: usize,
    /// All files that were begun.
    begun: Vec<PathBuf>,
}

impl<'a> Copier<'a> {
    fn new(ground: &'a Ground, class: Class) -> Self {
        Self {
            ground,
            class,
            lane: Lane::new(class),
            sealed: Vec::new(),
            frames: 0,
            begun: Vec::new(),
        }
    }

    /// Copies frames of a segment, in the order of their places.
    fn copy<'f>(
        &mut self,
        from: &Candidate,
        frames: impl Iterator<Item = &'f Held>,
    ) -> Result<(), ArchiveError> {
        let path = &from.segment.path;
        let failed = |error| ArchiveError::io("reading", path, error);
        let file = self.ground.medium.open(path).map_err(failed)?;
        let file: Arc<dyn MediumFile> = Arc::from(file);
        for held in frames {
            self.put(&frame(self.class, held, &file).map_err(failed)?)?;
        }
        Ok(())
    }

    /// Writes the uses of entries, added up.
    fn uses(&mut self, uses: UsesOf) -> Result<(), ArchiveError> {
        if uses.is_empty() {
            return Ok(());
        }
        let frame = cbor::to_bytes(&UsesMetadata::new(uses))
            .and_then(|metadata| NewFrame::new(self.class, FrameKind::Uses, metadata, Vec::new()));
        self.put(&frame.map_err(ArchiveError::Other)?)
    }

    fn put(&mut self, frame: &NewFrame) -> Result<(), ArchiveError> {
        let written = self.lane.put(frame, self.ground)?;
        if self.begun.last() != Some(&written.segment.path) {
            self.begun.push(written.segment.path.clone());
        }
        self.frames += 1;
        if self.lane.length() >= self.ground.segment_size {
            self.seal()?;
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), ArchiveError> {
        self.lane.sync(self.ground)?;
        let sealed = self.lane.seal(self.ground, true);
        self.sealed.extend(sealed.map(|table| table.segment));
        Ok(())
    }

    /// What was written stays.
    fn take(&mut self) {
        self.begun.clear();
    }

    /// Makes all of it durable, reads it back and gives how many segments it is.
    fn finish(&mut self) -> Result<usize, ArchiveError> {
        self.seal()?;
        let mut frames = 0;
        for segment in &self.sealed {
            frames += self.check(segment)?;
        }
        if frames != self.frames || self.sealed.len() != self.begun.len() {
            return Err(ArchiveError::Other(format!(
                "a compaction wrote {} frames and reads {frames} back; nothing was replaced, see whether the disk is sound",
                self.frames
            )));
        }
        Ok(self.sealed.len())
    }

    /// How many frames of those put there can be read in a segment.
    fn check(&self, segment: &Arc<Segment>) -> Result<usize, ArchiveError> {
        let medium = &*self.ground.medium;
        let failed = |error| ArchiveError::io("reading back", &segment.path, error);
        let file = medium.open(&segment.path).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let table = Table::read(segment, &*file, length).map_err(failed)?;
        if table.is_none() {
            return Ok(0);
        }
        let mut frames = 0;
        let of_its_own = |kind| matches!(kind, Some(FrameKind::About | FrameKind::Index));
        let scanned = scan::scan_with(medium, segment, SEGMENT_HEADER as u64, |frame| {
            frames += usize::from(!of_its_own(frame.header.kind));
        });
        scanned.map_err(failed)?;
        Ok(frames)
    }
}

impl Drop for Copier<'_> {
    fn drop(&mut self) {
        // Also one that was given up before anything was put.
        let given_up = self.lane.durable().map(|(segment, _)| &segment.path);
        for path in self.begun.iter().chain(given_up) {
            // What is left if this fails holds copies, and does no harm.
            let _ = self.ground.medium.remove(path);
        }
    }
}
