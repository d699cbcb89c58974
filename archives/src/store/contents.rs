//! Copies of contents that the store has already: a save refers to one instead of writing it.
//!
//! A copy may be lost before the save is acknowledged: its segment fails after all, or a compaction finds no entry
//! that needs it. So the save checks the copy once more when all else is durable, and writes the content if it may
//! be gone.

use std::collections::HashSet;

use sde::archiver::ArchiveError;
use sde::{Key, OutputFile};

use crate::catalog::index::Place;
use crate::catalog::segments::KnownSegment;
use crate::locks::lock;
use crate::store::DirStore;
use crate::writer::encode::{EncodedBatch, content_frame};
use crate::writer::frame::{Payload, changed};

impl DirStore {
    /// A copy that a save may refer to: durable, and whole by its header. Its bytes are not read: if they are
    /// damaged the result that refers to it is computed again, as with damage to a copy of its own.
    pub(crate) fn copy_of(&self, key: &Key) -> Option<Place> {
        let copies = self.0.catalog.known(|index| index.contents(key));
        let mut copies = copies.into_iter().map(|copy| copy.place);
        copies.find(|copy| self.is_durable(copy) && self.0.catalog.is_content(copy, key))
    }

    /// Whether the segment of a copy is durable, or will be with the next save. For an unsealed segment of another
    /// writer the answer is no: its writer's sync may have failed, and a second sync proves nothing.
    pub(crate) fn is_durable(&self, copy: &Place) -> bool {
        let inner = &*self.0;
        let id = &copy.segment.id;
        if inner.team.get().is_some() {
            // Ranks' journals are handed over and removed, so only one still written to counts.
            return inner.writer.is_written_to(id);
        }
        if inner.durable_ends().contains_key(id) {
            return true;
        }
        let (known, is_durable) = {
            let segments = lock(&inner.catalog.segments);
            let known = segments.known().find(|one| one.segment.id == *id);
            let is_durable = known.as_ref().is_some_and(|one| segments.is_durable(one));
            (known.filter(|_| !segments.doubted.contains(id)), is_durable)
        };
        known.is_some_and(|known| known.sealed && (is_durable || self.make_durable(&known)))
    }

    /// Syncs another's sealed segment, once for each file: a file may be a person's copy.
    fn make_durable(&self, known: &KnownSegment) -> bool {
        let part = HashSet::from([known.segment.part]);
        let named = self.sync_names(&part);
        named.and_then(|()| self.sync_foreign(known)) == Ok(true)
    }

    /// Drops from the batch those contents of which a copy was written since it was encoded.
    pub(crate) fn leave_out_copied(&self, encoded: &mut EncodedBatch) {
        let EncodedBatch { frames, copies, .. } = encoded;
        frames.retain(|frame| {
            let Payload::File(file) = &frame.payload else {
                return true;
            };
            let copy = self.copy_of(&frame.header.key);
            copies.extend(copy.clone().map(|copy| (file.clone(), copy)));
            copy.is_none()
        });
    }

    /// Writes contents whose copies are lost. Gives an error for each that can't be had any more.
    pub(crate) fn write_lost(
        &self,
        copies: &[(OutputFile, Place)],
    ) -> Result<Vec<ArchiveError>, ArchiveError> {
        if copies.is_empty() {
            return Ok(Vec::new());
        }
        let inner = &*self.0;
        let own = inner.durable_ends();
        let is_written_to = |copy: &Place| inner.writer.is_written_to(&copy.segment.id);
        let mut may_be_dropped = false;
        if !copies.iter().all(|(_, copy)| is_written_to(copy)) {
            // A compaction in progress may have looked before this save wrote, and commit later what it replaces.
            let alone = self.lock_against_compactions();
            may_be_dropped = !matches!(alone, Ok(Some(_)));
            drop(alone);
            // Segments that a finished compaction has replaced.
            inner.catalog.look_at_manifests()?;
        }
        let is_lost = |copy: &Place| {
            let (id, path) = (&copy.segment.id, &copy.segment.path);
            let is_durable = own.get(id).is_none_or(|end| copy.at < *end);
            let is_replaced = lock(&inner.catalog.segments).first(id) > copy.at;
            let is_gone = !matches!(inner.vfs().look(path), Ok(Some(_)));
            !is_durable || !is_written_to(copy) && (may_be_dropped || is_replaced || is_gone)
        };
        let (mut frames, mut left_out) = (Vec::new(), Vec::new());
        for (file, _) in copies.iter().filter(|(_, copy)| is_lost(copy)) {
            match content_frame(&inner.catalog, file) {
                Ok(frame) if file.is_unchanged().unwrap_or(false) => frames.push(frame),
                _ => left_out.push(ArchiveError::Other(changed(file))),
            }
        }
        if !frames.is_empty() {
            inner.writer.begin().finish(frames)?;
        }
        Ok(left_out)
    }
}
