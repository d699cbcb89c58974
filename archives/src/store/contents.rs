//! Copies of contents that are in the store already: a save refers to one of them, and need not write it.
//!
//! A copy may be lost before the save is acknowledged: its segment failed after all, or a compaction drops it that found nothing
//! which needs it. So the save looks for it once more when all else is durable, and writes the content anew if it may be gone.

use std::collections::HashSet;

use sde::{ArchiveError, Key, OutputFile};

use crate::catalog::index::Place;
use crate::catalog::segments::KnownSegment;
use crate::locks::lock;
use crate::store::DirStore;
use crate::writer::encode::{EncodedBatch, content_frame};
use crate::writer::frame::{Payload, changed};

impl DirStore {
    /// A copy that a save may refer to: durable, and whole as far as its header tells. Its bytes are not read: where they are
    /// damaged the result that refers to it is computed again, as one whose own copy is damaged.
    pub(crate) fn copy_of(&self, key: &Key) -> Option<Place> {
        let copies = self.0.catalog.known(|index| index.contents(key));
        let mut copies = copies.into_iter().map(|copy| copy.place);
        copies.find(|copy| self.is_durable(copy) && self.0.catalog.is_content(copy, key))
    }

    /// Whether all that is in the segment of a copy is durable, or is with the next save. A segment that has no index may be
    /// one whose writer could not sync it: a second sync says nothing then.
    pub(crate) fn is_durable(&self, copy: &Place) -> bool {
        let inner = &*self.0;
        let id = &copy.segment.id;
        if inner.team.get().is_some() {
            // What is in others is handed over, and goes.
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

    /// Syncs what another has sealed, once: it may be somebody's copy of a file.
    fn make_durable(&self, known: &KnownSegment) -> bool {
        let part = HashSet::from([known.segment.part]);
        let named = self.sync_names(&part);
        named.and_then(|()| self.sync_foreign(known)) == Ok(true)
    }

    /// Leaves out of what is to be written the contents of which a copy has come since they were encoded.
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

    /// Writes those contents anew whose copies are lost. Gives why one can't be had any more.
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
            // A compaction that goes on may have looked before this save wrote, and will say later what it replaces.
            let alone = self.lock_against_compactions();
            may_be_dropped = !matches!(alone, Ok(Some(_)));
            drop(alone);
            // What one has replaced that was done before.
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
