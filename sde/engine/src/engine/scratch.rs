//! The state of a run that is not finished: found when the run begins, kept while it goes on, saved
//! with the next checkpoint.

use std::sync::Arc;

use super::Engine;
use crate::app::{DependencySnapshot, Frame, ScratchState};
use crate::checkpoint::{Batch, SavePolicy, SavedScratch, Selection};
use crate::event::Event;
use crate::result_map::{Codec, ErasedValue};

impl Engine {
    /// The scratch states that are newer than what was saved of them.
    pub(super) fn unsaved_scratch(&self) -> Vec<SavedScratch> {
        self.caches
            .all()
            .flat_map(|cache| {
                cache
                    .scratches
                    .take_unsaved()
                    .into_iter()
                    .map(|(key, state)| SavedScratch {
                        app: Arc::clone(&cache.name),
                        key,
                        value: state.value,
                        codec: state.codec,
                    })
            })
            .collect()
    }

    /// The scratch of a run: of this process, or else of the store.
    /// A run for its caller alone has none: it is to be like no other.
    pub(crate) fn load_scratch(&self, frame: &Frame, codec: &Codec) -> Option<ErasedValue> {
        if !frame.is_claimed() {
            return None;
        }
        let cache = self.cache_of(&frame.facts);
        if let Some(state) = cache.scratch_of(&frame.key) {
            if state.value.type_name() == codec.type_name() {
                return Some(state.value);
            }
            self.warn(|| {
                format!(
                    "the scratch of {} was saved as another type; it starts afresh",
                    frame.label()
                )
            });
            return None;
        }
        let archiver = self.archiver()?;
        let found = archiver
            .find_scratch(&frame.key)
            .and_then(|payload| payload.map(|payload| payload.decode(codec)).transpose());
        found.unwrap_or_else(|error| {
            self.warn(|| {
                format!(
                    "the scratch of {} could not be read: {error}; it starts afresh",
                    frame.label()
                )
            });
            None
        })
    }

    /// Whether a run goes on from a scratch state: what was called for it is as it was.
    pub(crate) fn may_go_on(&self, frame: &Frame, from: &DependencySnapshot) -> bool {
        let Some(why) = self.changed_dependency(&*from.dependencies) else {
            self.tell(|| Event::Resumed {
                app: Arc::clone(&frame.facts.name),
                key: frame.key,
            });
            return true;
        };
        self.warn(|| {
            format!(
                "the scratch of {} is not gone on from: {why}; it starts afresh",
                frame.label()
            )
        });
        false
    }

    pub(crate) fn save_scratch(&self, frame: &Frame, state: ScratchState) {
        if !frame.is_claimed() {
            return;
        }
        let cache = self.cache_of(&frame.facts);
        cache.set_scratch(&frame.key, state.clone());
        let Some(archiver) = self.archiver() else {
            return;
        };
        if self.policy != SavePolicy::EveryResult {
            return;
        }
        let batch = Batch {
            scratch: vec![SavedScratch {
                app: Arc::clone(&frame.facts.name),
                key: frame.key,
                value: state.value.clone(),
                codec: state.codec,
            }],
            ..Batch::new(Selection::Checkpoint)
        };
        match self.write_one(&*archiver, &batch) {
            Ok(_) => cache.scratches.saved(&frame.key, &state.value),
            Err(error) => self.warn(|| {
                format!(
                    "the scratch of {} could not be saved: {error}; the next save tries again",
                    frame.label()
                )
            }),
        }
    }
}
