//! The states of iterative runs that have no result yet.
//!
//! They outlive their flights: a run that failed is taken up where it was. They
//! are gone once the run has its results, and are never taken for one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::key::{BuildKeyHasher, Key};
use crate::result_map::{Codec, ErasedValue};
use crate::sync::{MutexGuard, lock};

/// One saved state and how to write it.
#[derive(Clone)]
pub(crate) struct ScratchState {
    pub(crate) value: ErasedValue,
    pub(crate) codec: Codec,
}

/// The latest states of each run of one app: one, or two of a run that ranks make together.
#[derive(Default)]
pub(crate) struct Scratches {
    /// Whether there ever was any: most apps keep none, and pay this one look.
    used: AtomicBool,
    states: Mutex<HashMap<Key, Vec<SavedState>, BuildKeyHasher>>,
}

struct SavedState {
    state: ScratchState,
    saved: bool,
    /// Whether its run is to save it, when all ranks that make it save theirs.
    in_step: bool,
}

impl Scratches {
    /// The states of a run, the latest first.
    pub(crate) fn get(&self, key: &Key) -> Vec<ScratchState> {
        let states = self.lock();
        let of_run = states.get(key).into_iter().flatten().rev();
        of_run.map(|kept| kept.state.clone()).collect()
    }

    /// Keeps a state, and so many of those before it.
    pub(crate) fn set(&self, key: Key, state: ScratchState, before: usize, in_step: bool) {
        self.used.store(true, Ordering::Release);
        let mut states = self.lock();
        let of_run = states.entry(key).or_default();
        let more = of_run.len().saturating_sub(before);
        // Dropped when the lock is free again.
        let _old: Vec<_> = of_run.drain(..more).collect();
        of_run.push(SavedState {
            state,
            saved: false,
            in_step,
        });
        drop(states);
    }

    /// Takes the states of a run away; gives them, whose destructors may use the engine.
    pub(crate) fn remove(&self, key: &Key) -> Option<impl Sized + use<>> {
        let is_used = self.used.load(Ordering::Acquire);
        is_used.then(|| self.lock().remove(key)).flatten()
    }

    pub(crate) fn take_all(&self) -> impl Sized + use<> {
        std::mem::take(&mut *self.lock())
    }

    /// Forgets the states of the other keys, but not those that ranks are making together: each keeps them under another key.
    pub(crate) fn retain(&self, keep: impl Fn(&Key) -> bool) {
        let mut states = self.lock();
        let is_in_progress = |of_run: &[SavedState]| of_run.iter().any(|kept| kept.in_step);
        let old = states.extract_if(|key, of_run| !keep(key) && !is_in_progress(of_run));
        let old: Vec<_> = old.collect();
        drop(states);
        drop(old);
    }

    /// The states that were not saved yet; they count as saved from here on.
    pub(crate) fn take_unsaved(&self) -> Vec<(Key, ScratchState)> {
        let mut states = self.lock();
        let all = states.iter_mut();
        all.flat_map(|(key, of_run)| of_run.iter_mut().map(|kept| (*key, kept)))
            .filter(|(_, kept)| !kept.saved && !kept.in_step)
            .map(|(key, kept)| {
                kept.saved = true;
                (key, kept.state.clone())
            })
            .collect()
    }

    /// This state was saved; a later one was not.
    pub(crate) fn saved(&self, key: &Key, state: &ErasedValue) {
        for kept in self.lock().get_mut(key).into_iter().flatten() {
            kept.saved |= kept.state.value.ptr_eq(state);
        }
    }

    /// The run makes no more of them, which any checkpoint may save from here on.
    pub(crate) fn stop(&self, key: &Key) {
        for kept in self.lock().get_mut(key).into_iter().flatten() {
            kept.in_step = false;
        }
    }

    /// They could not be saved.
    pub(crate) fn put_back(&self, keys: impl Iterator<Item = Key>) {
        let mut states = self.lock();
        for key in keys {
            for kept in states.get_mut(&key).into_iter().flatten() {
                kept.saved = false;
            }
        }
    }

    /// What was saved is not there any more.
    pub(crate) fn none_is_saved(&self) {
        let mut states = self.lock();
        let all = states.values_mut().flatten();
        all.for_each(|kept| kept.saved = false);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<SavedState>, BuildKeyHasher>> {
        lock(&self.states)
    }
}
