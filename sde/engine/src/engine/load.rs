//! Finding runs in the store.
//!
//! Results of another rank or an earlier process serve as if they had been computed here, if they are still valid.
//! Their values are read when they are asked for.

use std::sync::Arc;

use super::Engine;
use super::handle::Policy;
use super::run_state::Run;
use crate::checkpoint::{Selection, StoredEntry};
use crate::entry::{Entry, Record, Served};
use crate::event::Event;
use crate::key::Key;
use crate::ranks::{is_complete, with_parts};
use crate::result_map::{Content, Named, ResultMap, ResultSpec, Stored};

impl Engine {
    /// Looks in the store for an entry that serves the call.
    ///
    /// An entry sent by another rank comes first. If it has only some of the values, it serves calls that ask for no
    /// others.
    pub(crate) fn load(&self, run: &Run<'_>, previous: Option<&Entry>) -> Option<Served> {
        if run.app.resolved.nondeterministic {
            return None;
        }
        let take = |stored| self.take_up(run, stored, previous);
        let stored = || self.find_stored(run).map(take);
        let taken = self.received_or(&run.key, take, stored)?;
        taken.map_err(|why| self.tell_stale(run, why)).ok()
    }

    /// Takes what another rank has sent, if it has all values or serves without those that it lacks, else what is
    /// `stored`.
    pub(super) fn received_or<T, E>(
        &self,
        key: &Key,
        take: impl Fn(StoredEntry) -> Result<T, E>,
        stored: impl FnOnce() -> Option<Result<T, E>>,
    ) -> Option<Result<T, E>> {
        if let Some(received) = self.sets.received.find(key) {
            let is_complete = is_complete(&received);
            let taken = take(received);
            if is_complete || taken.is_ok() {
                return Some(taken);
            }
        }
        stored()
    }

    /// Tells why the remembered entry of a run does not serve, if there is anything to tell.
    pub(super) fn tell_stale(&self, run: &Run<'_>, why: Option<String>) {
        if let Some(why) = why
            && run.from.planning().is_none()
        {
            self.tell(|| Event::Stale {
                app: run.name(),
                key: run.key,
                why,
            });
        }
    }

    /// The results that a stored entry gives to a run, or why it does not serve, if that is to be told.
    fn take_up(
        &self,
        run: &Run<'_>,
        stored: StoredEntry,
        previous: Option<&Entry>,
    ) -> Result<Served, Option<String>> {
        let specs = &run.app.resolved.info.results;
        let alone = Arc::new(entry_of(specs, &stored, None));
        run.note_known(Arc::clone(&alone));
        let found = (&alone.record, &ResultMap::of(Arc::clone(&alone)));
        let is_planned = run.from.planning().is_some();
        for other in stored.others.iter().filter(|_| !is_planned) {
            self.compare(run, found, &entry_of(specs, other, None));
        }
        if let Some(previous) = previous
            && !is_planned
        {
            self.compare(run, found, previous);
        }
        if run.options.replaces(stored.record.run) {
            return Err(None);
        }
        // A newer entry in memory was computed again since, and is not saved yet, or was cleaned.
        let outdated = previous.is_some_and(|known| {
            known.record.run != stored.record.run && known.record.made_at > stored.record.made_at
        });
        if outdated {
            return Err(None);
        }
        let archived = stored.archived;
        // Each rank fills its own gaps, and all must come to one computation.
        let distributed = run.app.resolved.is_distributed();
        let run_id = distributed.then_some(stored.record.run);
        let is_one = |old: &&Entry| run_id.is_none_or(|of| of == old.record.run);
        let previous = previous.filter(|old| is_one(old) && self.may_fill(run, old));
        let entry = match previous {
            Some(old) => Arc::new(entry_of(specs, &stored, Some(old))),
            None => alone,
        };
        let served = self.served(&entry, run.options.names).map_err(Some)?;
        // An archive is to have all results that this program used, whatever process computed them.
        if !archived && !is_planned {
            drop(self.pending.add_to(Selection::Archive, &entry));
        }
        Ok(served)
    }

    fn find_stored(&self, run: &Run<'_>) -> Option<StoredEntry> {
        let archiver = self.archiver()?;
        let stretch = crate::stretch!("load", app = &*run.cache.name, key = %run.key.short());
        let uses = run.options.policy != Policy::Refresh && run.from.planning().is_none();
        let found = match uses {
            false => archiver.look(&run.key),
            true => archiver.find(&run.key),
        };
        match &found {
            Ok(Some(_)) => stretch.end("found"),
            Ok(None) => stretch.end("not there"),
            Err(_) => stretch.end("failed"),
        }
        let mut stored = match found {
            Ok(stored) => stored?,
            Err(error) => {
                let (run, store) = (run.label(), archiver.describe());
                let what = format!("{run} could not be looked for in {store}");
                self.warn(|| format!("{what}: {error:#}; it is computed instead"));
                return None;
            }
        };
        let expected = &run.app.resolved.id;
        if stored.record.key != run.key || stored.record.id != *expected {
            let (run, store) = (run.label(), archiver.describe());
            let what = format!("{store} has something else under the key of {run}");
            self.warn(|| format!("{what}; it is computed instead"));
            return None;
        }
        if stored.archived {
            // The inputs are read again when they are asked for.
            stored.record.inputs = Arc::default();
        }
        Some(with_parts(run.from, &run.app.resolved, &archiver, stored))
    }

    /// The record of an entry, with inputs that are read from the store if memory has let go of them.
    pub(super) fn record_of(&self, entry: &Entry) -> Record {
        let record = entry.full_record();
        if !record.inputs.is_empty() {
            return record;
        }
        let found = self.archiver().map(|archiver| archiver.look(&record.key));
        match found {
            // Equal keys have equal inputs, whatever computation the store prefers.
            Some(Ok(Some(stored))) => Record {
                inputs: stored.record.inputs,
                ..record
            },
            _ => record,
        }
    }

    /// Whether an earlier entry's values may stand beside new ones.
    pub(super) fn may_fill(&self, run: &Run<'_>, old: &Entry) -> bool {
        // The entry may have been cleaned since.
        let there = run.cache.entry(&run.key);
        there.is_some_and(|there| std::ptr::eq(&*there, old))
            && run.options.policy != Policy::Refresh
            && !old.record.nondeterministic
            && self.invalid(&old.record).is_none()
            && self.stale(old).is_none()
    }
}

/// An entry with the results that its app declares, whose values are read when asked for.
pub(crate) fn entry_of(
    specs: &[Arc<ResultSpec>],
    stored: &StoredEntry,
    previous: Option<&Entry>,
) -> Entry {
    let results = specs.iter().map(|spec| {
        let found = stored
            .results
            .iter()
            .find(|result| result.name == spec.name);
        let held = previous.and_then(|entry| {
            let named = entry.results.find(&spec.name)?;
            match &named.content {
                Content::Weak(value) if named.tags.is_cached() => {
                    value.upgrade().map(Content::Held)
                }
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
            content,
            spec: Arc::clone(spec),
            tags: found.map_or(spec.tags, |result| result.tags),
        }
    });
    let mut entry = Entry::unchecked(stored.record.clone(), results);
    entry.is_of_others = stored.is_of_others;
    entry.set_saved(true);
    entry
}
