//! The calls that a program or a body makes.
//!
//! Naming an app ([`AppSource`]), one run and its options ([`request`]), functions by their arguments
//! ([`call_app`]), what files of results hold ([`files`]), many at once ([`parallel`], [`par_call`], on the loop of [`items`]), parts of the ranks ([`subset`]), states to go on from ([`scratch`]).

mod call_app;
mod files;
mod items;
mod par_call;
mod parallel;
mod peek;
mod planning;
mod request;
mod scratch;
mod source;
mod subset;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

pub use call_app::{CallApp, CallRequest, Called};
pub(crate) use items::{Ended, Loop, led};
pub use par_call::GoesOn;
pub use peek::Peek;
pub use planning::PlannedRun;
pub(crate) use planning::{Planning, RequestedRun, Scope};
pub(crate) use request::{Options, is_left};
pub use request::{Outcome, Policy, Request};
pub use scratch::Scratch;
pub use source::AppSource;
pub use source::CalledApp;
pub use subset::{Subset, Transfer};
pub use sweep::Sweep;

use super::{Engine, SoFar};
use crate::app::{
    App, CancelToken, Cost, Frame, Instance, Prepared, ResolvedApp, Settings, Setup, ThreadContext,
};
use crate::error::{Error, ErrorKind};
use crate::inputs::Inputs;
use crate::key::Key;
use crate::ranks::{ProcessSet, StateKind};
use crate::result_map::{ResultMap, Storable};

/// Runs apps.
///
/// A body gets one that knows its ancestry, so that the engine records what the run depends on and finds cycles. A
/// [`Sde`](crate::Sde) dereferences to one without ancestry, so that code looks the same inside an app and outside.
/// Calls for the user alone (clear, invalidate, load, finish) are on `Sde`.
///
/// Cloning is cheap. A handle used after its run has ended gives an error, from all
/// that can give one.
///
/// ```
/// use sde::{Handle, Sde};
///
/// #[sde::app]
/// fn square(x: f64) -> f64 {
///     x * x
/// }
///
/// #[sde::app]
/// fn length(sde: &Handle, x: f64, y: f64) -> Result<f64, sde::Error> {
///     Ok((*square.call(sde, x)? + *square.call(sde, y)?).sqrt())
/// }
///
/// let sde = Sde::new();
/// assert_eq!(*length.call(&sde, 3.0, 4.0)?, 5.0);
/// assert_eq!(sde.stats().total.computed, 3);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    engine: Arc<Engine>,
    frame: Option<Arc<Frame>>,
    /// The process set that the handle's code runs on; `None` for this process alone.
    ranks: Option<Arc<ProcessSet>>,
    /// What cancels the calls made through it, besides what cancels its run.
    cancel: Vec<CancelToken>,
    /// What its calls are noted in, which compute nothing.
    planning: Option<Arc<Planning>>,
}

impl Handle {
    pub(crate) fn new(
        engine: Arc<Engine>,
        frame: Option<Arc<Frame>>,
        ranks: Option<Arc<ProcessSet>>,
    ) -> Self {
        Self {
            engine,
            frame,
            ranks,
            cancel: Vec::new(),
            planning: None,
        }
    }

    /// A handle whose calls this token cancels, with all runs beneath them. Tokens that this handle has count too.
    ///
    /// A call that computes or waits is then an error. What is in memory is given even so, but for a distributed app. What
    /// others wait for goes on for them.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// use sde::{CancelToken, ErrorKind, Sde};
    ///
    /// let (sde, token) = (Sde::new(), CancelToken::new());
    /// let cancellable = sde.with_cancel(&token);
    /// square.call(&cancellable, 3.0)?;
    /// token.cancel();
    /// assert_eq!(*square.call(&cancellable, 3.0)?, 9.0);
    /// let error = square.par_call(&cancellable, [4.0, 5.0]).unwrap_err();
    /// assert!(error.is_cancelled());
    /// # Ok::<(), sde::Error>(())
    /// ```
    #[must_use]
    pub fn with_cancel(&self, token: &CancelToken) -> Self {
        let mut with = self.clone();
        with.cancel.push(token.clone());
        with
    }

    /// Runs an app: gives its remembered results for these inputs, or computes and remembers them.
    ///
    /// The app is given by value, as an [`Instance`], as a [`Prepared`] handle, or
    /// by the name under which it is registered. No lock is held while it runs. If
    /// another thread is computing the same run, this call waits for it and shares
    /// its results.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// use sde::{Sde, inputs};
    ///
    /// let sde = Sde::new();
    /// let results = sde.run(&square, &inputs! { x: 3.0_f64 })?;
    /// assert_eq!(*results.get::<f64>("result")?, 9.0);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the app or its settings can't be found, identified or are not ready;
    /// if the inputs are not those that it declares; if its body fails, or panics on another thread; if the run needs its own
    /// result; if this handle's run has ended.
    ///
    /// # Panics
    /// If the app's body panics on this thread, the panic goes on here.
    pub fn run<A: AppSource + ?Sized>(&self, app: &A, inputs: &Inputs) -> Result<ResultMap, Error> {
        self.results(&app.resolve(self)?, inputs)
    }

    /// A run with more to say of it: a policy, names, tags; and with an
    /// outcome that tells how the results were got.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// use sde::{Policy, Sde, Source, inputs};
    ///
    /// let sde = Sde::new();
    /// let inputs = inputs! { x: 3.0_f64 };
    /// let nothing = sde.request(&square, &inputs).policy(Policy::OnlyIfRemembered).run();
    /// assert!(nothing.is_err());
    /// assert_eq!(sde.request(&square, &inputs).run()?.source, Source::Computed);
    /// assert_eq!(sde.request(&square, &inputs).run()?.source, Source::Memory);
    /// # Ok::<(), sde::Error>(())
    /// ```
    pub fn request<'a, A: AppSource + ?Sized>(
        &'a self,
        app: &'a A,
        inputs: &'a Inputs,
    ) -> Request<'a, A> {
        Request {
            handle: self,
            app,
            inputs,
            options: Options::default(),
            tags: Vec::new(),
        }
    }

    /// The results of this app for these inputs, if all of them are in memory. It never computes, waits for another
    /// thread, or looks into a store. A distributed app gives `None`: its calls are collective.
    ///
    /// The state of the cache is in no key. So a run whose body asks for it is recorded as non-deterministic, and never
    /// looked up.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// use sde::{Sde, inputs};
    ///
    /// let (sde, inputs) = (Sde::new(), inputs! { x: 3.0_f64 });
    /// assert!(sde.try_get(&square, &inputs).is_none());
    /// sde.run(&square, &inputs)?;
    /// assert_eq!(*sde.try_get(&square, &inputs).unwrap().get::<f64>("result")?, 9.0);
    /// # Ok::<(), sde::Error>(())
    /// ```
    #[must_use]
    pub fn try_get<A: AppSource + ?Sized>(&self, app: &A, inputs: &Inputs) -> Option<ResultMap> {
        self.check_active().ok()?;
        self.note_uncacheable();
        let app = app.resolve(self).ok()?;
        let inputs = self.declared(&app, inputs).ok()?;
        self.engine.in_memory(&app, &inputs)
    }

    /// Tells what a run would do, and why, without running anything.
    ///
    /// The state of the cache is in no key. So a run whose body asks for it is recorded as non-deterministic, and never
    /// looked up.
    ///
    /// A miss names the nearest run, for which it is compared with all runs of the app that are
    /// remembered, and with those whose records the store gives, which are read from the disk: of
    /// a large directory the latest ten thousand entries, in some tenths of a second. Ask this to
    /// find out why a run would be computed, not before each run.
    ///
    /// # Errors
    /// If the app can't be found or identified, or the inputs are not those that it declares, or can't be keyed; if this
    /// handle's run has ended.
    pub fn peek<A: AppSource + ?Sized>(&self, app: &A, inputs: &Inputs) -> Result<Peek, Error> {
        self.check_active()?;
        self.note_uncacheable();
        let app = app.resolve(self)?;
        self.engine.peek(&app, &*self.declared(&app, inputs)?)
    }

    /// The key of a run, and whether its results are remembered. Unlike [`peek`](Self::peek) it looks for no other run, so
    /// it may be asked before each. A body that asks stays cacheable: what it returns must not depend on the answer.
    #[doc(hidden)]
    pub fn glance<A: AppSource + ?Sized>(
        &self,
        app: &A,
        inputs: &Inputs,
    ) -> Result<(Key, bool), Error> {
        self.check_active()?;
        let app = app.resolve(self)?;
        let (key, known) = (self.engine).glance(&app, &*self.declared(&app, inputs)?)?;
        let is_remembered = matches!(known, Some(Peek::Hit { .. } | Peek::Load { .. }));
        Ok((key, is_remembered))
    }

    /// The cost of a run: nothing if it is remembered, else the app's estimate, if it has one. In a body it is a
    /// [`peek`](Self::peek).
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn cost<A: AppSource + ?Sized>(
        &self,
        app: &A,
        inputs: &Inputs,
    ) -> Result<Option<Cost>, Error> {
        Ok(match self.peek(app, inputs)? {
            Peek::Hit { .. } | Peek::Load { .. } | Peek::Failed { .. } => Some(Cost::default()),
            Peek::Wait { .. } | Peek::Miss { .. } => {
                let app = app.resolve(self)?;
                app.app.cost(&*self.declared(&app, inputs)?)
            }
        })
    }

    /// Checks and identifies an app once, for many runs.
    ///
    /// # Errors
    /// If a name leads nowhere, slots form a cycle, or a parameter is refused; if this
    /// handle's run has ended.
    pub fn prepare(&self, instance: &Instance) -> Result<Prepared, Error> {
        self.check_active()?;
        Ok(Prepared {
            app: Arc::clone(&instance.app),
            resolved: self.identify(&*instance.app, instance.setup.clone())?,
        })
    }

    /// The app in one of the running app's own sub-app slots.
    ///
    /// # Errors
    /// If the app has no such slot, or this handle belongs to no run.
    pub fn sub_app(&self, slot: &str) -> Result<Prepared, Error> {
        let resolved = &self.own_frame("sub-app")?.resolved;
        let there = resolved.sub_apps.get(slot).cloned();
        there.ok_or_else(|| {
            Error::unknown_name(&resolved.name, "slot", slot, resolved.sub_apps.keys())
        })
    }

    /// The value of one of the running app's own parameters.
    ///
    /// # Errors
    /// If the app has no such parameter, it has another type, or this handle
    /// belongs to no run.
    pub fn parameter<T: 'static>(&self, name: &str) -> Result<&T, Error> {
        let settings = &self.own_frame("parameter")?.resolved.settings;
        let setting = settings.setting(name);
        let setting = setting.ok_or_else(|| settings.no_parameter(name))?;
        let wanted = std::any::type_name::<T>();
        let value = setting.any().downcast_ref();
        value.ok_or_else(|| settings.other_type(name, setting.type_name, wanted))
    }

    /// The values of all of the running app's own parameters and slots, as a struct that derives
    /// [`Settings`](trait@crate::Settings). A [`ConfiguredApp`](crate::ConfiguredApp) finds them in `self`.
    ///
    /// # Errors
    /// If the app declares other ones, or this handle belongs to no run.
    pub fn settings<T: Settings>(&self) -> Result<T, Error> {
        T::read(self)
    }

    /// Evicts remembered values of an app until the others take at most `keep` bytes; gives how many bytes were let go.
    /// The values used longest ago go first; without a [budget](crate::MemoryBudget) that looks at uses, those made
    /// first. It is for apps whose values fill something scarce, such as a device's memory.
    ///
    /// Evicted values are computed, or read from the store, again; nothing else changes. Values that the program holds
    /// too count as not let go, and calls get them for as long as it holds them. Values still to be saved are saved before they go. `keep` is for each process set anew. Nothing is let
    /// go of an app that did not run, or of which no value was dropped.
    pub fn evict(&self, app: &str, keep: usize) -> usize {
        self.engine.evict_down_to(app, keep)
    }

    /// The scratch space of this run, for a state of type `T`. An iteration that was cut off goes on from it, on one
    /// rank or on many.
    #[must_use]
    pub fn scratch<T: Storable>(&self) -> Scratch<'_, T> {
        Scratch {
            handle: self,
            kind: StateKind::Own,
        }
    }

    /// How much time the job has left: zero once its end has come, or somebody stopped the program; `None` if it is not
    /// known to end. Costs some nanoseconds.
    ///
    /// An engine that is built [for a program](crate::Builder::for_program), as `sde::open` does, knows its end from the
    /// first of these that is set:
    ///
    /// - `SDE_TIME_LIMIT`: the time from the start of the process (`90`, `90s`, `15m`, `2h`, `1h30m`, `1d`,
    ///   `HH:MM:SS`), the end as `@` and seconds since 1970, or `none`;
    /// - `SLURM_JOB_END_TIME`, which new releases of Slurm set;
    /// - `SLURM_JOB_ID`, `FLUX_JOB_ID` or `PBS_JOBID`: then `squeue`, `flux` or `qstat` is asked once, and if it has not
    ///   answered in two seconds, the end is not known, and a warning says so.
    ///
    /// Other engines have no end, unless they are [given one](crate::Builder::time_limit). The end moves no more when the
    /// clock is set. On systems other than Linux the limit counts from when the engine is built.
    ///
    /// The time is in no key. So a run whose body asks for it is recorded as non-deterministic, and never looked up: ask
    /// between runs.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.note_uncacheable();
        self.engine.job.time_left()
    }

    /// Whether nobody wants this run's results any more: its caller cancelled, and
    /// nobody else waits; or a token of this [handle](Self::with_cancel) was cancelled. A long body asks now and then, and
    /// returns an error. What it returns after it was told so is not remembered.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let is_cancelled = self.cancel.iter().any(CancelToken::is_cancelled)
            || self.frame.as_ref().is_some_and(|frame| frame.is_unwanted());
        if is_cancelled {
            self.note_uncacheable();
        }
        is_cancelled
    }

    /// Sets the least time that this run's results took, where they were computed elsewhere, or before, and were only
    /// brought here. The run's record then has this time, and each hit counts as having saved it. Of several calls
    /// the longest time counts. A run that goes on from a [scratch](Self::scratch) state adds what the runs before took.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sde::{Handle, Sde};
    ///
    /// #[sde::app]
    /// fn imported(sde: &Handle, point: u64) -> f64 {
    ///     // From a table that another program made.
    ///     sde.took(Duration::from_secs(3600));
    ///     point as f64
    /// }
    ///
    /// let sde = Sde::new();
    /// imported.call(&sde, 1)?;
    /// sde.records(|record| assert_eq!(record.took, Duration::from_secs(3600)));
    /// # Ok::<(), sde::Error>(())
    /// ```
    pub fn took(&self, time: Duration) {
        if let Some(frame) = &self.frame {
            frame.clock.say(time);
        }
    }

    /// Tells observers how far long work has come; nobody, if this handle's run has
    /// ended.
    pub fn progress(&self, label: &str, done: usize, total: usize) {
        if self.check_active().is_ok() {
            let nested = ThreadContext::here().is_beside();
            self.engine
                .progress(label, SoFar { done, failed: 0 }, total, nested);
        }
    }

    /// Identifies an app that the run of this handle asks for. The run may go on without it, and more than one thing may
    /// change that.
    fn identify(&self, app: &dyn App, settings: Setup) -> Result<Arc<ResolvedApp>, Error> {
        let resolved = self.engine.identify(app, settings);
        resolved.inspect_err(|_| self.note_uncacheable())
    }

    /// Notes that the run of this handle saw something that is in no key and may change: its result is not looked up.
    #[doc(hidden)]
    pub fn note_uncacheable(&self) {
        if let Some(frame) = self.caller() {
            frame.dependencies.add([], true);
        }
    }

    /// The run that makes a call through this handle: the handle's own. A call through an `Sde` that a body captured
    /// belongs to the run on its thread, except on a rayon worker, which may be doing something else there.
    #[inline]
    pub(crate) fn caller(&self) -> Option<Arc<Frame>> {
        match &self.frame {
            Some(frame) => Some(Arc::clone(frame)),
            None => ThreadContext::caller().filter(|frame| frame.engine == self.engine.id()),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn cancel_tokens(&self) -> &[CancelToken] {
        &self.cancel
    }

    pub(crate) fn shared_ranks(&self) -> Option<&Arc<ProcessSet>> {
        self.ranks.as_ref()
    }

    pub(crate) fn frame(&self) -> Option<&Arc<Frame>> {
        self.frame.as_ref()
    }

    /// The run this handle belongs to.
    pub(crate) fn own_frame(&self, what: &'static str) -> Result<&Arc<Frame>, Error> {
        let Some(frame) = &self.frame else {
            return Err(Error::refused(
                format!("asking for a {what}"),
                "it belongs to a run; ask the handle that the app's body was given",
            ));
        };
        self.check_active()?;
        Ok(frame)
    }

    /// Checks that the run of this handle, if it has one, still goes on.
    #[inline]
    pub(crate) fn check_active(&self) -> Result<(), Error> {
        match &self.frame {
            Some(frame) if !frame.is_active() => return Err(stale(frame)),
            _ => {}
        }
        match &self.ranks {
            Some(ranks) => ranks.check(),
            None => Ok(()),
        }
    }
}

#[cold]
fn stale(frame: &Frame) -> Error {
    ErrorKind::StaleHandle {
        app: Arc::clone(&frame.resolved.name),
        key: frame.key,
    }
    .into()
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.frame {
            Some(frame) => write!(f, "Handle({})", frame.label()),
            None => f.write_str("Handle"),
        }
    }
}
