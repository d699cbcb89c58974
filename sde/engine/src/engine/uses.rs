//! Uses of entries in memory, for stores that give up unused entries first.
//!
//! A hit pays nothing for that. It compares a number to tell whether an entry is current: the epoch, and in the lowest
//! bits the period, which ends when the store is told. After that neither the first level nor the quick look at the map
//! finds an entry. So the first use of an entry in a period takes the longer way, which notes it.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use crate::checkpoint::Archiver;
use crate::entry::Entry;
use crate::key::{BuildKeyHasher, Key};
use crate::sync::lock;

/// How many keys are noted in a period at most.
const MOST: usize = 1 << 20;

/// The keys of entries used since the store was told.
pub(super) struct Uses {
    /// Whether the store counts uses, as far as is known.
    are_counted: AtomicBool,
    keys: Mutex<HashSet<Key, BuildKeyHasher>>,
}

impl Uses {
    pub(super) fn new(are_counted: bool) -> Self {
        Self {
            are_counted: AtomicBool::new(are_counted),
            keys: Mutex::default(),
        }
    }
}

impl Engine {
    /// Notes a use of an entry that a store may have.
    #[cold]
    pub(super) fn note_use(&self, entry: &Entry) {
        let is_first = entry.first_use(self.moment());
        if is_first && self.uses.are_counted.load(Ordering::Relaxed) && entry.is_ever_saved() {
            let mut keys = lock(&self.uses.keys);
            if keys.len() < MOST {
                keys.insert(entry.record.key);
            }
        }
    }

    /// Tells a store which keys were used, and begins a period.
    pub(super) fn tell_uses(&self, archiver: &dyn Archiver) {
        let used = std::mem::take(&mut *lock(&self.uses.keys));
        let are_counted = archiver.note_uses(&self.saved_under(used.into_iter()));
        self.uses.are_counted.store(are_counted, Ordering::Relaxed);
        if are_counted {
            // When the period's bits overflow an epoch begins, which does no harm.
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Has uses counted for a newly loaded store.
    pub(super) fn count_uses(&self) {
        self.uses.are_counted.store(true, Ordering::Relaxed);
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}
