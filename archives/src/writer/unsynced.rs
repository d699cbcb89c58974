//! What was written for other processes to find, and is not durable yet.
//!
//! The save that follows is given it once more. It need not be written again then, unless the segment in which it is was abandoned
//! meanwhile.

use std::collections::HashSet;
use std::sync::Mutex;

use sde::{Batch, Key, RunId, SavedEntry};

use crate::locks::lock;

/// One computation that has an entry.
pub(crate) type EntryId = (Key, RunId);

/// How many segments of each part were abandoned.
pub(crate) type Abandoned = [u64; 2];

#[derive(Default)]
pub(crate) struct UnsyncedEntries(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    entries: HashSet<EntryId>,
    /// What was so before these were written.
    abandoned: Abandoned,
}

impl UnsyncedEntries {
    /// Takes note of a checkpoint that was written; `abandoned` is from before that.
    pub(crate) fn add(&self, batch: &Batch, abandoned: Abandoned) {
        let mut state = lock(&self.0);
        state.keep_if(abandoned);
        state.entries.extend(batch.entries.iter().map(id));
    }

    /// Whether this entry is written.
    pub(crate) fn has(&self, entry: &SavedEntry) -> bool {
        let state = lock(&self.0);
        !state.entries.is_empty() && state.entries.contains(&id(entry))
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).entries.is_empty()
    }

    /// Since when no segment must have been abandoned, if there is anything.
    pub(crate) fn abandoned(&self) -> Option<Abandoned> {
        let state = lock(&self.0);
        (!state.entries.is_empty()).then_some(state.abandoned)
    }

    /// Forgets all of it if more segments are abandoned now: it may be lost.
    pub(crate) fn check(&self, abandoned: Abandoned) {
        lock(&self.0).keep_if(abandoned);
    }

    /// Forgets entries that are durable.
    pub(crate) fn are_durable(&self, entries: &[EntryId]) {
        if !entries.is_empty() {
            let mut state = lock(&self.0);
            for one in entries {
                state.entries.remove(one);
            }
        }
    }

    /// Forgets everything: it is not there any more.
    pub(crate) fn clear(&self) {
        lock(&self.0).entries.clear();
    }
}

impl Entries {
    fn keep_if(&mut self, abandoned: Abandoned) {
        if self.abandoned != abandoned {
            self.entries.clear();
            self.abandoned = abandoned;
        }
    }
}

pub(crate) fn id(entry: &SavedEntry) -> EntryId {
    (entry.record().key, entry.record().run)
}
