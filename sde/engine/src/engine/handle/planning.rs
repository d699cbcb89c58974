//! The notes of a handle that plans: the runs that its calls ask for, and where these cease to be certain.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Handle;
use super::Policy;
use super::peek::Peek;
use crate::app::{AppSetup, ResolvedApp};
use crate::inputs::ValueSummary;
use crate::key::Key;
use crate::sync::lock;

/// A piece of a program that is planned: all of it, or one item of a sweep.
#[derive(Default)]
pub(crate) struct Planning {
    requested: Arc<Mutex<RequestedRuns>>,
    /// Whether a call of this piece gave no value: what the piece asks for after that may rest on the value.
    is_uncertain: AtomicBool,
    /// The piece that this is an item of.
    whole: Option<Arc<Self>>,
}

/// The runs that are asked for, in order.
#[derive(Default)]
struct RequestedRuns {
    runs: Vec<RequestedRun>,
    /// The place of the run that gives a key its value from here on.
    of_key: HashMap<Key, usize>,
}

/// One run that a program certainly asks for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedRun {
    /// The app.
    pub app: Arc<str>,
    /// What a call of it does, and why.
    pub what: Peek,
    /// The time that it may take, if it is computed: what the app [says](crate::App::cost), else the mean of the latest
    /// runs of the app that memory and store have.
    pub cost: Option<Duration>,
    /// The number of calls that share it, as far as is known.
    pub calls: usize,
}

impl PlannedRun {
    /// Whether it is to be computed or waited for.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.what, Peek::Miss { .. } | Peek::Wait { .. })
    }

    pub(crate) fn is_computed(&self) -> bool {
        matches!(self.what, Peek::Miss { .. })
    }
}

/// A run that is asked for.
pub(crate) struct RequestedRun {
    pub(crate) resolved: Arc<ResolvedApp>,
    pub(crate) setup: Arc<AppSetup>,
    /// If nothing of its key is known: its inputs, to be compared with those of other runs.
    pub(crate) new: Option<Vec<ValueSummary>>,
    pub(crate) planned: PlannedRun,
}

/// The calls that a run is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scope {
    /// All calls share it.
    Shared,
    /// Later calls share it, in place of the earlier run.
    Replacing,
    /// It is for one call alone.
    Private,
}

impl Scope {
    pub(crate) fn of(policy: Policy, nondeterministic: bool) -> Self {
        match policy {
            Policy::OnlyIfRemembered => Self::Shared,
            Policy::Bypass => Self::Private,
            _ if nondeterministic => Self::Private,
            Policy::Refresh => Self::Replacing,
            Policy::Use => Self::Shared,
        }
    }
}

impl Planning {
    /// Notes a run that this piece certainly asks for. After a value that is missing nothing is certain.
    pub(crate) fn note(&self, scope: Scope, run: RequestedRun) {
        if self.is_uncertain() {
            return;
        }
        let mut requested = lock(&self.requested);
        let (key, next) = (run.planned.what.key(), requested.runs.len());
        let known = requested.of_key.get(&key).copied();
        if let Some(at) = known.filter(|_| scope == Scope::Shared) {
            requested.runs[at].planned.calls += 1;
            return;
        }
        if scope != Scope::Private {
            requested.of_key.insert(key, next);
        }
        requested.runs.push(run);
    }

    /// Whether a run of this key is to be computed or waited for; notes that it is asked for once more.
    pub(crate) fn is_missing(&self, key: &Key) -> bool {
        let mut requested = lock(&self.requested);
        let Some(at) = requested.of_key.get(key).copied() else {
            return false;
        };
        let is_missing = requested.runs[at].planned.is_missing();
        if is_missing && !self.is_uncertain() {
            requested.runs[at].planned.calls += 1;
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
    pub(crate) fn take(&self) -> Vec<RequestedRun> {
        std::mem::take(&mut *lock(&self.requested)).runs
    }
}

impl Handle {
    pub(crate) fn planning(&self) -> Option<&Planning> {
        self.planning.as_deref()
    }

    /// This handle for a program that is planned.
    pub(crate) fn with_planning(&self, planning: Arc<Planning>) -> Self {
        Self {
            planning: Some(planning),
            ..self.clone()
        }
    }

    /// Gives a handle for each item of a sweep. In a plan an item without its value makes only that item uncertain.
    pub(crate) fn for_items<'h>(&'h self) -> impl Fn() -> Cow<'h, Self> + Sync {
        let whole = self.planning.as_ref();
        let before = whole.is_some_and(|whole| whole.is_uncertain());
        move || match whole {
            None => Cow::Borrowed(self),
            Some(whole) => Cow::Owned(self.with_planning(Arc::new(Planning {
                requested: Arc::clone(&whole.requested),
                is_uncertain: AtomicBool::new(before),
                whole: Some(Arc::clone(whole)),
            }))),
        }
    }
}
