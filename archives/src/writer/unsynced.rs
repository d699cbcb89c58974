//! Entries that were written for other processes to find, and are not durable yet.
//!
//! The following save gets them once more, but need not write them again, unless their segment was abandoned
//! meanwhile.

use std::collections::HashSet;
use std::sync::Mutex;

use sde::Key;
use sde::archiver::{Batch, SavedEntry};
use sde::record::RunId;

use crate::locks::lock;

/// One computation that has an entry.
pub(crate) type EntryId = (Key, RunId);

/// The number of abandoned segments of each part.
pub(crate) type Abandoned = [u64; 2];

#[derive(Default)]
pub(crate) struct UnsyncedEntries(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    entries: HashSet<EntryId>,
    /// The count before these entries were written.
    abandoned: Abandoned,
}

impl UnsyncedEntries {
    /// Adds the entries of a batch that was written; `abandoned` is from before that.
    pub(crate) fn add(&self, batch: &Batch, abandoned: Abandoned) {
        let mut state = lock(&self.0);
        state.keep_if(abandoned);
        state.entries.extend(batch.entries.iter().map(id));
    }

    /// Whether this entry was written.
    pub(crate) fn has(&self, entry: &SavedEntry) -> bool {
        let state = lock(&self.0);
        !state.entries.is_empty() && state.entries.contains(&id(entry))
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).entries.is_empty()
    }

    /// The count of abandoned segments that must not change, if there are entries.
    pub(crate) fn abandoned(&self) -> Option<Abandoned> {
        let state = lock(&self.0);
        (!state.entries.is_empty()).then_some(state.abandoned)
    }

    /// Forgets all entries if more segments are abandoned now: they may be lost.
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

    /// Forgets all entries, since their segments are gone.
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
