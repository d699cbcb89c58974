//! Writing what is kept to segments of its own.

use std::path::PathBuf;
use std::sync::Arc;

use sde::ArchiveError;

use super::plan::Plan;
use super::survey::{Candidate, Held, What};
use crate::catalog::scan;
use crate::catalog::table::Table;
use crate::format::class::Class;
use crate::format::segment::{FrameHeader, Segment};
use crate::store::uses;
use crate::vfs::VfsFile;
use crate::writer::frame::NewFrame;
use crate::writer::segment_writer::{Ground, Lane};

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
            for frame in uses::frames(plan.uses.clone())? {
                copier.put(&frame, None)?;
            }
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
    file: &Arc<dyn VfsFile>,
) -> std::io::Result<NewFrame> {
    let at = FrameHeader::metadata_at(held.at);
    let metadata = crate::catalog::table::bytes(&**file, at, held.header.metadata.into())?;
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
    /// What was put there, in this order.
    put: Vec<(FrameHeader, Option<&'a What>)>,
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
            put: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// Copies frames of a segment, in the order of their places.
    fn copy(
        &mut self,
        from: &Candidate,
        frames: impl Iterator<Item = &'a Held>,
    ) -> Result<(), ArchiveError> {
        let path = &from.segment.path;
        let failed = |error| ArchiveError::io("reading", path, error);
        let file = self.ground.medium.open(path).map_err(failed)?;
        let file: Arc<dyn VfsFile> = Arc::from(file);
        for held in frames {
            let frame = frame(self.class, held, &file).map_err(failed)?;
            self.put(&frame, Some(&held.what))?;
        }
        Ok(())
    }

    fn put(&mut self, frame: &NewFrame, what: Option<&'a What>) -> Result<(), ArchiveError> {
        let written = self.lane.put(frame, self.ground)?;
        if self.begun.last() != Some(&written.segment.path) {
            self.begun.push(written.segment.path.clone());
        }
        self.put.push((frame.header, what));
        if self.lane.length() >= self.ground.segment_size {
            self.seal()?;
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), ArchiveError> {
        self.lane.sync(self.ground)?;
        let sealed = self.lane.seal(0);
        self.sealed.extend(sealed.map(|table| table.segment));
        Ok(())
    }

    /// Makes all of it durable, reads it back and gives how many segments it is.
    fn finish(&mut self) -> Result<usize, ArchiveError> {
        self.seal()?;
        let mut back = Vec::new();
        for segment in &self.sealed {
            back.extend(self.read_back(segment)?);
        }
        let is_same = |(put, back): (&(FrameHeader, Option<&What>), &Held)| {
            put.0 == back.header && put.1.is_none_or(|what| *what == back.what)
        };
        let is_whole = back.len() == self.put.len() && self.put.iter().zip(&back).all(is_same);
        if !is_whole || self.sealed.len() != self.begun.len() {
            return Err(ArchiveError::Other(format!(
                "of {} frames that a compaction wrote not all read back as they were written; nothing was replaced, see whether the disk is sound",
                self.put.len()
            )));
        }
        Ok(self.sealed.len())
    }

    /// What a segment holds of what was put there, if others will find it.
    fn read_back(&self, segment: &Arc<Segment>) -> Result<Vec<Held>, ArchiveError> {
        let medium = &self.ground.medium;
        let failed = |error| ArchiveError::io("reading back", &segment.path, error);
        let file = medium.open(&segment.path).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let header = scan::open(&**medium, &segment.path).map_err(failed)?;
        let table = Table::read(segment, &*file, length).map_err(failed)?;
        if !matches!(header, Some(Ok(found)) if found.id == segment.id) || table.is_none() {
            return Ok(Vec::new());
        }
        let back = Candidate::survey(medium, Arc::clone(segment), 0, true);
        let mut frames = back.map_err(failed)?.frames;
        frames.retain(|held| held.what != What::OfSegment);
        Ok(frames)
    }

    /// What was written stays.
    fn take(&mut self) {
        self.begun.clear();
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
