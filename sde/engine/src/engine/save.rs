//! Saving what is new.
//!
//! A store may be removed while a program is saving to it. What the program still has in memory is then saved again, as
//! if it were new. The rest is lost, so the save that finds it out is an error all the same.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Engine;
use crate::app::ThreadContext;
use crate::cache::Entry;
use crate::checkpoint::{Archiver, Batch, EncodedSave, Replaced, SavePolicy, Saved, Selection};
use crate::error::{ArchiveError, Error, ErrorKind, panic_message};
use crate::event::Event;
use crate::key::Key;
use crate::ranks::{CollectiveOp, Header, Ranks, part_key};
use crate::result_map::Named;

/// A new entry that is to be on the disk before anybody gets it.
pub(crate) struct NewSave {
    archiver: Arc<dyn Archiver>,
    batch: Batch,
}

impl NewSave {
    /// Calls the code by which the values' types turn into bytes.
    pub(crate) fn encode(&self) -> Encoded<'_> {
        caught(|| self.archiver.encode(&self.batch))
    }
}

/// A new entry in bytes.
pub(crate) type Encoded<'a> = Result<EncodedSave<'a>, ArchiveError>;

/// What is to be told of a new entry.
#[derive(Default)]
pub(crate) struct NewSaved {
    written: Option<Result<(Saved, Duration), ArchiveError>>,
    /// To be dropped when it is told.
    _replaced: Option<Replaced>,
}

thread_local! {
    /// Whether this thread writes a result that others wait for.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread writes a result that others wait for: what it asks of the engine then may wait for itself.
pub(super) fn is_writing() -> bool {
    WRITES.get()
}

impl Engine {
    /// The way to the store of a new entry, where each is saved before anybody gets it.
    pub(crate) fn new_save(&self, entry: &Arc<Entry>) -> Option<NewSave> {
        let is_each = self.policy == SavePolicy::EveryResult;
        let archiver = is_each.then(|| self.archiver()).flatten()?;
        let batch = Batch::of(Selection::Checkpoint, std::slice::from_ref(entry));
        Some(NewSave { archiver, batch })
    }

    /// Takes note of a new entry, and writes it where that is the policy. No code of users runs.
    pub(crate) fn save_new(&self, entry: &Arc<Entry>, encoded: Option<Encoded<'_>>) -> NewSaved {
        self.sets.note_fresh(&entry.record.app, entry.record.key);
        let Some(archiver) = self.archiver() else {
            return NewSaved::default();
        };
        let replaced = self.pending.add(entry);
        let written = encoded.map(|encoded| {
            let write = encoded?;
            let start = Instant::now();
            WRITES.set(true);
            let saved = caught(write);
            WRITES.set(false);
            Ok((saved?, start.elapsed()))
        });
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

    /// Tells what came of saving a new entry.
    pub(crate) fn tell_new(&self, entry: &Entry, saved: NewSaved) {
        let Some(written) = saved.written else {
            return;
        };
        if let Err(error) = self.tell_written(Selection::Checkpoint, (1, 0), written) {
            self.warn(|| {
                format!(
                    "{} [{}] was computed but could not be saved: {error}; the next save tries again",
                    entry.record.app,
                    entry.record.key.short()
                )
            });
        }
    }

    /// Saves entries on their own.
    fn save_some(
        &self,
        archiver: &dyn Archiver,
        selection: Selection,
        entries: &[Arc<Entry>],
    ) -> Result<(), ArchiveError> {
        let batch = Batch::of(selection, entries);
        self.write_one(archiver, &batch)?;
        self.are_saved(archiver, selection, entries);
        Ok(())
    }

    /// Takes entries off the lists of what is to be saved.
    fn are_saved(&self, archiver: &dyn Archiver, selection: Selection, entries: &[Arc<Entry>]) {
        let tags = |named: &Named| named.tags.unwrap_or_default();
        let has_all = |entry: &Entry| {
            let mut results = entry.results.results().iter();
            match selection {
                // Of an entry without results an archive has the record.
                Selection::Checkpoint => results.any(|named| tags(named).is_archived()),
                Selection::Archive => {
                    results.all(|named| !tags(named).is_checkpointed() || tags(named).is_archived())
                }
            }
        };
        let is_one_store = archiver.is_one_store();
        let this = std::slice::from_ref(&selection);
        let of = |entry| match is_one_store && has_all(entry) {
            true => &Selection::BOTH,
            false => this,
        };
        entries
            .iter()
            .for_each(|entry| self.count_as_saved(&entry.record));
        self.pending
            .forget(entries.iter().map(|entry| (of(entry), entry)));
    }

    /// The keys that entries of these keys are saved under: of what ranks made together a part, and a list of the parts. The
    /// parts first: a list must not be there without them.
    pub(super) fn saved_under(&self, keys: impl Iterator<Item = Key>) -> Vec<Key> {
        let keys: Vec<Key> = keys.collect();
        let ranks: BTreeSet<usize> = self.sets.all().iter().map(|set| set.rank()).collect();
        let parts = ranks
            .iter()
            .flat_map(|rank| keys.iter().map(|key| part_key(key, *rank)));
        parts.chain(keys.iter().copied()).collect()
    }

    /// Saves what is about to be dropped from memory and is to be saved sooner or later. What can't be saved is
    /// held by the list of what is to be saved, and stays.
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
            let saved = self.save_some(&*archiver, selection, &entries);
            let has_failed_before = self.evictions_fail.swap(saved.is_err(), Ordering::Relaxed);
            if let Err(error) = saved {
                if !has_failed_before {
                    self.warn(|| {
                        format!("what was to be evicted could not be saved, and stays: {error}")
                    });
                }
                return;
            }
        }
    }

    /// Saves what is new in one selection, for a caller that waits for it or not; if the store was removed, all that there is.
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

    /// Saves what is new in one selection, in parts: what is told of a long save moves on with each. Of several threads that
    /// do so each part is saved by one.
    fn save_new_ones(&self, selection: Selection, is_awaited: bool) -> Result<(), Error> {
        let doing = selection.name();
        let archiver = self.archiver().ok_or(ErrorKind::NoStore { doing })?;
        let (mut save, mut is_told) = (Save::default(), false);
        let committed = loop {
            let part = self.save_part(&archiver, selection, &mut save);
            // With nothing locked: observers may save too.
            let total = save.total;
            is_told |= total > FIRST_PART;
            if is_told {
                self.tell(|| Event::Progress {
                    label: Arc::from(format!("saving the {doing}")),
                    done: save.entries,
                    // However it ends, that is all there is.
                    total: if matches!(part, Ok(true)) {
                        total
                    } else {
                        save.entries
                    },
                    nested: !is_awaited,
                });
            }
            match part {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let failed = match committed {
            Ok(()) if !save.has_written => None,
            Ok(()) => {
                let counts = (save.entries, save.scratch);
                let written = Ok((Saved::without(save.left_out), save.took));
                self.tell_written(selection, counts, written)
                    .unwrap_or_else(Some)
            }
            Err(error) => {
                self.look_whether_removed(&error);
                Some(error)
            }
        };
        failed.map_or(Ok(()), |source| {
            let doing = format!("saving the {doing} to {}", archiver.describe());
            Err(ErrorKind::Archive { doing, source }.into())
        })
    }

    /// Saves the next part, and says whether there are more; if there are not, what is saved is committed.
    fn save_part(
        &self,
        archiver: &Arc<dyn Archiver>,
        selection: Selection,
        save: &mut Save,
    ) -> Result<bool, ArchiveError> {
        // Dropped when others may save again: destructors may, too.
        let (entries, batch);
        // From the collecting on: a second thread that finds nothing left must
        // not say that it is saved before it is.
        let _turn = self.pending.saver.turn(self.patience_with_saves())?;
        let is_same = |now: Arc<dyn Archiver>| Arc::ptr_eq(&now, archiver);
        if !self.archiver().is_some_and(is_same) {
            // What there was to save is forgotten.
            *save = Save::default();
            return Ok(false);
        }
        // Counted in its turn: another save may have had them in hand, and put them back.
        let put_back = Some(self.pending.put_back_so_far());
        if save.put_back != put_back {
            save.put_back = put_back;
            save.left = self.pending.number(selection);
            save.total = save.entries + save.left;
            save.at_once = FIRST_PART;
        }
        let most = save.at_once.min(save.left);
        let (taken, marks) = self.pending.take(selection, most, PART_BYTES);
        entries = taken;
        let scratch = match selection {
            Selection::Checkpoint if !save.has_written => self.unsaved_scratch(),
            _ => Vec::new(),
        };
        batch = Batch {
            scratch,
            marks,
            ..Batch::of(selection, &entries)
        };
        save.left -= entries.len();
        let is_last = entries.is_empty() || save.left == 0;
        if !batch.is_empty() {
            save.has_written = true;
            match write(&**archiver, &batch) {
                // Not held until all are written: a limit may have dropped them.
                Ok(written) => {
                    self.are_saved(&**archiver, selection, &entries);
                    save.add(&batch, written);
                }
                Err(error) => {
                    if self.archiver().is_some_and(is_same) {
                        self.pending.put_back(selection, entries, batch.marks);
                    }
                    let scratch: Vec<_> = batch.scratch.iter().map(|one| one.key).collect();
                    for cache in self.caches.all() {
                        cache.scratches.put_back(scratch.iter().copied());
                    }
                    return Err(error);
                }
            }
        }
        if is_last {
            // Also if nothing was left to write: results may have been saved one by one.
            let stretch = crate::stretch!("commit", kind = selection.name());
            caught(|| {
                archiver.keep_journal(self.journal());
                self.tell_uses(&**archiver);
                archiver.commit(selection)
            })?;
            stretch.end("committed");
        }
        Ok(!is_last)
    }

    /// How long a save waits for another on this thread. The other may be at a value's own code, which may wait for a run or a job
    /// of rayon's, so where this is one the wait is bounded.
    fn patience_with_saves(&self) -> Option<Duration> {
        let here = ThreadContext::here();
        let may_be_awaited = here.top.is_some() || here.is_on_rayon(None);
        may_be_awaited.then(|| self.rayon_patience.saturating_mul(100))
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
        let header = Header::new(
            CollectiveOp::Save,
            Key::from_bytes(*named.as_bytes()),
            &*what,
        );
        ranks.meet(header)?;
        let written = match ranks.rank() {
            0 => self.archive_to(dir),
            _ => Ok(()),
        };
        ranks.agree(&what, written)
    }

    pub(super) fn write_one(
        &self,
        archiver: &dyn Archiver,
        batch: &Batch,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let written = write(archiver, batch);
        let counts = (batch.entries.len(), batch.scratch.len());
        self.tell_written(batch.selection, counts, written)
    }

    /// Tells what came of a save. What had to be left out is warned of; the first
    /// such error is given back.
    fn tell_written(
        &self,
        selection: Selection,
        (entries, scratch): (usize, usize),
        written: Result<(Saved, Duration), ArchiveError>,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let (saved, took) = written.inspect_err(|error| self.look_whether_removed(error))?;
        if let Some(sharing) = &self.sharing {
            sharing.announcer.is_well();
        }
        for error in &saved.left_out {
            self.warn(|| error.to_string());
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
    fn look_whether_removed(&self, error: &ArchiveError) {
        if !matches!(error, ArchiveError::Removed { .. }) {
            return;
        }
        for cache in self.caches.all() {
            let entries = cache.entries();
            entries
                .iter()
                .for_each(|entry| drop(self.pending.add(entry)));
            cache.scratches.none_is_saved();
        }
        let marks = self.invalidations.all().into_iter();
        marks.for_each(|mark| self.pending.add_mark(mark));
    }
}

/// So many entries are the first part of a save, and all of a short one.
const FIRST_PART: usize = 64;

/// So many are the longest: what a batch says of its entries takes memory too.
const LONGEST_PART: usize = 1 << 14;

/// A part of this many bytes in memory has no more entries: a limit may drop them, and the save holds them.
const PART_BYTES: usize = 16 << 20;

/// What takes less is followed by a longer part.
const QUICK: Duration = Duration::from_millis(250);

/// What takes more is followed by a shorter part.
const SLOW: Duration = Duration::from_secs(1);

/// A save of all that is new, and what it has done so far.
#[derive(Default)]
struct Save {
    /// How many entries there were when it was counted.
    total: usize,
    /// How many of them there are yet.
    left: usize,
    /// How often others had put entries back then.
    put_back: Option<u64>,
    /// How many of them the next part has.
    at_once: usize,
    /// How many are written.
    entries: usize,
    /// How many states of scratch are.
    scratch: usize,
    left_out: Vec<ArchiveError>,
    took: Duration,
    has_written: bool,
}

impl Save {
    fn add(&mut self, batch: &Batch, (saved, took): (Saved, Duration)) {
        self.entries += batch.entries.len();
        self.scratch += batch.scratch.len();
        self.left_out.extend(saved.left_out);
        self.took += took;
        if took < QUICK {
            self.at_once = (4 * self.at_once).min(LONGEST_PART);
        } else if took > SLOW {
            self.at_once = (self.at_once / 4).max(1);
        }
    }
}

/// Has the archiver save a batch; what it says, and how long it took.
fn write(archiver: &dyn Archiver, batch: &Batch) -> Result<(Saved, Duration), ArchiveError> {
    let kind = batch.selection.name();
    let stretch = crate::stretch!("save", kind, entries = batch.entries.len());
    let start = Instant::now();
    let saved = caught(|| archiver.save(batch))?;
    stretch.end("saved");
    Ok((saved, start.elapsed()))
}

/// What a store says. If it panics, that is what it says: what was to be saved is so still, and the thread goes on.
fn caught<T>(ask: impl FnOnce() -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
    let said = catch_unwind(AssertUnwindSafe(ask));
    said.unwrap_or_else(|panic| {
        let message = panic_message(&*panic);
        Err(ArchiveError::Other(format!(
            "the store panicked: {message}"
        )))
    })
}
