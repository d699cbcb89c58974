//! The states of iterative runs that have no result yet.
//!
//! They outlive their flights: a run that failed is taken up where it was. They
//! are gone once the run has its results, and are never taken for one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::app::ScratchState;
use crate::key::{BuildKeyHasher, Key};
use crate::result_map::ErasedValue;
use crate::sync::lock;

/// The latest state of each run of one app.
#[derive(Default)]
pub(crate) struct Scratches {
    /// Whether there ever was any: most apps keep none, and pay this one look.
    used: AtomicBool,
    states: Mutex<HashMap<Key, Kept, BuildKeyHasher>>,
}

struct Kept {
    state: ScratchState,
    saved: bool,
}

impl Scratches {
    pub(crate) fn get(&self, key: &Key) -> Option<ScratchState> {
        self.lock().get(key).map(|kept| kept.state.clone())
    }

    pub(crate) fn set(&self, key: Key, state: ScratchState) {
        self.used.store(true, Ordering::Release);
        let kept = Kept {
            state,
            saved: false,
        };
        // What it replaces is dropped when the lock is free again.
        let _old = self.lock().insert(key, kept);
    }

    pub(crate) fn remove(&self, key: &Key) {
        if self.used.load(Ordering::Acquire) {
            let _old = self.lock().remove(key);
        }
    }

    pub(crate) fn take_all(&self) -> impl Sized + use<> {
        std::mem::take(&mut *self.lock())
    }

    /// Forgets the states of the other keys.
    pub(crate) fn retain(&self, keep: impl Fn(&Key) -> bool) {
        let mut states = self.lock();
        let old: Vec<_> = states.extract_if(|key, _| !keep(key)).collect();
        drop(states);
        drop(old);
    }

    /// The states that were not saved yet; they count as saved from here on.
    pub(crate) fn take_unsaved(&self) -> Vec<(Key, ScratchState)> {
        let mut states = self.lock();
        let unsaved = states.iter_mut().filter(|(_, kept)| !kept.saved);
        unsaved
            .map(|(key, kept)| {
                kept.saved = true;
                (*key, kept.state.clone())
            })
            .collect()
    }

    /// This state was saved; a later one was not.
    pub(crate) fn saved(&self, key: &Key, state: &ErasedValue) {
        if let Some(kept) = self.lock().get_mut(key) {
            kept.saved |= kept.state.value.ptr_eq(state);
        }
    }

    /// They could not be saved.
    pub(crate) fn put_back(&self, keys: impl Iterator<Item = Key>) {
        let mut states = self.lock();
        for key in keys {
            if let Some(kept) = states.get_mut(&key) {
                kept.saved = false;
            }
        }
    }

    /// What was saved is not there any more.
    pub(crate) fn none_is_saved(&self) {
        let mut states = self.lock();
        states.values_mut().for_each(|kept| kept.saved = false);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Kept, BuildKeyHasher>> {
        lock(&self.states)
    }
}
