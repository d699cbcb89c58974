//! Publishing the outcome of a body.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use smallvec::SmallVec;

use super::Engine;
use super::claim::Role;
use super::execute::{Begun, Computation, Ran};
use super::handle::Policy;
use super::kept::FailedBody;
use super::run_state::Run;
use super::save::NewSaved;
use crate::cache::flight::Forever;
use crate::cache::{self, Before, Decision, RunFlight, merge};
use crate::entry::{Entry, Record, Served, UNCHECKED};
use crate::error::{Error, ErrorKind, Failure, panic_message};
use crate::event::Source;
use crate::ranks::bind;
use crate::result_map::ResultMap;

/// Why nothing is published, and how long that lasts for other calls.
pub(crate) struct Unpublished {
    pub(crate) error: Error,
    pub(crate) failure: Failure,
    /// The body's panic, to be resumed in its caller.
    panic: Option<Box<dyn Any + Send>>,
    /// The body that failed, if it failed by itself.
    pub(super) body: Option<Box<FailedBody>>,
}

impl Unpublished {
    pub(crate) fn of(error: impl Into<Error>, failure: Failure) -> Self {
        Self {
            error: error.into(),
            failure,
            panic: None,
            body: None,
        }
    }

    /// This failure, with another error for callers.
    pub(crate) fn told_by(self, error: Error) -> Self {
        Self { error, ..self }
    }

    pub(crate) fn is_panic(&self) -> bool {
        self.panic.is_some()
    }
}

/// The entries that the store gets for the results of a call: the entry itself, or this rank's share of it.
pub(crate) type ToSave = SmallVec<[Arc<Entry>; 1]>;

/// The outcome of a call once it is decided whose results stand.
pub(super) struct Settled<S> {
    pub(crate) served: Served,
    /// The outcome of writing the caller's results, if they stand and are kept.
    pub(crate) written: Option<S>,
    /// To be dropped last: destructors may use the engine.
    _before: [Before; 2],
}

impl Engine {
    /// Checks, records and publishes a body's results, and gives those that its caller gets. Resumes a panic of the
    /// body.
    pub(super) fn publish(
        &self,
        run: &Run<'_>,
        (ran, begun): (Ran, Begun),
        role: Role<'_>,
        previous: Option<&Entry>,
    ) -> Result<(Served, Source), Error> {
        let computation = ran.computation();
        let made = self.publishable(run, ran, previous).map(|own| {
            let to_save = ToSave::from_buf([Arc::clone(&own.entry)]);
            (own, to_save)
        });
        self.publish_made(run, (made, computation), begun, role)
    }

    /// Records and publishes what a body has made, or ends the flight with its failure.
    ///
    /// Users' code runs only before it is decided whose results stand, where asking for the run itself is a cycle, and
    /// after the flight is complete.
    pub(crate) fn publish_made(
        &self,
        run: &Run<'_>,
        (made, computation): (Result<(Served, ToSave), Unpublished>, Computation),
        begun: Begun,
        role: Role<'_>,
    ) -> Result<(Served, Source), Error> {
        let (own, to_save) = match made {
            Ok(made) => made,
            Err(mut unpublished) => {
                let mut kept = self.kept(run, &mut unpublished, computation, &role);
                drop(begun);
                let mut announced = None;
                if let Role::Holder(mut claim) = role {
                    announced = claim.announced.take();
                    let in_memory = kept.in_memory.take();
                    claim.fail(&unpublished.error, unpublished.failure, in_memory);
                }
                self.save_failure(run, kept, announced);
                if unpublished.is_panic() {
                    self.failed(run, unpublished.error.clone());
                }
                return match unpublished.panic {
                    Some(panic) => resume_unwind(panic),
                    None => Err(unpublished.error),
                };
            }
        };
        run.cache.measure(&own.entry);
        let is_kept = !matches!(role, Role::Alone { keep: None });
        let new_save = |entry| is_kept.then(|| self.new_save(entry)).flatten();
        let saves: SmallVec<[_; 1]> = to_save.iter().map(new_save).collect();
        let encoded = saves.iter().map(|save| Some(save.as_ref()?.encode()));
        let encoded: SmallVec<[_; 1]> = encoded.collect();
        drop(begun);
        let write = |_: &Arc<Entry>| {
            let states = run.cache.scratches.remove(&run.scratch_key());
            let saved = to_save.into_iter().zip(encoded).map(|(entry, encoded)| {
                let saved = self.save_new(&entry, encoded);
                (entry, saved)
            });
            (states, saved.collect::<SmallVec<[_; 1]>>())
        };
        let tell = |saved: SmallVec<[(Arc<Entry>, NewSaved); 1]>| {
            let saved = saved.into_iter();
            saved.for_each(|(entry, saved)| self.tell_new(&entry, saved));
        };
        let (settled, source) = match role {
            Role::Holder(mut claim) => {
                let announced = claim.announced.take();
                let settled = self.settle(run, &claim.flight, own, write);
                drop(claim);
                self.give(run, announced, &settled.served.entry);
                (settled, Source::Computed)
            }
            Role::Beside(flight) => {
                let settled = self.settle(run, &flight, own, write);
                (settled, Source::Duplicate)
            }
            Role::Alone { keep } => {
                let is_recorded = |generation| run.cache.record(&own.entry, generation);
                if keep.is_some_and(is_recorded) {
                    tell(write(&own.entry).1);
                }
                return Ok((own, Source::Computed));
            }
        };
        let Settled {
            served, written, ..
        } = settled;
        if let Some((_states, saved)) = written {
            tell(saved);
        }
        Ok((served, source))
    }

    /// Ends a flight with these results, or with those of a call that published first. Only results that stand are
    /// written, and nobody gets them before: a call that was not first waits for the write. No users' code runs between
    /// the decision and the completion of the flight.
    pub(super) fn settle<S>(
        &self,
        run: &Run<'_>,
        flight: &Arc<RunFlight>,
        own: Served,
        write: impl FnOnce(&Arc<Entry>) -> S,
    ) -> Settled<S> {
        // Dropped when nobody waits: destructors may use the engine.
        let mut replaced = Vec::new();
        let (decision, before) = self.decide(run, flight, &own.entry, &mut replaced);
        match decision {
            Decision::Won { flight, is_kept } => {
                let write = AssertUnwindSafe(|| is_kept.then(|| write(&own.entry)));
                let written = catch_unwind(write);
                // No thread may find the earlier result among its recent hits any more.
                let forget = || {
                    if run.options.policy == Policy::Refresh {
                        self.raise_epoch();
                    }
                };
                let shown = run.cache.show(&flight, &own, is_kept, forget);
                Settled {
                    served: own,
                    written: written.unwrap_or_else(|panic| resume_unwind(panic)),
                    _before: [before, shown],
                }
            }
            Decision::Lost(winner) => {
                let is_winner = |known: &Arc<Entry>| known.record.run == winner.record.run;
                let is_compared = run.known.borrow().iter().any(is_winner);
                if !is_compared {
                    self.compare(run, (&own.entry.record, &own.map), &winner);
                }
                Settled {
                    served: own.or_winner(&winner, run.options.names),
                    written: None,
                    _before: [before, Before::default()],
                }
            }
        }
    }

    /// Decides whose results stand; another call's are visible by then. The results of a refresh give way only to a
    /// later computation. No results give way to an unusable entry, such as the old one that a failed flight leaves in
    /// its place.
    fn decide(
        &self,
        run: &Run<'_>,
        flight: &Arc<RunFlight>,
        own: &Arc<Entry>,
        replaced: &mut Vec<Before>,
    ) -> (Decision, Before) {
        let mut flight = Arc::clone(flight);
        loop {
            let (decision, before) = run.cache.decide(&flight, own);
            let Decision::Lost(winner) = &decision else {
                return (decision, before);
            };
            flight.wait(&Forever);
            let (made, own) = (winner.record.run, own.record.run);
            let stands = match run.options.policy {
                Policy::Refresh => made.process == own.process && made.number > own.number,
                _ => self.outdated(winner).is_none(),
            };
            if stands {
                return (decision, before);
            }
            if !run.cache.is_current(&flight) {
                // Later flights know nothing of this run: its results are for its caller alone.
                let is_kept = false;
                return (Decision::Won { flight, is_kept }, before);
            }
            let (claimed, replaced_now) = run.cache.claim(run.key, None, |_| false);
            replaced.push(replaced_now);
            flight = match claimed {
                cache::Claimed::Mine(flight, _) | cache::Claimed::Theirs(flight) => flight,
                // This `claim` accepts neither entries nor failures.
                cache::Claimed::Ready(_) | cache::Claimed::Failed(_) => return (decision, before),
            };
        }
    }

    /// The results to be published, or why none are.
    pub(crate) fn publishable(
        &self,
        run: &Run<'_>,
        ran: Ran,
        previous: Option<&Entry>,
    ) -> Result<Served, Unpublished> {
        let resolved = &*run.app.resolved;
        let (epoch, own) = (ran.epoch, ran.own);
        let (returned, mut record) = self.usable(run, ran)?;
        if let Some(entry) = run.cache.entry(&run.key) {
            run.note_known(entry);
        }
        let known = run.known.borrow().clone();
        for other in &known {
            self.compare(run, (&record, &returned), other);
        }
        record.anew |= self.is_in_place_of_another(run, &known);
        let earlier = known.iter().map(Arc::as_ref).chain(previous);
        let failed_at = run.failure.get().map(|seen| seen.made_at);
        let earlier = earlier.map(|entry| entry.record.made_at).chain(failed_at);
        record.made_at = later_than(record.made_at, earlier);
        let earlier = previous.filter(|old| !record.nondeterministic && self.may_fill(run, old));
        let checked = match self.rest_on_files(&record.dependencies) {
            true => UNCHECKED, // To be looked at each time.
            false => epoch,
        };
        let merged = merge(resolved, (record, own), &returned, earlier, checked);
        // A collective result is bound later, when the ranks have told one another its dependencies.
        let merged = match run.from.shared_ranks() {
            Some(_) => merged,
            None => merged.inspect(|made| bind(run.from, resolved, &made.entry)),
        };
        merged.map_err(|error| Unpublished::of(error, Failure::Ordinary))
    }

    /// Whether these results replace an unwanted result of the key, or one that itself did so, as far as is known here.
    fn is_in_place_of_another(&self, run: &Run<'_>, known: &[Arc<Entry>]) -> bool {
        let is_anew = |entry: &Arc<Entry>| entry.record.anew;
        matches!(run.options.policy, Policy::Refresh | Policy::Bypass)
            || self.invalidations.any_of(run.key)
            || known.iter().any(is_anew)
            || run.app.resolved.is_distributed()
                && self.sets.entry(&run.key).any(|entry| is_anew(&entry))
    }

    /// The results of a body with their record, or why they may not be used.
    fn usable(&self, run: &Run<'_>, ran: Ran) -> Result<(ResultMap, Record), Unpublished> {
        let (app, key) = (run.name(), run.key);
        let (record, unwanted) = (ran.record, ran.unwanted);
        match ran.returned {
            // The body may have stopped early when it was told that nobody wants the result.
            Ok(Ok(_)) if ran.told_unwanted => {
                let cancelled = ErrorKind::Cancelled { app, key };
                Err(Unpublished::of(cancelled, Failure::Transient))
            }
            Ok(Ok(results)) => match run.files_unchanged() {
                Ok(()) => Ok((results.retagged(run.options.tags), record)),
                Err(error) => {
                    run.cache.scratches.remove(&run.scratch_key());
                    Err(Unpublished::of(error, Failure::Ordinary))
                }
            },
            Ok(Err(cause)) => {
                let by_chance = self.may_go_well(run, &record);
                let failure = match cause.lasts(run.app.resolved.info.failures) {
                    // Another caller may have begun to wait since: it is to try.
                    _ if unwanted => Failure::Transient,
                    Failure::Permanent if ran.rests_on_failure => Failure::Ordinary,
                    _ if by_chance => Failure::Ordinary,
                    lasts => lasts,
                };
                let output = cause.output().map(Arc::from);
                let error = match Error::too_deep(&cause) {
                    Some(error) => error.clone(),
                    None => ErrorKind::App { app, key, cause }.into(),
                };
                // One that has saved a state goes on from there, and may come further.
                let goes_on = || run.cache.scratches.get(&run.scratch_key()).is_some();
                let lasts = match failure {
                    Failure::Ordinary if by_chance || goes_on() => Failure::Transient,
                    lasts => lasts,
                };
                let body = FailedBody::of((record, unwanted), &error, output, lasts);
                Err(Unpublished {
                    body,
                    ..Unpublished::of(error, failure)
                })
            }
            Err(panic) => {
                let message = panic_message(&*panic);
                let error = Error::from(ErrorKind::Panicked { app, key, message });
                Err(Unpublished {
                    panic: Some(panic),
                    body: FailedBody::of((record, unwanted), &error, None, Failure::Transient),
                    ..Unpublished::of(error, Failure::Transient)
                })
            }
        }
    }

    /// Whether a failed body may succeed with another file, or on another try.
    fn may_go_well(&self, run: &Run<'_>, record: &Record) -> bool {
        record.nondeterministic
            || self.rest_on_files(&record.dependencies)
            || run.files_unchanged().is_err()
    }
}

impl Run<'_> {
    /// Checks that the files among the inputs and the settings are as they were keyed, by reading them again. Others
    /// may have written to them before the body read them: its result would be that of the new content, under the key
    /// of the old.
    fn files_unchanged(&self) -> Result<(), Error> {
        let resolved = &*self.app.resolved;
        let of_app = resolved.volatile.as_ref();
        let mut all = of_app.into_iter().chain(self.volatile.as_deref());
        all.try_for_each(|seen| seen.verify()).map_err(|source| {
            ErrorKind::Fingerprint {
                app: Arc::clone(&resolved.name),
                source,
            }
            .into()
        })
    }
}

/// The time to record for a computation: later than those of all known ones, whatever the clocks say. A store gives the
/// latest.
pub(super) fn later_than(
    made_at: SystemTime,
    known: impl Iterator<Item = SystemTime>,
) -> SystemTime {
    let after = known
        .max()
        .and_then(|known| known.checked_add(Duration::from_nanos(1)));
    after.map_or(made_at, |after| made_at.max(after))
}
