//! What was used from memory, for stores that give up first what is not used.
//!
//! A hit pays nothing for that. The number by which it tells whether what it finds is current has two parts: the epoch, and in its
//! lowest bits the period, which ends when the store is told. Then neither the first level nor the quick look at the map finds
//! anything: the first use of an entry in a period takes the longer way, which notes it.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use crate::cache::Entry;
use crate::checkpoint::Archiver;
use crate::key::{BuildKeyHasher, Key};
use crate::sync::lock;

/// So many are noted in a period.
const MOST: usize = 1 << 20;

/// What was used since the store was told.
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
    /// Takes note of a use of what a store may have.
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

    /// Tells a store what was used, and begins a period.
    pub(super) fn tell_uses(&self, archiver: &dyn Archiver) {
        let used = std::mem::take(&mut *lock(&self.uses.keys));
        let are_counted = archiver.note_uses(&self.saved_under(used.into_iter()));
        self.uses.are_counted.store(are_counted, Ordering::Relaxed);
        if are_counted {
            // After as many as fit in its bits an epoch begins, which does no harm.
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Has uses counted for another store.
    pub(super) fn count_uses(&self) {
        self.uses.are_counted.store(true, Ordering::Relaxed);
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}
