//! What was written for other processes to find, and is not durable yet.
//!
//! The save that follows is given it once more. It need not be written again then, unless the segment in which it is was abandoned
//! meanwhile.

use std::collections::HashSet;
use std::sync::Mutex;

use sde::{Batch, Key, RunId, SavedEntry};

use crate::locks::lock;

#[derive(Default)]
pub(crate) struct UnsyncedEntries(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    entries: HashSet<(Key, RunId)>,
    /// How many segments of each part had been abandoned before these were written.
    abandoned: [u64; 2],
}

impl UnsyncedEntries {
    /// Takes note of a checkpoint that was written; `abandoned` is from before that.
    pub(crate) fn add(&self, batch: &Batch, abandoned: [u64; 2]) {
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
    pub(crate) fn abandoned(&self) -> Option<[u64; 2]> {
        let state = lock(&self.0);
        (!state.entries.is_empty()).then_some(state.abandoned)
    }

    /// Forgets all of it if more segments are abandoned now: it may be lost.
    pub(crate) fn check(&self, abandoned: [u64; 2]) {
        lock(&self.0).keep_if(abandoned);
    }

    /// Forgets a batch, which is durable.
    pub(crate) fn saved(&self, batch: &Batch) {
        let mut state = lock(&self.0);
        if state.entries.is_empty() {
            return;
        }
        for entry in &batch.entries {
            state.entries.remove(&id(entry));
        }
    }

    /// Forgets everything: it is not there any more.
    pub(crate) fn clear(&self) {
        lock(&self.0).entries.clear();
    }
}

impl Entries {
    fn keep_if(&mut self, abandoned: [u64; 2]) {
        if self.abandoned != abandoned {
            self.entries.clear();
            self.abandoned = abandoned;
        }
    }
}

fn id(entry: &SavedEntry) -> (Key, RunId) {
    (entry.record().key, entry.record().run)
}
