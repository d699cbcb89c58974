//! Saving a batch: encoded while it is written, or before.

use std::sync::Arc;

use sde::{ArchiveError, Batch, EncodedSave, Key, Saved};

use crate::locks::lock;
use crate::store::DirStore;
use crate::writer::encode::{BatchEncoder, CopyOf, EncodedBatch};
use crate::writer::group_commit::Until;
use crate::writer::pipeline::PipelinedWriter;

impl DirStore {
    /// Makes durable what a batch has and is not there; gives why values were left out.
    pub(crate) fn write_batch(&self, batch: &Batch) -> Result<Vec<ArchiveError>, ArchiveError> {
        let mut written = self.write_until(batch, Until::Durable)?;
        written.left_out.extend(self.write_lost(&written.copies)?);
        Ok(written.left_out)
    }

    /// Writes what a batch has and is not there.
    pub(crate) fn write_until(
        &self,
        batch: &Batch,
        until: Until,
    ) -> Result<EncodedBatch, ArchiveError> {
        let copy_of = |key: &Key| self.copy_of(key);
        // Before anything is left out for being written through.
        let save = self.0.writer.begin_entries(until);
        std::thread::scope(|scope| {
            let save = PipelinedWriter::new(save, scope);
            self.encode_batch(batch, &copy_of, Some(save))
        })
    }

    /// What a batch has and is not there. What is encoded in advance has all: what was written through may be lost until it is
    /// saved.
    fn encode_batch<'scope, 'env: 'scope>(
        &'env self,
        batch: &Batch,
        copy_of: &'env CopyOf<'env>,
        save: Option<PipelinedWriter<'scope, 'env>>,
    ) -> Result<EncodedBatch, ArchiveError> {
        let inner = &*self.0;
        let (writer, catalog, provenances) = (&inner.writer, &*inner.catalog, &inner.provenances);
        let retention = &inner.room.retention;
        let is_written = save.is_some();
        let mut encoder = BatchEncoder::new(catalog, provenances, writer, save, retention, copy_of);
        encoder.batch(batch, |entry| is_written && writer.unsynced.has(entry))?;
        encoder.finish()
    }

    /// Makes a batch durable by what writes it, which is done once more if room had to be made.
    pub(crate) fn save_by(
        &self,
        batch: &Batch,
        write: impl Fn() -> Result<Vec<ArchiveError>, ArchiveError>,
    ) -> Result<Saved, ArchiveError> {
        let inner = &*self.0;
        let saved = self.with_room(&inner.room.retention, &mut 0, || {
            inner.writer.check_unsynced();
            write()
        });
        if saved.is_err() {
            self.check_there()?;
        }
        let left_out = saved?;
        inner.writer.unsynced.saved(batch);
        *lock(&inner.unvouched) = true;
        if inner.writer.has_full() {
            self.begin_upkeep();
        }
        Ok(Saved::without(left_out))
    }

    /// Encodes a batch; gives what makes it durable.
    pub(crate) fn encode_to_save<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> Result<EncodedSave<'a>, ArchiveError> {
        let copy_of = |key: &Key| self.copy_of(key);
        let encoded = self.encode_batch(batch, &copy_of, None)?;
        Ok(Box::new(move || {
            self.save_by(batch, || {
                let save = self.0.writer.begin();
                save.finish(Arc::clone(&encoded.frames))?;
                let lost = self.write_lost(&encoded.copies)?;
                Ok(encoded.left_out.iter().cloned().chain(lost).collect())
            })
        }))
    }
}
