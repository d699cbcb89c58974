//! Saving a batch: encoded while it is written, or before.

use std::sync::Arc;

use sde::{ArchiveError, Batch, EncodedSave, Saved};

use crate::format::class::Class;
use crate::locks::lock;
use crate::store::DirStore;
use crate::writer::encode::{Accepts, BatchEncoder};
use crate::writer::frame::NewFrame;
use crate::writer::group_commit::Until;
use crate::writer::pipeline::PipelinedWriter;

/// What a batch has, and why values were left out.
type Frames = (Vec<NewFrame>, Vec<ArchiveError>);

impl DirStore {
    /// Writes what a batch has and is not there; gives why values were left out.
    pub(crate) fn write_batch(
        &self,
        batch: &Batch,
        until: Until,
    ) -> Result<Vec<ArchiveError>, ArchiveError> {
        let accepts = self.accepts();
        std::thread::scope(|scope| {
            let save = PipelinedWriter::new(&self.0.writer, until, scope);
            let (_, left_out) = self.encode_batch(batch, &accepts, Some(save))?;
            Ok(left_out)
        })
    }

    /// What a batch has and is not there, as frames, if nothing writes them meanwhile; and why values were left out.
    fn encode_batch<'scope, 'env: 'scope>(
        &'env self,
        batch: &Batch,
        accepts: &'env Accepts<'env>,
        save: Option<PipelinedWriter<'scope, 'env>>,
    ) -> Result<Frames, ArchiveError> {
        let inner = &*self.0;
        let (writer, catalog, provenances) = (&inner.writer, &*inner.catalog, &inner.provenances);
        let mut encoder = BatchEncoder::new(catalog, provenances, writer, save, accepts);
        encoder.batch(batch, |entry| writer.through.has(entry))?;
        encoder.finish()
    }

    /// Makes a batch durable by what writes it, which is done once more if room had to be made.
    pub(crate) fn save_by(
        &self,
        batch: &Batch,
        write: impl Fn() -> Result<Vec<ArchiveError>, ArchiveError>,
    ) -> Result<Saved, ArchiveError> {
        let inner = &*self.0;
        inner.writer.check_through();
        let saved = self.with_room(&inner.room.retention, &mut 0, write);
        if saved.is_err() {
            self.check_there()?;
        }
        let left_out = saved?;
        inner.writer.through.saved(batch);
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
        let (frames, left_out) = self.encode_batch(batch, &self.accepts(), None)?;
        let frames = Arc::new(frames);
        Ok(Box::new(move || {
            self.save_by(batch, || {
                let save = self.0.writer.begin_entries(Until::Durable);
                save.finish(Arc::clone(&frames))?;
                Ok(left_out.clone())
            })
        }))
    }

    fn accepts(&self) -> impl Fn(&str, Class, u64) -> bool {
        |app, class, bytes| self.0.room.retention.accepts(app, class, bytes)
    }
}
