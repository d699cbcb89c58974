//! Saving, and reading back.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLockWriteGuard};
use std::time::{Duration, Instant};

use super::Engine;
use super::parts::with_parts;
use super::run::{Run, Served};
use crate::app::{Facts, Frame, Policy, RestsOn, ResultSpec, ScratchState};
use crate::cache::Entry;
use crate::checkpoint::{
    Archiver, Batch, SavePolicy, Saved, SavedScratch, Selection, StoredEntry, saved,
};
use crate::error::{ArchiveError, Error, ErrorKind};
use crate::event::Event;
use crate::key::Key;
use crate::process_group::{Act, Notice, Ranks};
use crate::result_map::{Codec, Content, ErasedValue, Named, Origin, ResultMap, Stored};

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

    fn write_one(
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

    /// The scratch states that are newer than what was saved of them.
    fn unsaved_scratch(&self) -> Vec<SavedScratch> {
        self.caches
            .all()
            .flat_map(|cache| {
                cache
                    .scratches
                    .take_unsaved()
                    .into_iter()
                    .map(|(key, state)| SavedScratch {
                        app: Arc::clone(&cache.name),
                        key,
                        value: state.value,
                        codec: state.codec,
                    })
            })
            .collect()
    }

    /// Looks for a run in the store; what is found serves the call.
    ///
    /// What another rank has sent comes first. If that is only some of the values, it serves those
    /// who ask for no others.
    pub(super) fn load(&self, run: &Run<'_>, previous: Option<&Entry>) -> Option<Served> {
        if run.subject.facts.nondeterministic {
            return None;
        }
        if let Some(received) = self.sets.received.find(&run.key) {
            let is_complete = received.is_complete();
            match self.take_up(run, received.into_stored(), previous) {
                Err(_) if !is_complete => {}
                taken => return self.tell_refused(run, taken),
            }
        }
        let stored = self.find_stored(run)?;
        self.tell_refused(run, self.take_up(run, stored, previous))
    }

    fn tell_refused(&self, run: &Run<'_>, taken: Result<Served, Option<String>>) -> Option<Served> {
        let why = match taken {
            Ok(served) => return Some(served),
            Err(why) => why?,
        };
        self.tell(|| Event::Stale {
            app: Arc::clone(&run.cache.name),
            key: run.key,
            why,
        });
        None
    }

    /// What a stored entry gives to a run, or why it does not serve, if that is to be told.
    fn take_up(
        &self,
        run: &Run<'_>,
        stored: StoredEntry,
        previous: Option<&Entry>,
    ) -> Result<Served, Option<String>> {
        let made_at = stored.record.made_at;
        run.found.set(run.found.get().max(Some(made_at)));
        if run.options.policy == Policy::Refresh {
            return Err(None);
        }
        // What was computed again since is newer, and not saved yet or cleaned.
        let outdated = previous.is_some_and(|known| {
            known.record.run != stored.record.run && known.record.made_at > stored.record.made_at
        });
        if outdated {
            return Err(None);
        }
        let archived = stored.archived;
        let previous = previous.filter(|old| self.may_fill(run, old));
        let entry = Arc::new(self.entry_of(run.subject.facts, stored, previous));
        let map = self.serve(&entry, run.options.names).map_err(Some)?;
        // An archive is to have what this program used, whoever computed it.
        if !archived {
            self.pending.add_to(Selection::Archive, &entry);
        }
        Ok(Served { entry, map })
    }

    /// Looks in the store.
    fn find_stored(&self, run: &Run<'_>) -> Option<StoredEntry> {
        let archiver = self.archiver()?;
        let span = tracing::debug_span!("load", app = &*run.cache.name, key = %run.key.short());
        let _in_span = span.enter();
        let stored = match archiver.find(&run.key) {
            Ok(stored) => stored?,
            Err(error) => {
                self.warn(|| {
                    format!(
                        "{} [{}] could not be looked for in {}: {error}; it is computed instead",
                        run.cache.name,
                        run.key.short(),
                        archiver.describe()
                    )
                });
                return None;
            }
        };
        let expected = &run.subject.facts.id;
        if stored.record.key != run.key || stored.record.id != *expected {
            self.warn(|| {
                format!(
                    "{} has something else under the key of {} [{}]; it is computed instead",
                    archiver.describe(),
                    run.cache.name,
                    run.key.short()
                )
            });
            return None;
        }
        Some(with_parts(run.from, run.subject.facts, &archiver, stored))
    }

    /// An entry whose values are read when asked for.
    pub(super) fn entry_of(
        &self,
        facts: &Facts,
        stored: StoredEntry,
        previous: Option<&Entry>,
    ) -> Entry {
        entry_of_specs(&facts.info.results, stored, previous)
    }

    /// Whether an earlier entry's values may stand beside new ones.
    pub(super) fn may_fill(&self, run: &Run<'_>, old: &Entry) -> bool {
        run.options.policy != Policy::Refresh
            && !old.record.nondeterministic
            && self.invalid(&old.record).is_none()
            && self.stale(old).is_none()
    }

    /// The scratch of a run: of this process, or else of the store.
    /// A run for its caller alone has none: it is to be like no other.
    pub(super) fn scratch_of(&self, frame: &Frame, codec: &Codec) -> Option<ErasedValue> {
        if !frame.claimed {
            return None;
        }
        let cache = self.cache_of(&frame.facts);
        if let Some(state) = cache.scratch_of(&frame.key) {
            if state.value.type_name() == codec.type_name() {
                return Some(state.value);
            }
            self.warn(|| {
                format!(
                    "the scratch of {} was saved as another type; it starts afresh",
                    frame.label()
                )
            });
            return None;
        }
        let archiver = self.archiver()?;
        let found = archiver
            .find_scratch(&frame.key)
            .and_then(|payload| payload.map(|payload| payload.decode(codec)).transpose());
        found.unwrap_or_else(|error| {
            self.warn(|| {
                format!(
                    "the scratch of {} could not be read: {error}; it starts afresh",
                    frame.label()
                )
            });
            None
        })
    }

    /// Whether a run goes on from a scratch state: what was called for it is as it was.
    pub(super) fn still_rests_on(&self, frame: &Frame, from: &RestsOn) -> bool {
        let Some(why) = self.changed_beneath(&from.callees.beneath) else {
            self.tell(|| Event::Resumed {
                app: Arc::clone(&frame.facts.name),
                key: frame.key,
            });
            return true;
        };
        self.warn(|| {
            format!(
                "the scratch of {} is not gone on from: {why}; it starts afresh",
                frame.label()
            )
        });
        false
    }

    pub(super) fn keep_scratch(&self, frame: &Frame, state: ScratchState) {
        if !frame.claimed {
            return;
        }
        let cache = self.cache_of(&frame.facts);
        cache.set_scratch(&frame.key, state.clone());
        let Some(archiver) = self.archiver() else {
            return;
        };
        if self.policy != SavePolicy::EveryResult {
            return;
        }
        let batch = Batch {
            selection: Selection::Checkpoint,
            entries: Vec::new(),
            scratch: vec![SavedScratch {
                app: Arc::clone(&frame.facts.name),
                key: frame.key,
                value: state.value.clone(),
                codec: state.codec,
            }],
            marks: Vec::new(),
        };
        match self.write_one(&*archiver, &batch) {
            Ok(_) => cache.scratches.saved(&frame.key, &state.value),
            Err(error) => self.warn(|| {
                format!(
                    "the scratch of {} could not be saved: {error}; the next save tries again",
                    frame.label()
                )
            }),
        }
    }
}

/// An entry with the results that its app declares, whose values are read when asked for.
pub(super) fn entry_of_specs(
    specs: &[ResultSpec],
    stored: StoredEntry,
    previous: Option<&Entry>,
) -> Entry {
    let results = specs
        .iter()
        .map(|spec| {
            let found = stored
                .results
                .iter()
                .find(|result| result.name == spec.name);
            let held = previous.and_then(|entry| {
                let old = entry
                    .results
                    .results()
                    .iter()
                    .find(|n| n.name == spec.name)?;
                match &old.content {
                    // Reading it once more would give the same.
                    Content::Stored(stored) if stored.is_damaged() => {
                        Some(Content::Gone("what was stored of it is damaged"))
                    }
                    content => content.is_there().then(|| content.clone()),
                }
            });
            let payload = found.and_then(|result| result.payload.clone());
            let content = match (held, payload, spec.codec) {
                (Some(content), ..) => content,
                (None, Some(payload), Some(codec)) if payload.may_be(&codec) => {
                    Content::Stored(Stored::new(payload, codec))
                }
                (None, Some(_), _) => Content::Gone("it was saved as another type"),
                _ => Content::Gone("it was not saved"),
            };
            Named {
                name: spec.name.clone(),
                tags: Some(found.map_or(spec.tags, |result| result.tags)),
                codec: spec.codec,
                size: Some(spec.size),
                content,
            }
        })
        .collect();
    let origin = Origin {
        app: Arc::clone(&stored.record.app),
        key: stored.record.key,
        run: stored.record.run,
    };
    // Never looked at in this epoch: what ran beneath is checked before use.
    Entry::new(
        stored.record,
        ResultMap::from_parts(origin, results),
        u64::MAX,
    )
}

/// Has the archiver save a batch; what it says, and how long it took.
fn write(archiver: &dyn Archiver, batch: &Batch) -> Result<(Saved, Duration), ArchiveError> {
    let span = tracing::debug_span!("save", kind = batch.selection.name());
    let _in_span = span.enter();
    let start = Instant::now();
    let saved = archiver.save(batch)?;
    Ok((saved, start.elapsed()))
}
