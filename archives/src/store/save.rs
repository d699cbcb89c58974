//! Saves a batch: encoded first, then written by any thread.

use std::sync::Arc;

use sde::Key;
use sde::archiver::{ArchiveError, Batch, EncodedSave, Saved};

use crate::locks::lock;
use crate::store::DirStore;
use crate::writer::encode::{BatchEncoder, EncodedBatch};
use crate::writer::unsynced::{Abandoned, EntryId, id};

/// The frames of a batch that the store lacks.
pub(crate) struct NewInBatch {
    pub(crate) encoded: EncodedBatch,
    /// The entries that were written through but are not durable yet, with the count of abandoned segments before.
    unsynced: (Vec<EntryId>, Option<Abandoned>),
}

impl DirStore {
    /// Encodes the part of a batch that the store lacks.
    pub(crate) fn encode_batch(&self, batch: &Batch) -> NewInBatch {
        let inner = &*self.0;
        inner.writer.check_unsynced();
        let known = &inner.writer.unsynced;
        let (abandoned, mut unsynced) = (known.abandoned(), Vec::new());
        let copy_of = |key: &Key| self.copy_of(key);
        let retention = &inner.room.retention;
        let mut encoder =
            BatchEncoder::new(&inner.catalog, &inner.provenances, retention, &copy_of);
        encoder.batch(batch, |entry| {
            let is_there = known.has(entry);
            unsynced.extend(is_there.then(|| id(entry)));
            is_there
        });
        let abandoned = abandoned.filter(|_| !unsynced.is_empty());
        let encoded = encoder.encoded;
        NewInBatch {
            encoded,
            unsynced: (unsynced, abandoned),
        }
    }

    /// Encodes a batch; gives the function that makes it durable, which retries after room had to be made. A store
    /// opened for reading only can't save, but accepts entries that were loaded from it.
    pub(crate) fn encode_to_save(&self, batch: &Batch) -> Result<EncodedSave<'_>, ArchiveError> {
        let is_saved = self.0.read_only && !batch.entries.is_empty() && self.has_all(batch)?;
        if !is_saved {
            self.check_writable()?;
        }
        if is_saved || batch.is_empty() {
            return Ok(Box::new(|| Ok(Saved::default())));
        }
        let new = self.encode_batch(batch);
        Ok(Box::new(move || self.save_encoded(new)))
    }

    fn save_encoded(&self, new: NewInBatch) -> Result<Saved, ArchiveError> {
        let inner = &*self.0;
        let NewInBatch {
            mut encoded,
            unsynced: (unsynced, abandoned),
        } = new;
        // A batch saved since may have written these contents.
        self.leave_out_copied(&mut encoded);
        let (frames, copies) = (Arc::new(encoded.frames), encoded.copies);
        let saved = self.with_room(&inner.room.retention, &mut 0, || {
            if abandoned.is_some_and(|before| before != inner.writer.abandoned()) {
                // A retry can't bring the lost segment back.
                let why =
                    "what it rests on is lost with a segment that could not be written; save again";
                return Err(ArchiveError::Other(why.to_owned()));
            }
            let save = inner.writer.begin_after(abandoned);
            save.finish(Arc::clone(&frames))?;
            self.write_lost(&copies)
        });
        if saved.is_err() {
            self.check_there()?;
        }
        encoded.left_out.extend(saved?);
        inner.writer.unsynced.are_durable(&unsynced);
        *lock(&inner.unvouched) = true;
        if inner.writer.has_full() {
            self.begin_upkeep();
        }
        Ok(Saved::without(encoded.left_out))
    }
}
