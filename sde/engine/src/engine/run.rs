//! The way of a call: look, claim, execute, publish.
//!
//! Each step is a function in a file of its own: naming the app ([`AppSource`](super::handle::AppSource)), looking up
//! ([`look`](super::look)), claiming ([`claim`](super::claim), [`wait`](super::wait)), the body
//! ([`execute`](super::execute)), and its outcome ([`publish`](super::publish)).

use std::sync::Arc;

use super::Engine;
use super::claim::Claimed;
use super::handle::{CalledApp, Handle, Options, Outcome, Policy, is_left};
use super::look::{Look, Looked};
use super::run_state::Run;
use crate::app::{Callee, Frame, NestedCall};
use crate::cache::{AppCache, Count};
use crate::entry::{Entry, Served};
use crate::error::{Error, ErrorKind};
use crate::event::{Event, Source};
use crate::inputs::Call;

impl Engine {
    /// A call of a program or of a body. `None` if `call` has taken the results itself.
    pub(super) fn run(
        &self,
        from: &Handle,
        app: &CalledApp<'_>,
        call: &mut dyn Call,
        options: &Options<'_>,
    ) -> Result<Option<Outcome>, Error> {
        from.check_active()?;
        if let Some(planning) = from.planning() {
            return self.plan_call(planning, from, app, call, options).map(Some);
        }
        let resolved = &*app.resolved;
        if resolved.missing.is_empty() {
            self.freeze(app);
        }
        if resolved.is_distributed() {
            let name = &resolved.name;
            let doing = || format!("runs {name}, which {}", resolved.why_distributed());
            if let Some(ranks) = from.collective_ranks(doing)? {
                // All ranks have the same error, before they meet.
                from.declare(app, call)?;
                let _nested = NestedCall::begin();
                let outcome = self.run_collective(from, ranks, app, call, options);
                return outcome.map(Some);
            }
        }
        let cache = self.cache_of(resolved);
        let parent = from.caller();
        let looked = self.look(&Look {
            call,
            app,
            cache,
            options,
            parent: parent.as_deref(),
        });
        match looked {
            Ok(Looked::Taken) => Ok(None),
            Ok(Looked::Found(served)) => {
                Ok(Some(self.found(app, cache, parent.as_deref(), *served)))
            }
            Ok(Looked::Absent(_)) if from.declare(app, call)? => self.run(from, app, call, options),
            Ok(Looked::Absent(keyed)) => {
                let run = Run::new(from, parent, app, cache, options, *keyed);
                let _nested = NestedCall::begin();
                let stretch = crate::stretch!("run", app = &*resolved.name, key = %run.key.short());
                match self.miss(&run, call) {
                    Ok(outcome) => {
                        stretch.end(outcome.source.name());
                        Ok(Some(outcome))
                    }
                    Err(error) if !options.waits_for_processes && is_left(&error) => {
                        stretch.end("deferred");
                        Err(error)
                    }
                    // The body has not begun: it can't be its error.
                    Err(error) if options.gate.is_some() && error.is_not_started() => {
                        stretch.end("not begun");
                        Err(error)
                    }
                    Err(error) => Err(self.failed(&run, error)),
                }
            }
            Err(source) => {
                // The caller may go on without; a file that is missing may be there
                // next time.
                if let Some(parent) = &parent {
                    parent.dependencies.add(itself(app), true);
                }
                let app = Arc::clone(&resolved.name);
                Err(ErrorKind::Fingerprint { app, source }.into())
            }
        }
    }

    /// Looks in memory alone, for a caller that must not wait; `None` if a [run](Self::run) is needed, `Some(None)` if
    /// `call` has taken the results itself.
    pub(super) fn ready(
        &self,
        from: &Handle,
        app: &CalledApp<'_>,
        call: &dyn Call,
        options: &Options<'_>,
    ) -> Option<Option<Outcome>> {
        from.check_active().ok()?;
        let resolved = &*app.resolved;
        if from.planning().is_some() || resolved.is_distributed() {
            return None;
        }
        let (cache, parent) = (self.cache_of(resolved), from.caller());
        let look = Look {
            call,
            app,
            cache,
            options,
            parent: parent.as_deref(),
        };
        match self.look(&look).ok()? {
            Looked::Taken => Some(None),
            Looked::Found(served) => Some(Some(self.found(app, cache, parent.as_deref(), *served))),
            Looked::Absent(_) => None,
        }
    }

    /// Counts, tells and notes what a call has found in memory.
    fn found(
        &self,
        app: &CalledApp<'_>,
        cache: &AppCache,
        parent: Option<&Frame>,
        served: Served,
    ) -> Outcome {
        if let Some(parent) = parent {
            self.tell_parent(parent, app, &served.entry);
        }
        self.keep_within_budget(cache);
        self.outcome(cache, served, Source::Memory)
    }

    /// Answers a call whose results neither level of the cache has.
    fn miss(&self, run: &Run<'_>, call: &mut dyn Call) -> Result<Outcome, Error> {
        self.admit(run)?;
        if run.options.policy == Policy::OnlyIfRemembered {
            let (served, source) = self.remembered(run)?;
            return Ok(self.conclude(run, served, source));
        }
        if self.sharing.is_some()
            && let Some(expected) = call.cost(&*run.app.app)
        {
            run.cache.cost.expect(expected.time);
        }
        // Before the claim: a call that waits for another run to be gone then holds up nobody.
        let exclusive = self.exclusive(run)?;
        let (served, source) = match self.claim(run)? {
            Claimed::Found(served, source) => (served, source),
            Claimed::Compute {
                role,
                begun,
                previous,
            } => {
                if let Some(gate) = run.options.gate
                    && let Err(error) = gate.pass()
                {
                    role.leave(run);
                    return Err(error);
                }
                let ran = self.execute(run, call, &begun, self.next_run());
                drop(exclusive);
                if let Some(gate) = run.options.gate {
                    gate.note(&ran.record);
                }
                self.publish(run, (ran, begun), role, previous.as_deref())?
            }
        };
        Ok(self.conclude(run, served, source))
    }

    /// Counts, tells and records a run that has its results.
    pub(crate) fn conclude(&self, run: &Run<'_>, served: Served, source: Source) -> Outcome {
        if let Some(parent) = &run.parent {
            self.tell_parent(parent, run.app, &served.entry);
        }
        self.keep_within_budget(run.cache);
        self.outcome(run.cache, served, source)
    }

    /// Counts and tells a hit or a computation.
    fn outcome(&self, cache: &AppCache, served: Served, source: Source) -> Outcome {
        let entry = &served.entry;
        match source {
            Source::Computed | Source::Duplicate => cache.counters.add(source.into(), 1),
            // A call that waited saved no time that it knows of.
            Source::Waited => cache.counters.hit(source.into(), 0),
            _ => cache.counters.hit(source.into(), entry.nanos()),
        }
        if source.is_hit() {
            cache.used(entry);
        }
        // A store itself notes the entries that it loads.
        if source.is_hit() && source != Source::Loaded {
            self.note_use(entry);
        }
        self.tell_finished(entry, source);
        Outcome {
            results: served.map,
            key: entry.record.key,
            source,
            made_by: entry.record.run,
        }
    }

    pub(super) fn tell_finished(&self, entry: &Entry, source: Source) {
        let record = &entry.record;
        if source.is_hit() && !self.hears_hits {
            return;
        }
        self.tell(|| Event::Finished {
            app: Arc::clone(&record.app),
            key: record.key,
            source,
            made_by: record.run,
        });
    }

    /// Has the calling run note what it depends on from here on.
    pub(super) fn tell_parent(&self, parent: &Frame, app: &CalledApp<'_>, entry: &Entry) {
        let record = &entry.record;
        let all = itself(app).chain(record.dependencies.iter().cloned());
        parent.dependencies.called(&app.resolved.name, record.key);
        parent.dependencies.note_anew(record.anew);
        parent.dependencies.add(all, record.nondeterministic);
    }

    /// Counts and tells a failure. The calling run may go on without the result, so it depends on the failure too; if
    /// that may not come again, the caller's result is not looked up.
    pub(crate) fn failed(&self, run: &Run<'_>, error: Error) -> Error {
        if let Some(parent) = &run.parent {
            let remembered = run.cache.failed_entry(&run.key, self.epoch());
            let lasts = |entry: &Arc<Entry>| entry.failure().is_some_and(|one| one.is_permanent);
            let is_permanent = remembered.as_ref().is_some_and(lasts);
            let is_kept = remembered.is_some() || run.failure.get().is_some_and(|one| one.is_given);
            let beneath = remembered.iter().flat_map(|one| &one.record.dependencies);
            let all = itself(run.app).chain(beneath.cloned());
            parent.dependencies.add(all, !is_kept);
            if is_kept && !is_permanent {
                parent.dependencies.note_failure();
            }
            if remembered.is_some_and(|entry| entry.record.anew) {
                parent.dependencies.note_anew(true);
            }
        }
        run.cache.counters.add(Count::Failed, 1);
        self.tell(|| Event::Failed {
            app: run.name(),
            key: run.key,
            error: error.clone(),
        });
        self.keep_within_budget(run.cache);
        error
    }
}

/// The dependencies of a run that calls this app: its code, the code of the apps in its slots, and the identities that
/// registered names led to.
fn itself<'a>(app: &'a CalledApp<'_>) -> impl Iterator<Item = Callee> + 'a {
    let resolved = &*app.resolved;
    let codes = resolved.codes.iter().cloned();
    let name = app.by_name.map(|name| Callee::Named {
        name: Arc::from(name),
        id: resolved.id,
    });
    let in_slots = resolved.registered.iter().map(|(name, id)| Callee::Named {
        name: Arc::from(name.as_str()),
        id: *id,
    });
    codes.chain(name).chain(in_slots)
}
