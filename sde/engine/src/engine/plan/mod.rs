//! Planning: a program's calls give what is remembered, and nothing is computed.
//!
//! A planned call goes the way of [`run`](super::run) up to where that would claim its key: it looks in memory and in
//! the store, and changes neither.

mod report;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use report::{Plan, PlannedRun};

use super::Engine;
use super::gate::Gate;
use super::handle::{CalledApp, Handle, Options, Outcome, Peek, Place, Planning, Policy, SeenRun};
use super::peek::{NEW, look_at};
use super::run_state::{Keyed, Run};
use super::sde::Sde;
use crate::app::{Compared, ThreadContext};
use crate::entry::{Entry, Record, Served};
use crate::error::{Error, ErrorKind};
use crate::event::Source;
use crate::inputs::Call;
use crate::job::Costs;
use crate::key::{EncodedCursor, FingerprintError, keyed, with_encoder};

/// So many pairs of runs are compared for each app: some seconds' work.
const MOST_COMPARED: usize = 500_000;

/// A planned call, as far as it can be told without computing.
enum Foreseen {
    Given(Served, Source),
    Fails(Error),
    Missing(Peek),
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
            program(&self.that_plans(Arc::clone(&planning)))
        };
        let error = ended.err().filter(|_| !planning.is_uncertain());
        let runs = self.engine().with_reasons(planning.take());
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
        let keyed = keyed_inputs(app, call).map_err(|source| ErrorKind::Fingerprint {
            app: Arc::clone(&resolved.name),
            source,
        })?;
        let run = Run::new(from, None, app, self.cache_of(resolved), options, keyed);
        let key = run.key;
        let place = match options.policy {
            Policy::OnlyIfRemembered => Place::Shared,
            Policy::Bypass => Place::Alone,
            _ if resolved.nondeterministic => Place::Alone,
            Policy::Refresh => Place::Anew,
            Policy::Use => Place::Shared,
        };
        let planned = || {
            planning.miss();
            let app = Arc::clone(&resolved.name);
            Err(ErrorKind::Planned { app, key }.into())
        };
        if place == Place::Shared && planning.is_missing(&key) {
            return planned();
        }
        let note = |what: Peek| {
            let is_new = matches!(&what, Peek::Miss { why, .. } if why == NEW);
            let summaries = || call.summaries(&mut EncodedCursor::new(&run.encoded));
            planning.note(
                place,
                SeenRun {
                    resolved: Arc::clone(resolved),
                    setup: Arc::clone(resolved.setup(&*app.app)),
                    new: is_new.then(summaries),
                    cost: call.cost(&*app.app).map(|cost| cost.time),
                    what,
                    calls: 1,
                },
            );
        };
        match self.foresee(&run, place)? {
            Foreseen::Given(served, source) => {
                let made_by = served.entry.record.run;
                note(match source {
                    Source::Loaded => Peek::Load { key, made_by },
                    _ => Peek::Hit { key, made_by },
                });
                Ok(Outcome {
                    results: served.map,
                    key,
                    source,
                    made_by,
                })
            }
            Foreseen::Fails(error) => {
                let why = format!("{error:#}");
                note(Peek::Failed { key, why });
                Err(error)
            }
            Foreseen::Missing(what) => {
                note(what);
                planned()
            }
        }
    }

    /// Tells what a call would do, in the order in which a call that is made looks.
    fn foresee(&self, run: &Run<'_>, place: Place) -> Result<Foreseen, Error> {
        let (cache, key, names) = (run.cache, run.key, run.options.names);
        let miss = |why: &str| {
            Ok(Foreseen::Missing(Peek::Miss {
                key,
                why: why.to_owned(),
                nearest: None,
            }))
        };
        let previous = cache.entry(&key);
        if place == Place::Shared
            && let Some(entry) = &previous
            && let Ok(served) = self.served(entry, names)
        {
            return Ok(Foreseen::Given(served, Source::Memory));
        }
        self.admit(run)?;
        if place == Place::Alone {
            return miss("the call or its app makes each run anew");
        }
        let is_only_looked_for = run.options.policy == Policy::OnlyIfRemembered;
        if !is_only_looked_for && cache.is_flying(&key) {
            return Ok(Foreseen::Missing(Peek::Wait { key }));
        }
        if place == Place::Anew {
            return miss("the call refreshes it");
        }
        if let Some(error) = cache.failure(&key, self.epoch())
            && !is_only_looked_for
        {
            return Ok(Foreseen::Fails(error));
        }
        let may_load = |entry: &Entry| !entry.record.nondeterministic;
        if previous.as_deref().is_none_or(may_load) {
            if let Some(served) = self.load(run, previous.as_deref()) {
                return Ok(Foreseen::Given(served, Source::Loaded));
            }
            if let Some(given) = self.given_failure(run, previous.as_deref()) {
                return Ok(Foreseen::Fails(given.error));
            }
        }
        if is_only_looked_for {
            return Err(self.not_remembered(run, previous));
        }
        if self.shares(run.app, names)
            && let Some(archiver) = self.archiver()
            && archiver.announced_by(&key).is_some()
        {
            return Ok(Foreseen::Missing(Peek::Wait { key }));
        }
        match self.known(&run.app.resolved, &key, names) {
            Some(why @ (Peek::Miss { .. } | Peek::Wait { .. })) => Ok(Foreseen::Missing(why)),
            Some(_) => miss("what is remembered of it does not serve"),
            None => miss(NEW),
        }
    }

    /// Says of the missing runs what each is most like, and what it may cost.
    fn with_reasons(&self, mut seen: Vec<SeenRun>) -> Vec<PlannedRun> {
        let mut of_apps: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        for (at, run) in seen.iter().enumerate() {
            if matches!(run.what, Peek::Miss { .. } | Peek::Wait { .. }) {
                let name = Arc::clone(&run.resolved.name);
                of_apps.entry(name).or_default().push(at);
            }
        }
        for (name, missing) in of_apps {
            let mut earlier: Vec<Record> = Vec::new();
            let resolved = Arc::clone(&seen[missing[0]].resolved);
            self.earlier(&resolved, &mut |record| earlier.push(record.clone()));
            let (gate, mut costs) = (Gate::new(self, &name), Costs::default());
            for record in &earlier {
                gate.note_in(&mut costs, record);
            }
            let mut comparisons = 0;
            for at in missing {
                let run = &mut seen[at];
                run.cost = run.cost.or_else(|| costs.mean());
                comparisons += earlier.len();
                run.compare(&earlier, comparisons <= MOST_COMPARED);
            }
        }
        seen.into_iter().map(SeenRun::planned).collect()
    }
}

impl SeenRun {
    /// Looks for the run that this one is most like, if it is new, or says that nobody looked.
    fn compare(&mut self, earlier: &[Record], may_compare: bool) {
        let Some(inputs) = self.new.take() else {
            return;
        };
        let Peek::Miss { key, why, nearest } = &mut self.what else {
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
            look_at(planned, *key, other, nearest);
        }
    }

    fn planned(self) -> PlannedRun {
        let is_missing = matches!(self.what, Peek::Miss { .. } | Peek::Wait { .. });
        PlannedRun {
            app: Arc::clone(&self.resolved.name),
            what: self.what,
            cost: self.cost.filter(|_| is_missing),
            calls: self.calls,
        }
    }
}

/// The key of a call's inputs, which are as declared.
fn keyed_inputs(app: &CalledApp<'_>, call: &dyn Call) -> Result<Keyed, FingerprintError> {
    let id = &app.resolved.id.0;
    if let Some(kept) = call.encoded() {
        return Ok(Keyed {
            key: keyed(id, kept),
            encoded: kept.into(),
            volatile: None,
        });
    }
    with_encoder(|to| {
        call.encode(to)?;
        let encoded: Box<[u8]> = to.finish()?.into();
        Ok(Keyed {
            key: keyed(id, &encoded),
            encoded,
            volatile: to.take_volatile(),
        })
    })
}
