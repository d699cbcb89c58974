//! What a handle notes that plans: which runs its calls ask for, and from where on that is no longer certain.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Handle;
use super::peek::Peek;
use crate::app::{AppSetup, ResolvedApp};
use crate::inputs::ValueSummary;
use crate::key::Key;
use crate::sync::lock;

/// A piece of a program that is planned: all of it, or one item of a sweep.
#[derive(Default)]
pub(crate) struct Planning {
    seen: Arc<Mutex<Seen>>,
    /// Whether a call of this piece gave no value: what the piece asks for after that may rest on the value.
    is_uncertain: AtomicBool,
    /// The piece that this is an item of.
    whole: Option<Arc<Self>>,
}

/// The runs that are asked for, in order.
#[derive(Default)]
struct Seen {
    runs: Vec<SeenRun>,
    /// The place of the run that gives a key its value from here on.
    of_key: HashMap<Key, usize>,
}

/// A run that is asked for.
pub(crate) struct SeenRun {
    pub(crate) resolved: Arc<ResolvedApp>,
    pub(crate) setup: Arc<AppSetup>,
    pub(crate) what: Peek,
    /// If nothing of its key is known: its inputs, to be compared with those of other runs.
    pub(crate) new: Option<Vec<ValueSummary>>,
    /// What the app says that it costs.
    pub(crate) cost: Option<Duration>,
    pub(crate) calls: usize,
}

/// How a run that is asked for stands to others of its key.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// All calls share it.
    Shared,
    /// It takes the place of the others, for later calls.
    Anew,
    /// It is for one call alone.
    Alone,
}

impl Planning {
    /// Notes a run that this piece certainly asks for. After a value that is missing nothing is certain.
    pub(crate) fn note(&self, place: Place, run: SeenRun) {
        if self.is_uncertain() {
            return;
        }
        let mut seen = lock(&self.seen);
        let (key, next) = (run.what.key(), seen.runs.len());
        let known = seen.of_key.get(&key).copied();
        if let Some(at) = known.filter(|_| place == Place::Shared) {
            seen.runs[at].calls += 1;
            return;
        }
        if place != Place::Alone {
            seen.of_key.insert(key, next);
        }
        seen.runs.push(run);
    }

    /// Whether a run of this key is to be computed or waited for; notes that it is asked for once more.
    pub(crate) fn is_missing(&self, key: &Key) -> bool {
        let mut seen = lock(&self.seen);
        let Some(at) = seen.of_key.get(key).copied() else {
            return false;
        };
        let is_missing = matches!(seen.runs[at].what, Peek::Wait { .. } | Peek::Miss { .. });
        if is_missing && !self.is_uncertain() {
            seen.runs[at].calls += 1;
        }
        is_missing
    }

    /// Notes that a call gave no value.
    pub(crate) fn miss(&self) {
        let pieces = std::iter::successors(Some(self), |piece| piece.whole.as_deref());
        pieces.for_each(|piece| piece.is_uncertain.store(true, Ordering::Relaxed));
    }

    pub(crate) fn is_uncertain(&self) -> bool {
        self.is_uncertain.load(Ordering::Relaxed)
    }

    /// The runs noted so far, which are forgotten here.
    pub(crate) fn take(&self) -> Vec<SeenRun> {
        std::mem::take(&mut *lock(&self.seen)).runs
    }
}

impl Handle {
    pub(crate) fn planning(&self) -> Option<&Planning> {
        self.planning.as_deref()
    }

    /// This handle for a program that is planned.
    pub(crate) fn that_plans(&self, planning: Arc<Planning>) -> Self {
        Self {
            planning: Some(planning),
            ..self.clone()
        }
    }

    /// Gives a handle for each item of a sweep. In a plan an item without its value says nothing of the other items.
    pub(crate) fn of_items<'h>(&'h self) -> impl Fn() -> Cow<'h, Self> + Sync {
        let whole = self.planning.as_ref();
        let before = whole.is_some_and(|whole| whole.is_uncertain());
        move || match whole {
            None => Cow::Borrowed(self),
            Some(whole) => Cow::Owned(self.that_plans(Arc::new(Planning {
                seen: Arc::clone(&whole.seen),
                is_uncertain: AtomicBool::new(before),
                whole: Some(Arc::clone(whole)),
            }))),
        }
    }
}
