//! Saving new entries.
//!
//! A store may be removed while a program is saving to it. The entries that are still in memory are then saved again,
//! as if they were new. The rest is lost, so the save that finds it out is an error all the same.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Engine;
use crate::checkpoint::{Archiver, Batch, EncodedSave, Replaced, SavePolicy, Saved, Selection};
use crate::entry::Entry;
use crate::error::{ArchiveError, Error, ErrorKind, panic_message};
use crate::event::Event;
use crate::key::Key;
use crate::ranks::part_key;
use crate::result_map::Tags;

/// A new entry that is to be on the disk before anybody gets it.
pub(crate) struct NewSave {
    archiver: Arc<dyn Archiver>,
    batch: Batch,
}

impl NewSave {
    /// Calls the code by which the values' types turn into bytes.
    pub(crate) fn encode(&self) -> Encoded<'_> {
        let encoded = caught(|| self.archiver.encode(&self.batch))?;
        Ok(encoded.unwrap_or_else(|| Box::new(|| self.archiver.save(&self.batch))))
    }
}

/// A new entry in bytes.
pub(crate) type Encoded<'a> = Result<EncodedSave<'a>, ArchiveError>;

/// The store's answer to a batch, and how long it took.
pub(super) type Written = Result<(Saved, Duration), ArchiveError>;

/// The outcome of saving a new entry, which is still to be told.
#[derive(Default)]
pub(crate) struct NewSaved {
    written: Option<Written>,
    /// To be dropped when it is told.
    _replaced: Option<Replaced>,
}

thread_local! {
    /// Whether this thread writes a result that others wait for.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread writes a result that others wait for: a call of the engine may then wait for itself.
pub(super) fn is_writing() -> bool {
    WRITES.get()
}

impl Engine {
    /// The save of a new entry, where each is saved before anybody gets it.
    pub(crate) fn new_save(&self, entry: &Arc<Entry>) -> Option<NewSave> {
        let is_each = self.policy == SavePolicy::EveryResult;
        let archiver = is_each.then(|| self.archiver()).flatten()?;
        let batch = Batch::of(Selection::Checkpoint, [Arc::clone(entry)]);
        Some(NewSave { archiver, batch })
    }

    /// Takes note of a new entry, and writes it where that is the policy. No code of users runs.
    pub(crate) fn save_new(&self, entry: &Arc<Entry>, encoded: Option<Encoded<'_>>) -> NewSaved {
        self.sets.note_fresh(&entry.record.app, entry.record.key);
        self.save_entry(entry, encoded)
    }

    /// Takes note of an entry that is not saved yet, and writes it where that is the policy. No code of users runs.
    pub(super) fn save_entry(&self, entry: &Arc<Entry>, encoded: Option<Encoded<'_>>) -> NewSaved {
        let Some(archiver) = self.archiver() else {
            return NewSaved::default();
        };
        let replaced = match entry.kept_failure() {
            // An archive has results.
            Some(_) => self.pending.add_to(Selection::Checkpoint, entry),
            None => self.pending.add(entry),
        };
        let written = encoded.map(|encoded| write_encoded(encoded?));
        if matches!(written, Some(Ok(_))) {
            self.are_saved(
                &*archiver,
                Selection::Checkpoint,
                std::slice::from_ref(entry),
            );
        }
        NewSaved {
            written,
            _replaced: Some(replaced),
        }
    }

    pub(crate) fn tell_new(&self, entry: &Entry, saved: NewSaved) {
        let Some(written) = saved.written else {
            return;
        };
        if let Err(error) = self.tell_written(Selection::Checkpoint, (1, 0), written) {
            self.warn(|| {
                let (app, what) = (&entry.record.app, entry.kept_failure());
                let (key, what) = match what {
                    Some(failure) => (failure.of, "failed, and that"),
                    None => (entry.record.key, "was computed but"),
                };
                let key = key.short();
                format!(
                    "{app} [{key}] {what} could not be saved: {error:#}; the next save tries again"
                )
            });
        }
    }

    /// Takes entries off the lists of pending ones.
    pub(super) fn are_saved(
        &self,
        archiver: &dyn Archiver,
        selection: Selection,
        entries: &[Arc<Entry>],
    ) {
        let has_all = |entry: &Entry| {
            let mut tags = entry.results.iter().map(|named| named.tags);
            match selection {
                // An entry without archived results still goes to an archive, with its record.
                Selection::Checkpoint => tags.any(Tags::is_archived),
                Selection::Archive => tags.all(|one| !one.is_checkpointed() || one.is_archived()),
            }
        };
        let is_one_store = archiver.is_one_store();
        let this = std::slice::from_ref(&selection);
        let of = |entry| {
            if is_one_store && has_all(entry) {
                &Selection::BOTH
            } else {
                this
            }
        };
        for entry in entries {
            if of(entry) == Selection::BOTH {
                entry.forget_inputs();
                entry.release_files();
            }
            self.count_as_saved(&entry.record);
        }
        self.pending
            .forget(entries.iter().map(|entry| (of(entry), entry)));
    }

    /// The keys that entries of these keys are saved under. A collective result has a part for each rank, and a list of
    /// the parts. Parts come first: a list must not be stored without them.
    pub(super) fn saved_under(&self, keys: impl Iterator<Item = Key>) -> Vec<Key> {
        let keys: Vec<Key> = keys.collect();
        let ranks: BTreeSet<usize> = self.sets.all().iter().map(|set| set.rank()).collect();
        let parts = ranks
            .iter()
            .flat_map(|rank| keys.iter().map(|key| part_key(key, *rank)));
        parts.chain(keys.iter().copied()).collect()
    }

    /// Saves pending entries that are about to leave memory. An entry that can't be saved stays on the list of pending
    /// ones.
    pub(super) fn save_before_dropping(&self, keys: impl Iterator<Item = Key>) {
        let Some(archiver) = self.archiver().filter(|_| self.policy != SavePolicy::Never) else {
            return;
        };
        let all = self.saved_under(keys);
        for selection in Selection::BOTH {
            let entries = self.pending.of(selection, &all);
            if entries.is_empty() {
                continue;
            }
            let batch = Batch::of(selection, entries.iter().cloned());
            let saved = self.write_one(&*archiver, &batch);
            let has_failed_before = self.evictions_fail.swap(saved.is_err(), Ordering::Relaxed);
            match saved {
                Ok(_) => self.are_saved(&*archiver, selection, &entries),
                Err(_) if has_failed_before => return,
                Err(error) => {
                    let what = "what was to be evicted could not be saved, and stays";
                    return self.warn(|| format!("{what}: {error:#}"));
                }
            }
        }
    }

    /// Saves the new entries of one selection, for a caller that waits for it or not; if the store was removed, all in
    /// memory.
    pub(super) fn save(&self, selection: Selection, is_awaited: bool) -> Result<(), Error> {
        let saved = self.save_new_ones(selection, is_awaited);
        let is_removed = |error: &Error| match error.kind() {
            ErrorKind::Archive { source, .. } => matches!(source, ArchiveError::Removed { .. }),
            _ => false,
        };
        if saved.as_ref().is_err_and(is_removed) {
            self.save_new_ones(selection, is_awaited)?;
        }
        saved
    }

    pub(crate) fn archive_to(&self, dir: &Path) -> Result<(), Error> {
        let archiver = self.store_to("archive")?;
        archiver.archive_to(dir).map_err(|source| {
            let doing = format!("archiving {} to {}", archiver.describe(), dir.display());
            ErrorKind::Archive { doing, source }.into()
        })
    }

    pub(super) fn write_one(
        &self,
        archiver: &dyn Archiver,
        batch: &Batch,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let kind = batch.selection.name();
        let stretch = crate::stretch!("save", kind, entries = batch.entries.len());
        let written = write(archiver, batch);
        if written.is_ok() {
            stretch.end("saved");
        }
        let counts = (batch.entries.len(), batch.scratch.len());
        self.tell_written(batch.selection, counts, written)
    }

    /// Tells the outcome of a save. Each value that had to be left out is warned of; the first such error is given
    /// back.
    pub(super) fn tell_written(
        &self,
        selection: Selection,
        (entries, scratch): (usize, usize),
        written: Written,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let (saved, took) = written.inspect_err(|error| self.look_whether_removed(error))?;
        if let Some(sharing) = &self.sharing {
            sharing.announcer.note_saved();
        }
        for error in &saved.left_out {
            self.warn(|| format!("{error:#}"));
        }
        let kind = selection.name();
        tracing::info!(target: "sde", entries, scratch, ?took, "saved the {kind}");
        self.tell(|| Event::Saved {
            kind: selection.name(),
            entries,
            scratch,
            took,
        });
        Ok(saved.left_out.into_iter().next())
    }

    /// If a save failed because the store was removed, all in memory counts as not saved yet. Parts of distributed results
    /// are left out: all ranks would have to save theirs.
    pub(super) fn look_whether_removed(&self, error: &ArchiveError) {
        if !matches!(error, ArchiveError::Removed { .. }) {
            return;
        }
        for cache in self.caches.all() {
            for entry in cache.entries() {
                drop(self.pending.add(&entry.holding()));
            }
            cache.scratches.none_is_saved();
        }
        let marks = self.invalidations.all().into_iter();
        marks.for_each(|mark| self.pending.add_mark(mark));
    }
}

pub(super) fn write(archiver: &dyn Archiver, batch: &Batch) -> Written {
    let start = Instant::now();
    let saved = caught(|| archiver.save(batch))?;
    Ok((saved, start.elapsed()))
}

/// Has the store write an encoded batch. The engine gives an error to whatever asks it for something here.
pub(super) fn write_encoded(write: EncodedSave<'_>) -> Written {
    let start = Instant::now();
    WRITES.set(true);
    let saved = caught(write);
    WRITES.set(false);
    Ok((saved?, start.elapsed()))
}

/// The store's answer. A panic becomes an error: nothing counts as saved, and the thread goes on.
pub(super) fn caught<T>(ask: impl FnOnce() -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
    let said = catch_unwind(AssertUnwindSafe(ask));
    said.unwrap_or_else(|panic| {
        let message = panic_message(&*panic);
        Err(ArchiveError::Other(format!(
            "the store panicked: {message}"
        )))
    })
}
