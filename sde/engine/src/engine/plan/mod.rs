//! Planning: a program's calls give what is remembered, and nothing is computed.
//!
//! A planned call goes the way of [`run`](super::run) up to where that would claim its key: it looks in memory and in
//! the store, and changes neither.

mod report;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use report::Plan;

use super::Engine;
use super::gate::Gate;
use super::handle::{
    CalledApp, Handle, Options, Outcome, Peek, PlannedRun, Planning, Policy, RequestedRun, Scope,
};
use super::peek::{NEW, keep_nearer};
use super::run_state::{Keyed, Run};
use super::sde::Sde;
use crate::app::{Compared, ThreadContext};
use crate::entry::{Entry, Record, Served};
use crate::error::{Error, ErrorKind};
use crate::event::Source;
use crate::inputs::Call;
use crate::job::Costs;
use crate::key::{EncodedCursor, Key};

/// So many pairs of runs are compared for each app: some seconds' work.
const MOST_COMPARED: usize = 500_000;

/// What a planned call would do.
enum Forecast {
    Given(Served, Source),
    Fails(Error),
    Missing(Peek),
}

impl Forecast {
    fn peek(&self, key: Key) -> Peek {
        match self {
            Self::Given(served, source) => {
                let made_by = served.entry.record.run;
                match source {
                    Source::Loaded => Peek::Load { key, made_by },
                    _ => Peek::Hit { key, made_by },
                }
            }
            Self::Fails(error) => {
                let why = format!("{error:#}");
                Peek::Failed { key, why }
            }
            Self::Missing(peek) => peek.clone(),
        }
    }
}

impl Sde {
    /// Tells what a program would compute, load and find in memory, and computes nothing.
    ///
    /// The closure is the program's own code, with the handle that it is given in place of the `Sde`. A call whose result is
    /// remembered gives it. Any other gives an error that [is planned](Error::is_planned), and `?` ends the closure
    /// there. A sweep goes through all its items before it gives that error. What the closure does besides happens: files
    /// that it writes are written, and output files are put back.
    ///
    /// What the plan lists is certain: these calls are made whatever the missing values are. What a closure asks for after a
    /// call without a value may rest on that value, and is not listed. An item of a sweep, or a side of
    /// [`join`](Handle::join), says nothing of the others. It is certain as long as no run fails, none is
    /// [refreshed](Policy::Refresh) in a body or beside others, and nobody else writes to the store or changes files. A result that rests on
    /// an app which the program [shows](crate::Apps::declare) only later is computed, unless that app is shown before.
    ///
    /// The runs that a missing run will call are not known: it stands with its whole recorded time. Nothing is saved,
    /// announced, counted, or told to observers. The plan goes on one thread. It looks up each call once, and then reads the
    /// records of the apps of which runs are missing, as [`peek`](Handle::peek) does.
    ///
    /// ```
    /// use sde::{Handle, Sde};
    ///
    /// #[sde::app]
    /// fn square(x: f64) -> f64 {
    ///     x * x
    /// }
    ///
    /// fn program(sde: &Handle) -> Result<f64, sde::Error> {
    ///     let squares = square.par_call(sde, [1.0, 2.0, 3.0])?;
    ///     Ok(squares.iter().map(|one| **one).sum())
    /// }
    ///
    /// let sde = Sde::new();
    /// square.call(&sde, 1.0)?;
    /// let plan = sde.plan(program)?;
    /// assert_eq!((plan.missing().count(), plan.is_complete()), (2, false));
    /// println!("{plan}");
    ///
    /// program(&sde)?;
    /// assert!(sde.plan(program)?.is_complete());
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it is called in a body, whose result must not rest on what is remembered, or in a program on several ranks: start
    /// that on one to plan it. The closure's own error is [in the plan](Plan::error).
    pub fn plan<T, E: fmt::Display>(
        &self,
        program: impl FnOnce(&Handle) -> Result<T, E>,
    ) -> Result<Plan, Error> {
        let refused = |why| Err(Error::refused("planning", why));
        if self.caller().is_some() {
            return refused(
                "what is remembered is in no key, and this is a body; plan outside of apps",
            );
        }
        if self.shared_ranks().is_some_and(|ranks| ranks.size() > 1) {
            return refused("the program runs on several ranks; start it on one rank to plan it");
        }
        let planning = Arc::new(Planning::default());
        let ended = {
            let _here = ThreadContext::planned(self.engine().id()).enter();
            program(&self.with_planning(Arc::clone(&planning)))
        };
        let error = ended.err().filter(|_| !planning.is_uncertain());
        let runs = self.engine().explained(planning.take());
        Ok(Plan {
            runs,
            is_complete: !planning.is_uncertain(),
            error: error.map(|error| format!("{error:#}")),
            threads: self.engine().helpers().threads(),
            time_left: self.time_left(),
        })
    }
}

impl Engine {
    /// A call of a program that is planned.
    pub(super) fn plan_call(
        &self,
        planning: &Planning,
        from: &Handle,
        app: &CalledApp<'_>,
        call: &mut dyn Call,
        options: &Options<'_>,
    ) -> Result<Outcome, Error> {
        from.declare(app, call)?;
        let resolved = &app.resolved;
        if resolved.is_distributed() && from.shared_ranks().is_some() {
            return Err(Error::refused(
                format!("planning {}", resolved.name),
                "ranks run it together; start the program without a process group to plan it",
            ));
        }
        let keyed = Keyed::of(resolved, call)?;
        let run = Run::new(from, None, app, self.cache_of(resolved), options, keyed);
        let (app, key) = (run.name(), run.key);
        let scope = Scope::of(options.policy, resolved.nondeterministic);
        if scope == Scope::Shared && planning.is_missing(&key) {
            planning.miss();
            return Err(ErrorKind::Planned { app, key }.into());
        }
        let forecast = self.forecast(&run, scope)?;
        planning.note(scope, requested(&run, call, forecast.peek(key)));
        match forecast {
            Forecast::Given(served, source) => Ok(Outcome {
                made_by: served.entry.record.run,
                results: served.map,
                key,
                source,
            }),
            Forecast::Fails(error) => Err(error),
            Forecast::Missing(_) => {
                planning.miss();
                Err(ErrorKind::Planned { app, key }.into())
            }
        }
    }

    /// Tells what a call would do. It looks in the order in which a call that is made looks.
    fn forecast(&self, run: &Run<'_>, scope: Scope) -> Result<Forecast, Error> {
        let (cache, key, names) = (run.cache, run.key, run.options.names);
        let miss = |why: &str| {
            Ok(Forecast::Missing(Peek::Miss {
                key,
                why: why.to_owned(),
                nearest: None,
            }))
        };
        let previous = cache.entry(&key);
        if scope == Scope::Shared
            && let Some(entry) = &previous
            && let Ok(served) = self.served(entry, names)
        {
            return Ok(Forecast::Given(served, Source::Memory));
        }
        self.admit(run)?;
        if scope == Scope::Private {
            return miss("the call or its app makes each run anew");
        }
        let only_remembered = run.options.policy == Policy::OnlyIfRemembered;
        if !only_remembered && cache.is_flying(&key) {
            return Ok(Forecast::Missing(Peek::Wait { key }));
        }
        if scope == Scope::Replacing {
            return miss("the call refreshes it");
        }
        if let Some(error) = cache.failure(&key, self.epoch())
            && !only_remembered
        {
            return Ok(Forecast::Fails(error));
        }
        if let Some(stored) = self.forecast_stored(run, previous.as_deref()) {
            return Ok(stored);
        }
        if only_remembered {
            return Err(self.not_remembered(run, previous));
        }
        if self.shares(run.app, names)
            && let Some(archiver) = self.archiver()
            && archiver.announced_by(&key).is_some()
        {
            return Ok(Forecast::Missing(Peek::Wait { key }));
        }
        match self.known(&run.app.resolved, &key, names) {
            Some(why @ (Peek::Miss { .. } | Peek::Wait { .. })) => Ok(Forecast::Missing(why)),
            Some(_) => miss("what is remembered of it does not serve"),
            None => miss(NEW),
        }
    }

    /// What the store has for a run.
    fn forecast_stored(&self, run: &Run<'_>, previous: Option<&Entry>) -> Option<Forecast> {
        if previous.is_some_and(|entry| entry.record.nondeterministic) {
            return None;
        }
        match self.load(run, previous) {
            Some(served) => Some(Forecast::Given(served, Source::Loaded)),
            None => {
                let given = self.given_failure(run, previous)?;
                Some(Forecast::Fails(given.error))
            }
        }
    }

    /// Completes the missing runs: the earlier run that each is most like, and its expected cost.
    fn explained(&self, mut requested: Vec<RequestedRun>) -> Vec<PlannedRun> {
        let mut missing: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        for (at, RequestedRun { planned, .. }) in requested.iter().enumerate() {
            if planned.is_missing() {
                let of_app = missing.entry(Arc::clone(&planned.app));
                of_app.or_default().push(at);
            }
        }
        for (app, missing) in missing {
            let mut earlier: Vec<Record> = Vec::new();
            let resolved = Arc::clone(&requested[missing[0]].resolved);
            self.earlier(&resolved, &mut |record| earlier.push(record.clone()));
            let (gate, mut costs) = (Gate::new(self, &app), Costs::default());
            for record in &earlier {
                gate.note_in(&mut costs, record);
            }
            let mut comparisons = 0;
            for at in missing {
                let run = &mut requested[at];
                run.planned.cost = run.planned.cost.or_else(|| costs.mean());
                comparisons += earlier.len();
                run.compare(&earlier, comparisons <= MOST_COMPARED);
            }
        }
        requested.into_iter().map(|run| run.planned).collect()
    }
}

impl RequestedRun {
    /// Looks for the run that this one is most like, if it is new, or says that nobody looked.
    fn compare(&mut self, earlier: &[Record], may_compare: bool) {
        let Some(inputs) = self.new.take() else {
            return;
        };
        let Peek::Miss { key, why, nearest } = &mut self.planned.what else {
            return;
        };
        if !may_compare {
            why.push_str("; it was not compared with others, which are too many");
            return;
        }
        let planned = Compared {
            app: &self.resolved.name,
            code: &self.resolved.info.code,
            id: &self.resolved.id,
            setup: &self.setup,
            inputs: &inputs,
        };
        for other in earlier {
            keep_nearer(planned, *key, other, nearest);
        }
    }
}

fn requested(run: &Run<'_>, call: &dyn Call, what: Peek) -> RequestedRun {
    let resolved = &run.app.resolved;
    let is_new = matches!(&what, Peek::Miss { why, .. } if why == NEW);
    let mut planned = PlannedRun {
        app: run.name(),
        what,
        cost: None,
        calls: 1,
    };
    if planned.is_missing() {
        planned.cost = call.cost(&*run.app.app).map(|cost| cost.time);
    }
    RequestedRun {
        resolved: Arc::clone(resolved),
        setup: Arc::clone(resolved.setup(&*run.app.app)),
        new: is_new.then(|| call.summaries(&mut EncodedCursor::new(&run.encoded))),
        planned,
    }
}
