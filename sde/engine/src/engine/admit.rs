//! Reasons to refuse a run.

use super::Engine;
use super::run_state::Run;
use super::save::is_writing;
use crate::app::{ThreadContext, ancestry, depth_here};
use crate::error::{Error, ErrorKind};
use crate::key::FingerprintError;
use crate::result_map::no_result;

impl Engine {
    /// Checks that a run without a remembered result may be made.
    pub(crate) fn admit(&self, run: &Run<'_>) -> Result<(), Error> {
        let refused = within_a_store()
            .or_else(|| not_ready(run))
            .or_else(|| distributed_input(run))
            .or_else(|| self.beside_a_plan(run))
            .or_else(|| own_cycle(run))
            .or_else(|| unknown_name(run))
            .or_else(|| cancelled(run))
            .or_else(|| self.too_deep(run));
        refused.map_or(Ok(()), Err)
    }

    /// Refuses a run that a program which is planned asks for through another handle than it was given: that one would
    /// compute.
    fn beside_a_plan(&self, run: &Run<'_>) -> Option<Error> {
        let plans = run.from.planning().is_some();
        (!plans && ThreadContext::is_planned_by(self.id())).then(|| {
            Error::refused(
                format!("a call of {} in a plan", run.name()),
                "it was made through another handle, which would compute; use the handle that the closure of `plan` is given",
            )
        })
    }

    /// Refuses a run that is nested deeper than a thread's stack is sure to hold.
    fn too_deep(&self, run: &Run<'_>) -> Option<Error> {
        let depth = depth_here(run.parent.as_ref());
        (depth >= self.max_depth).then(|| {
            ErrorKind::TooDeep {
                app: run.name(),
                key: run.key,
                depth,
            }
            .into()
        })
    }
}

/// Refuses a run that a store asks for while it writes a result.
fn within_a_store() -> Option<Error> {
    is_writing().then(|| {
        Error::refused(
            "a call of the engine by its store",
            "others wait for the result that it writes; call the engine in `Archiver::encode` instead",
        )
    })
}

fn not_ready(run: &Run<'_>) -> Option<Error> {
    let resolved = &*run.app.resolved;
    (!resolved.missing.is_empty()).then(|| {
        let (app, missing) = (run.name(), resolved.missing.clone());
        ErrorKind::NotReady { app, missing }.into()
    })
}

/// An ordinary app would see one rank's part of such an input, and give it out as the result
/// for the whole.
fn distributed_input(run: &Run<'_>) -> Option<Error> {
    let has_parts = run
        .volatile
        .as_ref()
        .is_some_and(|seen| seen.is_distributed());
    if !has_parts || run.app.resolved.is_distributed() {
        return None;
    }
    let app = run.name();
    let why = "an input lies on several ranks, and the app is not `distributed`";
    let source = FingerprintError::custom(why);
    Some(ErrorKind::Fingerprint { app, source }.into())
}

/// Refuses a request for a name that the app does not return.
fn unknown_name(run: &Run<'_>) -> Option<Error> {
    let resolved = &*run.app.resolved;
    let (names, tags) = (run.options.names.unwrap_or_default(), run.options.tags);
    let mut names = names
        .iter()
        .copied()
        .chain(tags.iter().map(|(name, _)| &**name));
    let unknown = names.find(|name| resolved.result(name).is_none())?;
    let results = resolved.info.results.iter();
    let there: Vec<_> = results.map(|spec| spec.name.to_string()).collect();
    let origin = format!("{} [{}]", resolved.name, run.key.short());
    Some(no_result(&origin, unknown, &there))
}

pub(super) fn cancelled(run: &Run<'_>) -> Option<Error> {
    run.is_cancelled().then(|| {
        let app = run.name();
        ErrorKind::Cancelled { app, key: run.key }.into()
    })
}

/// Refuses a run that is nested in itself.
fn own_cycle(run: &Run<'_>) -> Option<Error> {
    run.above.as_ref()?;
    // This spares thousands of runs the walk through their ancestors. A process set's cache knows only the set's own
    // runs.
    if !run.app.resolved.is_distributed() && !run.cache.may_be_running(&run.key) {
        return None;
    }
    let depth = ancestry(run.above.as_ref()).position(|frame| run.is(frame))?;
    let mut path: Vec<_> = ancestry(run.above.as_ref())
        .take(depth + 1)
        .map(|frame| frame.label())
        .collect();
    path.reverse();
    path.push(run.node(run.key).label());
    Some(ErrorKind::Cycle { path }.into())
}
