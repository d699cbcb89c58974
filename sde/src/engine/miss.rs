//! What is to be done for a run that is not remembered, and what can't be.

use std::sync::Arc;

use super::Engine;
use super::run::{Run, Served};
use super::wait::label;
use crate::app::{CancelToken, Outcome, Policy, ancestry, depth_here};
use crate::error::{Error, ErrorKind};
use crate::event::Source;
use crate::inputs::Call;
use crate::key::FingerprintError;

impl Engine {
    /// What happens when neither level of the cache has the result.
    pub(super) fn miss(&self, run: &Run<'_>, call: &mut dyn Call) -> Result<Outcome, Error> {
        let facts = run.subject.facts;
        if !facts.missing.is_empty() {
            let error = ErrorKind::NotReady {
                app: Arc::clone(&facts.name),
                missing: facts.missing.clone(),
            };
            return Err(self.failed(run, error.into()));
        }
        if let Some(error) = distributed_input(run) {
            return Err(self.failed(run, error));
        }
        if let Some(path) = own_cycle(run) {
            return Err(self.failed(run, ErrorKind::Cycle { path }.into()));
        }
        let unfit = unknown_name(run).or_else(|| cancelled(run));
        if let Some(error) = unfit.or_else(|| self.too_deep(run)) {
            return Err(self.failed(run, error));
        }
        if run.options.policy == Policy::OnlyIfRemembered {
            return self.only_remembered(run);
        }
        // Before the claim: who waits for the turn holds up nobody.
        let _turn = self.turn(run).map_err(|error| self.failed(run, error))?;
        match run.options.policy {
            Policy::Bypass => self.fly_alone(run, call, false),
            _ if facts.nondeterministic => self.fly_alone(run, call, true),
            _ => self.claim(run, call),
        }
    }

    /// Whether the run would have more below it than a thread's stack is sure to hold.
    pub(crate) fn too_deep(&self, run: &Run<'_>) -> Option<Error> {
        let depth = depth_here(run.parent.as_ref());
        (depth >= self.max_depth).then(|| {
            ErrorKind::TooDeep {
                app: Arc::clone(&run.subject.facts.name),
                key: run.key,
                depth,
            }
            .into()
        })
    }

    /// Counts, tells and records a result that this call did not compute.
    pub(crate) fn conclude(&self, run: &Run<'_>, served: Served, source: Source) -> Outcome {
        if let Some(parent) = &run.parent {
            self.tell_parent(parent, run.subject, &served.entry);
        }
        self.keep_within_limit(run.cache);
        self.hit(run.cache, served, source)
    }

    /// Gives what is in the store, and nothing else.
    fn only_remembered(&self, run: &Run<'_>) -> Result<Outcome, Error> {
        let generation = run.cache.generation();
        let previous = run.cache.entry(&run.key);
        if let Some(loaded) = self.load(run, previous.as_deref()) {
            run.cache.record(&loaded.entry, generation);
            self.sets.received.forget(&run.key);
            return Ok(self.conclude(run, loaded, Source::Loaded));
        }
        // Another run may have taken up meanwhile what was sent.
        let now = run.cache.entry(&run.key);
        if let Some(entry) = &now
            && let Ok(map) = self.serve(entry, run.options.names)
        {
            let entry = Arc::clone(entry);
            return Ok(self.conclude(run, Served { entry, map }, Source::Map));
        }
        let why = match now.or(previous) {
            Some(entry) => self
                .refusal(&entry, run.options.names)
                .unwrap_or_else(|| "it is being computed again".to_owned()),
            None if run.cache.is_flying(&run.key) => "it is being computed".to_owned(),
            None => "it was never computed, or not saved".to_owned(),
        };
        let app = Arc::clone(&run.subject.facts.name);
        let key = run.key;
        Err(self.failed(run, ErrorKind::NotRemembered { app, key, why }.into()))
    }
}

/// An ordinary app would see one rank's part of such an input, and give it out as the result
/// for the whole.
fn distributed_input(run: &Run<'_>) -> Option<Error> {
    let has_parts = run
        .volatile
        .as_ref()
        .is_some_and(|seen| seen.is_distributed());
    if !has_parts || run.subject.facts.info.distributed {
        return None;
    }
    let app = Arc::clone(&run.subject.facts.name);
    let why = "an input lies on several ranks, and the app is not `distributed`";
    let source = FingerprintError::custom(why);
    Some(ErrorKind::Fingerprint { app, source }.into())
}

/// A name was asked for that the app does not return.
pub(crate) fn unknown_name(run: &Run<'_>) -> Option<Error> {
    let facts = run.subject.facts;
    let mut names = run.options.names?.iter();
    let unknown = names.find(|name| facts.result(name).is_none())?;
    let results = facts.info.results.iter();
    let error = ErrorKind::NoResult {
        origin: format!("{} [{}]", facts.name, run.key.short()),
        name: (*unknown).to_owned(),
        there: results.map(|spec| spec.name.to_string()).collect(),
    };
    Some(error.into())
}

/// Whoever made this call, or a run that it is part of, has given up.
pub(crate) fn cancelled(run: &Run<'_>) -> Option<Error> {
    let own = run
        .options
        .cancel
        .as_ref()
        .is_some_and(CancelToken::is_cancelled);
    let given_up = own
        || run
            .parent
            .as_ref()
            .is_some_and(|parent| parent.is_unwanted());
    given_up.then(|| {
        let app = Arc::clone(&run.subject.facts.name);
        ErrorKind::Cancelled { app, key: run.key }.into()
    })
}

/// The cycle, if a run is called from beneath itself.
pub(crate) fn own_cycle(run: &Run<'_>) -> Option<Vec<String>> {
    // Not to look through all that lies above each of thousands of runs.
    if !run.cache.may_be_running(&run.key) {
        return None;
    }
    let depth = ancestry(run.above.as_ref()).position(|frame| run.is(frame))?;
    let mut path: Vec<_> = ancestry(run.above.as_ref())
        .take(depth + 1)
        .map(|frame| frame.label())
        .collect();
    path.reverse();
    path.push(label(&run.node(run.key)));
    Some(path)
}
