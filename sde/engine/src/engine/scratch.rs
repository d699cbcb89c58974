//! The state of a run that is not finished: found when the run begins, kept while it goes on, saved
//! with the next checkpoint.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Engine;
use crate::app::{DependencySnapshot, Frame};
use crate::cache::{AppCache, ScratchState};
use crate::checkpoint::{Archiver, Batch, SavePolicy, SavedScratch, Selection};
use crate::error::ArchiveError;
use crate::event::Event;
use crate::key::Key;
use crate::result_map::{Codec, ErasedValue, Payload};

fn saved_scratch(app: &Arc<str>, key: Key, state: &ScratchState) -> SavedScratch {
    SavedScratch {
        app: Arc::clone(app),
        key,
        value: state.value.clone(),
        codec: state.codec,
        took: state.took,
    }
}

/// A state that was found, and the time that its run had taken.
pub(crate) type FoundState = (ErasedValue, Duration);

fn decoded(payload: &dyn Payload, codec: &Codec) -> Result<FoundState, ArchiveError> {
    Ok((payload.decode(codec)?, payload.took()))
}

impl Engine {
    /// The scratch states that are newer than the saved ones. Collective runs save theirs themselves, when all ranks
    /// may.
    pub(super) fn unsaved_scratch(&self) -> Vec<SavedScratch> {
        let sets = self.sets.all();
        sets.iter().for_each(|set| set.note_state_due());
        let of_cache = |cache: &Arc<AppCache>| {
            let app = Arc::clone(&cache.name);
            let states = cache.scratches.take_unsaved().into_iter();
            states.map(move |(key, state)| saved_scratch(&app, key, &state))
        };
        self.caches.all().flat_map(of_cache).collect()
    }

    /// The scratch of a run. A run without a claim has none: it is to be like no other.
    pub(crate) fn load_scratch(&self, frame: &Frame, codec: &Codec) -> Option<FoundState> {
        let mut states = self.states_under(frame, frame.key, codec);
        frame.is_claimed().then(|| states.next()).flatten()
    }

    /// The states of a run that are kept under a key, the latest first: those of this process, then those of the store.
    pub(crate) fn states_under(
        &self,
        frame: &Frame,
        key: Key,
        codec: &Codec,
    ) -> impl Iterator<Item = FoundState> {
        let held = self
            .cache_of(&frame.resolved)
            .scratches
            .get(&key)
            .into_iter();
        let held = held.map(|state| {
            if state.value.type_name() == codec.type_name() {
                Ok(Some((state.value, state.took)))
            } else {
                Err("was saved as another type".to_owned())
            }
        });
        let finds = [Archiver::find_scratch, Archiver::find_earlier_scratch];
        let stored = finds.into_iter().map(move |find| {
            let Some(archiver) = self.archiver() else {
                return Ok(None);
            };
            let found = find(&*archiver, &key)
                .and_then(|payload| payload.map(|payload| decoded(&*payload, codec)).transpose());
            found.map_err(|error| format!("could not be read: {error:#}"))
        });
        let mut is_told = false;
        held.chain(stored).filter_map(move |found| {
            found.unwrap_or_else(|why| {
                if !std::mem::replace(&mut is_told, true) {
                    let what = format!("the scratch of {} {why}", frame.label());
                    self.warn(|| format!("{what}; without an earlier state it starts afresh"));
                }
                None
            })
        })
    }

    /// Whether a run may go on from a scratch state: no dependency of the state has changed.
    pub(crate) fn may_go_on(&self, frame: &Frame, from: &DependencySnapshot) -> bool {
        let Some(why) = self.changed_dependency(&*from.callees.beneath) else {
            return true;
        };
        let what = format!("the scratch of {} is not gone on from", frame.label());
        self.warn(|| format!("{what}: {why}; it starts afresh"));
        false
    }

    /// Notes that a run goes on from a state of a run that had taken this time.
    pub(crate) fn resumed(&self, frame: &Frame, took: Duration) {
        frame.clock.go_on_from(took);
        self.tell(|| Event::Resumed {
            app: Arc::clone(&frame.resolved.name),
            key: frame.key,
        });
    }

    pub(crate) fn save_scratch(&self, frame: &Frame, state: ScratchState) {
        if frame.is_claimed() {
            let cache = self.cache_of(&frame.resolved);
            // Once another call has published the key, nobody would take the state away again.
            if cache.is_flying(&frame.key) {
                cache.scratches.set(frame.key, state.clone(), None);
            }
            if self.policy == SavePolicy::EveryResult {
                self.write_state(frame, frame.key, &state);
            }
        }
    }

    /// Has the store save a state of a run now, and says whether it did.
    pub(crate) fn write_state(&self, frame: &Frame, key: Key, state: &ScratchState) -> bool {
        let Some(archiver) = self.archiver() else {
            return false;
        };
        let batch = Batch {
            scratch: vec![saved_scratch(&frame.resolved.name, key, state)],
            ..Batch::new(Selection::Checkpoint)
        };
        let start = Instant::now();
        let saved = self.write_one(&*archiver, &batch);
        self.background.took(start.elapsed());
        match saved {
            Ok(_) => {
                let cache = self.cache_of(&frame.resolved);
                cache.scratches.saved(&key, &state.value);
                true
            }
            Err(error) => {
                let what = format!("the scratch of {} could not be saved", frame.label());
                self.warn(|| format!("{what}: {error:#}; the next save tries again"));
                false
            }
        }
    }
}
