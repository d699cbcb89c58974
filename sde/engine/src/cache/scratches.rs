//! The states of iterative runs that have no result yet.
//!
//! A state outlives its flight: a run that failed resumes from it. It is dropped once the run has its results, and is
//! never taken for a result.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::key::{BuildKeyHasher, Key};
use crate::result_map::{Codec, ErasedValue};
use crate::sync::{MutexGuard, lock};

/// One state, the codec that writes it, and the time that its run had taken.
#[derive(Clone)]
pub(crate) struct ScratchState {
    pub(crate) value: ErasedValue,
    pub(crate) codec: Codec,
    pub(crate) took: Duration,
}

/// The latest state of each run of one app.
#[derive(Default)]
pub(crate) struct Scratches {
    /// Whether there ever was a state: most apps keep none, and pay only this look.
    used: AtomicBool,
    states: Mutex<HashMap<Key, ScratchSlot, BuildKeyHasher>>,
}

struct ScratchSlot {
    state: ScratchState,
    saved: bool,
    /// The key of the run, if that saves the state itself, in step with the other ranks that make it.
    in_step: Option<Key>,
    /// Whether this or a later state of a run in step is to be saved before the process ends.
    owed: bool,
}

impl Scratches {
    /// Whether there ever was a state.
    pub(crate) fn are_used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// The state of a run.
    pub(crate) fn get(&self, key: &Key) -> Option<ScratchState> {
        self.lock().get(key).map(|kept| kept.state.clone())
    }

    /// Keeps a state in place of an earlier one.
    pub(crate) fn set(&self, key: Key, state: ScratchState, in_step: Option<Key>) {
        self.used.store(true, Ordering::Release);
        let mut states = self.lock();
        let slot = ScratchSlot {
            state,
            saved: false,
            in_step,
            owed: states.get(&key).is_some_and(|before| before.owed),
        };
        let old = states.insert(key, slot);
        // Dropped after the lock: destructors may use the engine.
        drop(states);
        drop(old);
    }

    /// Removes the state of a run. The caller drops it: destructors may use the engine.
    pub(crate) fn remove(&self, key: &Key) -> Option<impl Sized + use<>> {
        self.are_used().then(|| self.lock().remove(key)).flatten()
    }

    pub(crate) fn take_all(&self) -> impl Sized + use<> {
        std::mem::take(&mut *self.lock())
    }

    /// Forgets the states of all keys but those to `keep`. States that ranks are making together stay, since each rank
    /// keeps them under another key.
    pub(crate) fn retain(&self, keep: impl Fn(&Key) -> bool) {
        let mut states = self.lock();
        let old = states.extract_if(|key, kept| !keep(key) && kept.in_step.is_none());
        let old: Vec<_> = old.collect();
        drop(states);
        drop(old);
    }

    /// The states that were not saved yet. They count as saved from here on.
    pub(crate) fn take_unsaved(&self) -> Vec<(Key, ScratchState)> {
        let mut states = self.lock();
        let unsaved = states.iter_mut();
        let unsaved = unsaved.filter(|(_, kept)| !kept.saved && kept.in_step.is_none());
        let take = |(key, kept): (&Key, &mut ScratchSlot)| {
            kept.saved = true;
            (*key, kept.state.clone())
        };
        unsaved.map(take).collect()
    }

    /// Notes that this state was saved; a later one stays unsaved.
    pub(crate) fn saved(&self, key: &Key, state: &ErasedValue) {
        if let Some(kept) = self.lock().get_mut(key) {
            let is_it = kept.state.value.ptr_eq(state);
            kept.saved |= is_it;
            kept.owed &= !is_it;
        }
    }

    /// The state of a run in step, if it was not saved yet.
    pub(crate) fn unsaved_in_step(&self, key: &Key) -> Option<ScratchState> {
        let states = self.lock();
        let kept = states
            .get(key)
            .filter(|kept| kept.in_step.is_some() && !kept.saved)?;
        Some(kept.state.clone())
    }

    /// Notes that runs in step are to save a state once more, as far as their last is not saved.
    pub(crate) fn owe(&self) {
        for kept in self.lock().values_mut() {
            kept.owed = kept.in_step.is_some() && !kept.saved;
        }
    }

    /// The runs in step that have not saved a state since.
    pub(crate) fn owed(&self) -> Vec<Key> {
        let states = self.lock();
        let owed = states.values().filter(|kept| kept.owed);
        owed.filter_map(|kept| kept.in_step).collect()
    }

    /// Ends the run's saving in step: any checkpoint may save its states from here on.
    pub(crate) fn stop(&self, key: &Key) {
        if let Some(kept) = self.lock().get_mut(key) {
            kept.in_step = None;
        }
    }

    /// Marks states as unsaved again when saving them failed.
    pub(crate) fn put_back(&self, keys: impl Iterator<Item = Key>) {
        let mut states = self.lock();
        for key in keys {
            if let Some(kept) = states.get_mut(&key) {
                kept.saved = false;
            }
        }
    }

    /// Marks all states as unsaved: the saved copies are gone.
    pub(crate) fn none_is_saved(&self) {
        let mut states = self.lock();
        states.values_mut().for_each(|kept| kept.saved = false);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, ScratchSlot, BuildKeyHasher>> {
        lock(&self.states)
    }
}
