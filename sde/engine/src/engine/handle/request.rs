//! One request for a run, with its options.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::super::gate::Gate;
use super::Handle;
use super::source::{AppSource, CalledApp};
use crate::app::{App, Cost, ResolvedApp, ResolvedOnce, Setup};
use crate::error::{AppError, Error, ErrorKind};
use crate::event::{RunId, Source};
use crate::inputs::{Call, DeclaredInputs, Inputs, ValueSummary};
use crate::key::{EncodedCursor, Encoder, FingerprintError, Key};
use crate::result_map::typed::FromResults;
use crate::result_map::{ResultMap, Tags, no_result};

/// Selects how a call uses the cache.
///
/// ```
/// use sde::{Policy, Sde};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let sde = Sde::new();
/// assert!(cube.request(&sde, 2.0).policy(Policy::OnlyIfRemembered).run().is_err());
/// cube.call(&sde, 2.0)?;
/// assert_eq!(*cube.request(&sde, 2.0).policy(Policy::OnlyIfRemembered).run()?.value, 8.0);
/// cube.request(&sde, 2.0).policy(Policy::Refresh).run()?;
/// assert_eq!(sde.stats().total.computed, 2);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Take remembered results, remember computed ones.
    #[default]
    Use,
    /// Compute, and remember the new results in place of the earlier ones. If it fails, the earlier ones stay. Other
    /// bits than before are a warning, unless the app or the result [says](crate::ResultSpec::not_compared) that they
    /// may come.
    Refresh,
    /// Compute, and leave the cache alone.
    Bypass,
    /// Take remembered results, or fail.
    OnlyIfRemembered,
}

#[derive(Clone)]
pub(crate) struct Options<'a> {
    pub(crate) policy: Policy,
    /// The results that must be there; `None` is all that are neither `no_cache`
    /// nor `expendable`.
    pub(crate) names: Option<&'a [&'a str]>,
    /// The tags of results that the call computes, in place of those that the app gives.
    pub(crate) tags: &'a [(String, Tags)],
    /// Whether the call waits for another process that is at its key. Else it gives an error that nobody is told of.
    pub(crate) waits_for_processes: bool,
    /// The computation that a refresh is to replace. Any other that a process has made of the key serves as well.
    pub(crate) replaced: Option<RunId>,
    /// The gate that the call must pass before it computes: of an item of a sweep.
    pub(crate) gate: Option<&'a Gate<'a>>,
    /// Whether failures of earlier programs are given too.
    pub(crate) keeps_failures: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            policy: Policy::Use,
            names: None,
            tags: &[],
            waits_for_processes: true,
            replaced: None,
            gate: None,
            keeps_failures: false,
        }
    }
}

impl Options<'_> {
    /// Whether the call computes although there is this computation.
    pub(crate) fn replaces(&self, made: RunId) -> bool {
        self.policy == Policy::Refresh && self.replaced.is_none_or(|old| old == made)
    }
}

/// Whether an error says that a call left its key to another process.
pub(crate) fn is_left(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotRemembered { .. })
}

/// The options of a call to an `#[sde::app]` function that gives a `G`.
pub(super) struct TypedOptions<G>(PhantomData<G>);

impl<G: FromResults> TypedOptions<G> {
    pub(super) const OPTIONS: &'static Options<'static> = &Options {
        policy: Policy::Use,
        names: match G::NAMES {
            [] => None,
            names => Some(names),
        },
        tags: &[],
        waits_for_processes: true,
        replaced: None,
        gate: None,
        keeps_failures: false,
    };
}

/// A run about to be made, by [`Handle::request`](crate::Handle::request).
///
/// ```
/// use sde::{Policy, Sde, Source, inputs};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let (sde, inputs) = (Sde::new(), inputs! { x: 2.0_f64 });
/// sde.run(&cube, &inputs)?;
/// let outcome = sde.request(&cube, &inputs).policy(Policy::Refresh).names(&["result"]).run()?;
/// assert_eq!(*outcome.results.get::<f64>("result")?, 8.0);
/// assert_eq!(outcome.source, Source::Computed);
/// # Ok::<(), sde::Error>(())
/// ```
#[must_use = "a request does nothing until it is run"]
pub struct Request<'a, A: AppSource + ?Sized> {
    pub(super) handle: &'a Handle,
    pub(super) app: &'a A,
    pub(super) inputs: &'a Inputs,
    pub(super) options: Options<'a>,
    pub(super) tags: Vec<(String, Tags)>,
}

impl<A: AppSource + ?Sized> fmt::Debug for Request<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("inputs", &self.inputs.names().collect::<Vec<_>>())
            .field("policy", &self.options.policy)
            .field("names", &self.options.names)
            .finish_non_exhaustive()
    }
}

impl<'a, A: AppSource + ?Sized> Request<'a, A> {
    /// Sets how the run uses the cache.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.options.policy = policy;
        self
    }

    /// Gives the run's failure, if the store has one of an earlier program and it still holds, in place of making the run
    /// again. See [`Builder::keep_failures`](crate::Builder::keep_failures), which says so for all calls.
    pub fn keep_failures(mut self) -> Self {
        self.options.keeps_failures = true;
        self
    }

    /// Guarantees the named results, whatever their tags. Only missing ones are computed again: values that are held
    /// already keep their identity. A name that the app does not return is an error.
    pub fn names(mut self, names: &'a [&'a str]) -> Self {
        self.options.names = Some(names);
        self
    }

    /// Sets the tags of a result, in place of those that the app gives it, if this call computes it. A remembered
    /// result keeps its tags. A name that the app does not return is an error when it computes.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// use sde::{Sde, Tag, inputs};
    ///
    /// let (sde, inputs) = (Sde::new(), inputs! { x: 3.0_f64 });
    /// let results = sde.request(&square, &inputs).tags("result", Tag::Intermediate).run()?.results;
    /// assert_eq!(results.tags("result"), Some(Tag::Intermediate.into()));
    /// # Ok::<(), sde::Error>(())
    /// ```
    pub fn tags(mut self, name: &str, tags: impl Into<Tags>) -> Self {
        self.tags.push((name.to_owned(), tags.into()));
        self
    }

    /// Makes the run.
    ///
    /// # Errors
    /// As [`Handle::run`](crate::Handle::run); and that nothing is remembered where only that was allowed.
    #[inline]
    pub fn run(self) -> Result<Outcome, Error> {
        let app = self.app.resolve(self.handle)?;
        let tags = &self.tags[..];
        let options = Options {
            tags,
            ..self.options
        };
        self.handle.outcome(&app, self.inputs, &options)
    }

    /// The outcome, if the results are in memory: a hit like that of [`run`](Self::run), but it never waits for another
    /// thread, and never computes. For a caller that holds a lock which a body takes; it goes on to `run` where
    /// this gives nothing. So the state of the cache decides nothing that a body can see.
    #[doc(hidden)]
    pub fn ready(&self) -> Option<Outcome> {
        let app = self.app.resolve(self.handle).ok()?;
        let call = ErasedCall::of(&app, self.inputs);
        let outcome = (self.handle.engine).ready(self.handle, &app, &call, &self.options)?;
        outcome.or_else(|| call.into_outcome())
    }
}

impl Handle {
    /// Runs a call made by the macros. Gives the results that it has not taken.
    #[doc(hidden)]
    #[inline]
    pub fn call_linked<G: FromResults>(
        &self,
        app: &dyn App,
        resolved: &ResolvedOnce,
        call: &mut dyn Call,
    ) -> Result<Option<ResultMap>, Error> {
        let app = self.linked(app, resolved)?;
        let outcome = self
            .engine
            .run(self, &app, call, TypedOptions::<G>::OPTIONS)?;
        Ok(outcome.map(|outcome| outcome.results))
    }

    /// An app that was linked into the program.
    #[inline]
    pub(crate) fn linked<'a>(
        &self,
        app: &'a dyn App,
        resolved: &'a ResolvedOnce,
    ) -> Result<CalledApp<'a>, Error> {
        let ready = match resolved.get() {
            Some(ready) => ready,
            None => self.resolve_once(app, resolved)?,
        };
        Ok(CalledApp::ready(app, ready))
    }

    #[cold]
    fn resolve_once<'a>(
        &self,
        app: &dyn App,
        resolved: &'a ResolvedOnce,
    ) -> Result<&'a Arc<ResolvedApp>, Error> {
        let ready = self.identify(app, Setup::defaults(app))?;
        Ok(resolved.get_or_init(|| ready))
    }

    /// The inputs as the app declares them: checked, and in its order.
    #[inline]
    pub(super) fn declared<'i>(
        &self,
        app: &CalledApp<'_>,
        given: &'i Inputs,
    ) -> Result<Cow<'i, Inputs>, Error> {
        let mut call = ErasedCall::of(app, given);
        self.declare(app, &mut call)?;
        Ok(call.ordered.map_or(Cow::Borrowed(call.given), Cow::Owned))
    }

    /// Holds the inputs of a call against those that the app declares; says whether they have another order now.
    pub(crate) fn declare(&self, app: &CalledApp<'_>, call: &mut dyn Call) -> Result<bool, Error> {
        let resolved = &*app.resolved;
        match &resolved.info.inputs {
            // A run that goes on without depends on what the app takes.
            Some(declared) => call
                .declare(&resolved.name, declared)
                .inspect_err(|_| self.note_uncacheable()),
            None => Ok(false),
        }
    }

    /// Runs a call with [`Inputs`].
    #[inline]
    pub(crate) fn outcome(
        &self,
        app: &CalledApp<'_>,
        inputs: &Inputs,
        options: &Options<'_>,
    ) -> Result<Outcome, Error> {
        let mut call = ErasedCall::of(app, inputs);
        match self.engine.run(self, app, &mut call, options)? {
            Some(outcome) => Ok(outcome),
            None => match call.into_outcome() {
                Some(outcome) => Ok(outcome),
                None => Err(nothing_given(app)),
            },
        }
    }

    /// The results of an item of a sweep, if the gate lets it begin.
    pub(crate) fn results_through(
        &self,
        app: &CalledApp<'_>,
        inputs: &Inputs,
        gate: Option<&Gate<'_>>,
    ) -> Result<ResultMap, Error> {
        let options = Options {
            gate,
            ..Options::default()
        };
        let outcome = self.outcome(app, inputs, &options);
        outcome.map(|outcome| outcome.results)
    }

    /// The results of a call with no more to say of it. An outcome would copy the key out of the entry.
    #[inline]
    pub(crate) fn results(&self, app: &CalledApp<'_>, inputs: &Inputs) -> Result<ResultMap, Error> {
        let mut call = ErasedCall::of(app, inputs);
        match self.engine.run(self, app, &mut call, &Options::default())? {
            Some(outcome) => Ok(outcome.results),
            None => match call.taken.into_inner() {
                Some(results) => Ok(results),
                None => Err(nothing_given(app)),
            },
        }
    }
}

/// The error of a call that neither took results nor was given any. The engine makes no such call.
#[cold]
fn nothing_given(app: &CalledApp<'_>) -> Error {
    no_result(&app.resolved.name, "result", &[])
}

/// The outcome of a request: the results, and how they were got.
///
/// `source` and `made_by` tell the state of the cache, which is in no key: a body must not let what it returns depend
/// on them. They are for reports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The results.
    pub results: ResultMap,
    /// The key of the run.
    pub key: Key,
    /// The source of the results.
    pub source: Source,
    /// The computation that made them.
    pub made_by: RunId,
}

struct ErasedCall<'a> {
    given: &'a Inputs,
    /// In the order that the app declares, if that is another.
    ordered: Option<Inputs>,
    /// The results that it took of a hit in memory.
    taken: Cell<Option<ResultMap>>,
}

impl<'a> ErasedCall<'a> {
    #[inline]
    fn of(app: &CalledApp<'_>, given: &'a Inputs) -> Self {
        let declared = || app.resolved.info.inputs.as_ref();
        let kept = || declared()?.kept(given);
        // Most were given in their order, and then the app need not be asked.
        let given = match given.have_kept_order() {
            true => kept().unwrap_or(given),
            false => given,
        };
        Self {
            given,
            ordered: None,
            taken: Cell::new(None),
        }
    }

    #[inline]
    fn inputs(&self) -> &Inputs {
        self.ordered.as_ref().unwrap_or(self.given)
    }

    /// The outcome of a hit that it took results of.
    #[inline]
    fn into_outcome(self) -> Option<Outcome> {
        let results = self.taken.into_inner()?;
        let record = &results.entry()?.record;
        Some(Outcome {
            key: record.key,
            made_by: record.run,
            source: Source::Memory,
            results,
        })
    }
}

impl Call for ErasedCall<'_> {
    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.inputs().encode(to)
    }

    fn encoded(&self) -> Option<&[u8]> {
        self.inputs().kept()
    }

    fn summaries(&self, cursor: &mut EncodedCursor<'_>) -> Vec<ValueSummary> {
        self.inputs().summaries(cursor)
    }

    fn take_all(&self, results: ResultMap) -> bool {
        self.taken.set(Some(results));
        true
    }

    fn declare(&mut self, app: &str, declared: &DeclaredInputs) -> Result<bool, Error> {
        let ordered = declared.check(app, self.inputs())?;
        let are_others = ordered.is_some();
        self.ordered = ordered.or(self.ordered.take());
        Ok(are_others)
    }

    fn cost(&self, app: &dyn App) -> Option<Cost> {
        app.cost(self.inputs())
    }

    fn compute(&mut self, app: &dyn App, sde: &Handle) -> Result<ResultMap, AppError> {
        app.run(sde, self.inputs())
    }
}
