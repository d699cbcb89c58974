//! Saving what is new.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLockWriteGuard};
use std::time::{Duration, Instant};

use super::Engine;
use crate::cache::Entry;
use crate::checkpoint::{Archiver, Batch, SavePolicy, Saved, Selection, saved};
use crate::error::{ArchiveError, Error, ErrorKind};
use crate::event::Event;
use crate::key::Key;
use crate::process_group::{Act, Notice, Ranks};

impl Engine {
    /// Takes note of a new entry, and saves it at once where that is the policy.
    pub(super) fn save_new(&self, entry: &Arc<Entry>) {
        self.sets.note_fresh(&entry.record.app, entry.record.key);
        let Some(archiver) = self.archiver() else {
            return;
        };
        self.pending.add(entry);
        if self.policy != SavePolicy::EveryResult {
            return;
        }
        let batch = Batch {
            selection: Selection::Checkpoint,
            entries: vec![saved(entry, Selection::Checkpoint)],
            scratch: Vec::new(),
            marks: Vec::new(),
        };
        match self.write_one(&*archiver, &batch) {
            Ok(_) => self.pending.forget(Selection::Checkpoint, entry),
            Err(error) => self.warn(|| {
                format!(
                    "{} [{}] was computed but could not be saved: {error}; the next save tries again",
                    entry.record.app,
                    entry.record.key.short()
                )
            }),
        }
    }

    /// Saves what is new in one selection. Of several threads the first saves, the
    /// rest find nothing left to do.
    pub(super) fn save_new_ones(&self, selection: Selection) -> Result<(), Error> {
        let doing = selection.name();
        // From the collecting on: whoever comes second and finds nothing left must
        // not say that it is saved before it is.
        let one_at_a_time = self.saving();
        let archiver = self.archiver().ok_or(ErrorKind::NoStore { doing })?;
        let (entries, marks) = self.pending.take(selection);
        let batch = Batch {
            selection,
            entries: entries
                .iter()
                .map(|entry| saved(entry, selection))
                .collect(),
            scratch: match selection {
                Selection::Checkpoint => self.unsaved_scratch(),
                Selection::Archive => Vec::new(),
            },
            marks,
        };
        let written = match batch.is_empty() {
            true => Ok((Saved::default(), Duration::ZERO)),
            false => write(&*archiver, &batch),
        };
        // Also if nothing was left to write: results may have been saved one by one.
        let committed = written.and_then(|written| archiver.commit(selection).map(|()| written));
        if let Err(error) = &committed {
            let marks = batch.marks.clone();
            self.pending.put_back(selection, entries, marks);
            for cache in self.caches.all() {
                let keys = batch.scratch.iter().map(|scratch| scratch.key);
                cache.scratches.put_back(keys);
            }
            self.look_whether_removed(error);
        }
        drop(one_at_a_time);
        let failed = match &committed {
            Ok(_) if batch.is_empty() => None,
            _ => self.tell_written(&batch, committed).unwrap_or_else(Some),
        };
        failed.map_or(Ok(()), |source| {
            let doing = format!("saving the {doing} to {}", archiver.describe());
            Err(ErrorKind::Archive { doing, source }.into())
        })
    }

    /// Has the store write its results elsewhere.
    pub(super) fn archive_to(&self, dir: &Path) -> Result<(), Error> {
        let doing = "archive";
        let archiver = self.archiver().ok_or(ErrorKind::NoStore { doing })?;
        archiver.archive_to(dir).map_err(|source| {
            let doing = format!("archiving {} to {}", archiver.describe(), dir.display());
            ErrorKind::Archive { doing, source }.into()
        })
    }

    /// The same where all ranks name the directory: the first writes it for all.
    pub(super) fn archive_for_all(&self, ranks: &Ranks, dir: &Path) -> Result<(), Error> {
        let named = blake3::hash(dir.as_os_str().as_encoded_bytes());
        let what = format!("an archive in {}", dir.display());
        let notice = Notice::new(Act::Save, Key::from_bytes(*named.as_bytes()), &*what);
        ranks.meet(&notice)?;
        let written = match ranks.rank() {
            0 => self.archive_to(dir),
            _ => Ok(()),
        };
        ranks.agree(&what, written)
    }

    /// Held by whoever saves all that is new, or exchanges the store.
    pub(super) fn saving(&self) -> RwLockWriteGuard<'_, ()> {
        self.saving.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write_one(
        &self,
        archiver: &dyn Archiver,
        batch: &Batch,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        // Many threads at once: the store may write them together.
        let same_store = self.saving.read().unwrap_or_else(PoisonError::into_inner);
        let written = write(archiver, batch);
        drop(same_store);
        self.tell_written(batch, written)
    }

    /// Tells what came of a save. What had to be left out is warned of; the first
    /// such error is given back.
    fn tell_written(
        &self,
        batch: &Batch,
        written: Result<(Saved, Duration), ArchiveError>,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let (saved, took) = written.inspect_err(|error| self.look_whether_removed(error))?;
        for error in &saved.left_out {
            self.warn(|| error.to_string());
        }
        self.tell(|| Event::Saved {
            kind: batch.selection.name(),
            entries: batch.entries.len(),
            scratch: batch.scratch.len(),
            took,
        });
        Ok(saved.left_out.into_iter().next())
    }
}

/// Has the archiver save a batch; what it says, and how long it took.
fn write(archiver: &dyn Archiver, batch: &Batch) -> Result<(Saved, Duration), ArchiveError> {
    let span = tracing::debug_span!("save", kind = batch.selection.name());
    let _in_span = span.enter();
    let start = Instant::now();
    let saved = archiver.save(batch)?;
    Ok((saved, start.elapsed()))
}
