//! Writing what is kept to segments of its own.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use sde::ArchiveError;

use super::plan::Plan;
use super::survey::{Candidate, FrameContent, FrameInfo};
use crate::catalog::{Catalog, scan};
use crate::format::class::Part;
use crate::format::frame::{self, FrameHeader, FrameKind};
use crate::format::index_block::IndexBlock;
use crate::format::metadata::{ProvenanceId, split_entry};
use crate::format::segment::Segment;
use crate::read::trouble::Trouble;
use crate::store::uses;
use crate::vfs::VfsFile;
use crate::writer::frame::{Body, EncodedProvenance, NewFrame, Payload};
use crate::writer::segment_writer::{SegmentWriter, WriterConfig};

/// Copies what a plan keeps, makes it durable and reads it back; gives how many segments that took. If it fails, what was
/// written is removed.
pub(crate) fn all(
    config: &WriterConfig,
    plan: &Plan,
    catalog: &Catalog,
) -> Result<usize, ArchiveError> {
    let mut copiers = Vec::new();
    for part in Part::ALL {
        let mut copier = Copier::new(config, part, catalog);
        for (candidate, kept) in plan.candidates.iter().zip(&plan.kept) {
            if candidate.part() == part && !kept.is_empty() {
                copier.copy(
                    candidate,
                    kept.iter().map(|frame| &candidate.frames[*frame]),
                )?;
            }
        }
        if part == Part::Entries {
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

/// Reads frames of a segment, to write them elsewhere.
pub(crate) struct FrameCopier<'a> {
    from: &'a Candidate,
    catalog: &'a Catalog,
    file: Arc<dyn VfsFile>,
    /// Those of the segment, and of the frames that were read.
    pub(crate) provenances: HashMap<ProvenanceId, Arc<EncodedProvenance>>,
}

impl<'a> FrameCopier<'a> {
    pub(crate) fn open(from: &'a Candidate, catalog: &'a Catalog) -> Result<Self, ArchiveError> {
        let path = &from.segment.path;
        let file = catalog.vfs.open(path);
        Ok(Self {
            from,
            catalog,
            file: Arc::from(file.map_err(|error| ArchiveError::io("reading", path, error))?),
            provenances: from.provenances.clone(),
        })
    }

    /// A frame, as it is to be written.
    pub(crate) fn frame(&mut self, info: &FrameInfo) -> Result<NewFrame, ArchiveError> {
        let segment = &self.from.segment;
        let failed = |error| ArchiveError::io("reading", &segment.path, error);
        let found = frame::read_at(&*self.file, segment, info.at).map_err(failed)?;
        let changed = || failed(io::ErrorKind::InvalidData.into());
        let (header, body) = found.ok_or_else(changed)?;
        let length = header.payload(&body).ok_or_else(changed)?;
        let payload = Payload::Copied {
            from: Arc::clone(&self.file),
            at: info.end.saturating_sub(length),
            length,
        };
        let body = self.body(&header, header.content(&body))?;
        let frame = NewFrame::with_payload(self.from.part(), header, body, payload);
        let frame = frame.map_err(ArchiveError::Other)?;
        Ok(match &info.content {
            FrameContent::Mark(mark) => frame.with_mark(mark.clone()),
            _ => frame,
        })
    }

    /// An entry may share its provenance with others there. One whose provenance is missing is copied as it is.
    fn body(&mut self, header: &FrameHeader, content: &[u8]) -> Result<Body, ArchiveError> {
        let is_entry = header.kind() == Some(FrameKind::Entry);
        let Some((elements, provenance, rest)) = split_entry(content).filter(|_| is_entry) else {
            return Ok(Body::Bytes(content.to_vec()));
        };
        let provenance = match provenance {
            Ok(id) => match self.shared(&id) {
                Err(Trouble::Damaged(_)) => return Ok(Body::Bytes(content.to_vec())),
                shared => shared.map_err(ArchiveError::from)?,
            },
            Err(bytes) => EncodedProvenance::new(bytes.to_vec()),
        };
        Ok(Body::Entry {
            elements,
            provenance,
            rest: rest.to_vec(),
        })
    }

    fn shared(&mut self, id: &ProvenanceId) -> Result<Arc<EncodedProvenance>, Trouble> {
        if let Some(known) = self.provenances.get(id) {
            return Ok(Arc::clone(known));
        }
        let encoded = EncodedProvenance::new(self.catalog.provenance_bytes(id)?);
        self.provenances.insert(*id, Arc::clone(&encoded));
        Ok(encoded)
    }
}

/// New segments of one part. They are removed again unless they are taken.
struct Copier<'a> {
    config: &'a WriterConfig,
    catalog: &'a Catalog,
    writer: SegmentWriter,
    sealed: Vec<Arc<Segment>>,
    /// What was put there, in this order.
    put: Vec<(FrameHeader, Option<&'a FrameContent>)>,
    /// All files that were begun.
    begun: Vec<PathBuf>,
}

impl<'a> Copier<'a> {
    fn new(config: &'a WriterConfig, part: Part, catalog: &'a Catalog) -> Self {
        Self {
            config,
            catalog,
            writer: SegmentWriter::new(part),
            sealed: Vec::new(),
            put: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// Copies frames of a segment, in the order of their places.
    fn copy(
        &mut self,
        from: &Candidate,
        frames: impl Iterator<Item = &'a FrameInfo>,
    ) -> Result<(), ArchiveError> {
        let mut copier = FrameCopier::open(from, self.catalog)?;
        for info in frames {
            self.put(&copier.frame(info)?, Some(&info.content))?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        frame: &NewFrame,
        content: Option<&'a FrameContent>,
    ) -> Result<(), ArchiveError> {
        self.writer.put(frame, self.config)?;
        if let Some((segment, _)) = self.writer.durable().last()
            && self.begun.last() != Some(&segment.path)
        {
            self.begun.push(segment.path.clone());
        }
        self.put.push((frame.header, content));
        if self.writer.length() >= self.config.segment_size {
            self.seal()?;
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), ArchiveError> {
        self.writer.sync(self.config)?;
        let sealed = self.writer.seal(0);
        self.sealed.extend(sealed.map(|(segment, _)| segment));
        Ok(())
    }

    /// Makes all of it durable, reads it back and gives how many segments it is.
    fn finish(&mut self) -> Result<usize, ArchiveError> {
        self.seal()?;
        let mut back = Vec::new();
        for segment in &self.sealed {
            back.extend(self.read_back(segment)?);
        }
        let is_same = |(put, back): (&(FrameHeader, Option<&FrameContent>), &FrameInfo)| {
            match put.1 {
                Some(content) => put.0.is_copied_as(&back.header) && *content == back.content,
                // Uses, which were put together anew: the length is not known before they are written.
                None => matches!(back.content, FrameContent::Uses(_)),
            }
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
    fn read_back(&self, segment: &Arc<Segment>) -> Result<Vec<FrameInfo>, ArchiveError> {
        let vfs = &self.config.vfs;
        let failed = |error| ArchiveError::io("reading back", &segment.path, error);
        let file = vfs.open(&segment.path).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let header = scan::open(&**vfs, &segment.path).map_err(failed)?;
        let block = IndexBlock::read(segment, &*file, length).map_err(failed)?;
        if !matches!(header, Some(Ok(found)) if found.id == segment.id) || block.is_none() {
            return Ok(Vec::new());
        }
        let back = Candidate::survey(self.catalog, Arc::clone(segment), 0, true);
        let mut frames = back.map_err(failed)?.frames;
        frames.retain(|info| info.content != FrameContent::OfSegment);
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
        let given_up = self.writer.durable().map(|(segment, _)| &segment.path);
        for path in self.begun.iter().chain(given_up) {
            // What is left if this fails holds copies, and does no harm.
            let _ = self.config.vfs.remove(path);
        }
    }
}
