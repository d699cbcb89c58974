//! The states of iterative runs that have no result yet.
//!
//! A state outlives its flight: a run that failed resumes from it. It is dropped once the run has its results, and is
//! never taken for a result.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::key::{BuildKeyHasher, Key};
use crate::result_map::{Codec, ErasedValue};
use crate::sync::{MutexGuard, lock};

/// One state and the codec that writes it.
#[derive(Clone)]
pub(crate) struct ScratchState {
    pub(crate) value: ErasedValue,
    pub(crate) codec: Codec,
}

/// The latest states of each run of one app: one, or two for a run that ranks make together.
#[derive(Default)]
pub(crate) struct Scratches {
    /// Whether there ever was a state: most apps keep none, and pay only this look.
    used: AtomicBool,
    states: Mutex<HashMap<Key, Vec<ScratchSlot>, BuildKeyHasher>>,
}

struct ScratchSlot {
    state: ScratchState,
    saved: bool,
    /// Whether the run itself saves it, in step with the other ranks that make it.
    in_step: bool,
}

impl Scratches {
    /// The states of a run, the latest first.
    pub(crate) fn get(&self, key: &Key) -> Vec<ScratchState> {
        let states = self.lock();
        let of_run = states.get(key).into_iter().flatten().rev();
        of_run.map(|kept| kept.state.clone()).collect()
    }

    /// Keeps a state, and at most `before` earlier ones.
    pub(crate) fn set(&self, key: Key, state: ScratchState, before: usize, in_step: bool) {
        self.used.store(true, Ordering::Release);
        let mut states = self.lock();
        let of_run = states.entry(key).or_default();
        let more = of_run.len().saturating_sub(before);
        // Dropped after the lock: destructors may use the engine.
        let _old: Vec<_> = of_run.drain(..more).collect();
        of_run.push(ScratchSlot {
            state,
            saved: false,
            in_step,
        });
        drop(states);
    }

    /// Removes the states of a run. The caller drops them: destructors may use the engine.
    pub(crate) fn remove(&self, key: &Key) -> Option<impl Sized + use<>> {
        let is_used = self.used.load(Ordering::Acquire);
        is_used.then(|| self.lock().remove(key)).flatten()
    }

    pub(crate) fn take_all(&self) -> impl Sized + use<> {
        std::mem::take(&mut *self.lock())
    }

    /// Forgets the states of all keys but those to `keep`. States that ranks are making together stay, since each rank
    /// keeps them under another key.
    pub(crate) fn retain(&self, keep: impl Fn(&Key) -> bool) {
        let mut states = self.lock();
        let is_in_progress = |of_run: &[ScratchSlot]| of_run.iter().any(|kept| kept.in_step);
        let old = states.extract_if(|key, of_run| !keep(key) && !is_in_progress(of_run));
        let old: Vec<_> = old.collect();
        drop(states);
        drop(old);
    }

    /// The states that were not saved yet. They count as saved from here on.
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

    /// Notes that this state was saved; a later one stays unsaved.
    pub(crate) fn saved(&self, key: &Key, state: &ErasedValue) {
        for kept in self.lock().get_mut(key).into_iter().flatten() {
            kept.saved |= kept.state.value.ptr_eq(state);
        }
    }

    /// Ends the run's saving in step: any checkpoint may save its states from here on.
    pub(crate) fn stop(&self, key: &Key) {
        for kept in self.lock().get_mut(key).into_iter().flatten() {
            kept.in_step = false;
        }
    }

    /// Marks states as unsaved again when saving them failed.
    pub(crate) fn put_back(&self, keys: impl Iterator<Item = Key>) {
        let mut states = self.lock();
        for key in keys {
            for kept in states.get_mut(&key).into_iter().flatten() {
                kept.saved = false;
            }
        }
    }

    /// Marks all states as unsaved: the saved copies are gone.
    pub(crate) fn none_is_saved(&self) {
        let mut states = self.lock();
        let all = states.values_mut().flatten();
        all.for_each(|kept| kept.saved = false);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<ScratchSlot>, BuildKeyHasher>> {
        lock(&self.states)
    }
}
