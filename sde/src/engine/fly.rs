//! Running the body, and making what came of it known.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use super::Engine;
use super::clock;
use super::machine;
use super::run::{Run, Served};
use crate::app::{
    AppCall, BodyTime, Callee, Frame, Handle, Interest, OnThread, Outcome, Place, Policy,
};
use crate::cache::{AppCache, Entry, Published, Record, RunFlight, merge};
use crate::error::{AppError, Error, ErrorKind, Failure};
use crate::event::{Event, RunId, Source};
use crate::inputs::{Call, ValueSummary};
use crate::key::Listed;
use crate::ranks::bind;
use crate::result_map::ResultMap;

/// What a body did, with the frame closed.
pub(crate) struct Ran {
    body: Body,
    inputs: Vec<ValueSummary>,
    calls: Vec<AppCall>,
    beneath: Arc<BTreeSet<Callee>>,
    nondeterministic: bool,
    anew: bool,
    run: RunId,
    made_at: SystemTime,
    took: Duration,
    /// It was told that nobody wants the result any more.
    heard: bool,
    /// The same, or nobody wants it now.
    gave_up: bool,
    /// The epoch in which it began.
    epoch: u64,
}

/// A run that this thread is at.
pub(crate) struct Begun {
    frame: Arc<Frame>,
    _on_thread: OnThread,
    /// If it has no claim: where that is counted.
    unclaimed_in: Option<Arc<AppCache>>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(cache) = &self.unclaimed_in {
            cache.unclaimed.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

enum Body {
    Returned(ResultMap),
    Failed(AppError),
    Panicked(Box<dyn Any + Send>),
}

/// Why nothing is published, and what that means for others.
pub(crate) struct Unpublished {
    pub(crate) error: Error,
    failure: Failure,
    /// To go on where the body was called.
    panic: Option<Box<dyn Any + Send>>,
}

impl Unpublished {
    pub(crate) fn of(error: impl Into<Error>, failure: Failure) -> Self {
        Self {
            error: error.into(),
            failure,
            panic: None,
        }
    }

    pub(crate) fn is_panic(&self) -> bool {
        self.panic.is_some()
    }

    /// The error; a panic goes on here.
    pub(crate) fn resume_panic(self) -> Error {
        match self.panic {
            Some(panic) => resume_unwind(panic),
            None => self.error,
        }
    }
}

/// The right to end a flight. Ends it in an error if it is dropped, so that
/// a panic anywhere leaves nobody waiting.
pub(super) struct Claim<'a> {
    cache: &'a AppCache,
    pub(super) flight: &'a Arc<RunFlight>,
    ended: bool,
}

impl<'a> Claim<'a> {
    /// To be made as soon as the claim is won, before anything that may panic.
    pub(super) fn won(cache: &'a AppCache, flight: &'a Arc<RunFlight>) -> Self {
        Self {
            cache,
            flight,
            ended: false,
        }
    }

    fn fail(mut self, error: &Error, failure: Failure, epoch: u64) {
        self.ended = true;
        let retry = failure == Failure::Transient;
        let keep = (failure == Failure::Permanent).then_some(epoch);
        self.cache.fail(self.flight, error, retry, keep);
    }

    pub(super) fn publish(mut self, entry: Arc<Entry>) -> Arc<Entry> {
        let standing = self.cache.publish(self.flight, entry);
        self.ended = true;
        standing
    }

    /// Ends it with what was there before; gives the claim back if that was cleaned since.
    pub(super) fn put_back(mut self, entry: &Arc<Entry>, given: &ResultMap) -> Result<(), Self> {
        self.ended = self.cache.put_back(self.flight, entry, given);
        match self.ended {
            true => Ok(()),
            false => Err(self),
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let error = Error::from(ErrorKind::Panicked {
                app: Arc::clone(&self.cache.name),
                key: self.flight.key,
                message: "outside of the app's body".to_owned(),
            });
            self.cache.fail(self.flight, &error, true, None);
        }
    }
}

impl Engine {
    /// Computes as the holder of the claim, or finds it in the store.
    pub(super) fn fly(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        claim: Claim<'_>,
        begun: Begun,
        previous: Option<&Entry>,
    ) -> Result<Outcome, Error> {
        let flight = claim.flight;
        let failure_epoch = self.failure_epoch();
        // What may come out otherwise is not looked for.
        let may_load = previous.is_none_or(|entry| !entry.record.nondeterministic);
        if may_load && let Some(loaded) = self.load(run, previous) {
            flight.set_given(&loaded.map);
            let standing = claim.publish(Arc::clone(&loaded.entry));
            self.sets.received.forget(&run.key);
            let served = self.standing(loaded, &standing, run.options.names);
            return Ok(self.conclude(run, served, Source::Loaded));
        }
        let ran = self.run_body(run, call, begun, self.next_run());
        match self.publishable(run, ran, previous) {
            Ok(published) => {
                let entry = Arc::new(published.entry);
                self.note_new(run, flight, &entry);
                flight.set_given(&published.given);
                let standing = claim.publish(Arc::clone(&entry));
                self.forget_replaced(run);
                self.remember_last(run, &standing);
                let own = Served {
                    entry,
                    map: published.given,
                };
                let served = self.standing(own, &standing, run.options.names);
                Ok(self.computed(run, served, Source::Computed))
            }
            Err(unpublished) => {
                claim.fail(&unpublished.error, unpublished.failure, failure_epoch);
                self.give_up(run, unpublished)
            }
        }
    }

    /// Has a new entry saved, unless it was begun before another store was loaded.
    fn note_new(&self, run: &Run<'_>, flight: &RunFlight, entry: &Arc<Entry>) {
        run.cache.scratches.remove(&run.key);
        self.warn_of_what_has_no_size(run.cache, entry);
        if run.cache.is_current(flight) {
            self.save_new(entry);
        }
    }

    /// After a refresh the earlier result may still be the last value of some thread.
    fn forget_replaced(&self, run: &Run<'_>) {
        if run.options.policy == Policy::Refresh {
            self.raise_epoch();
        }
    }

    /// Computes although another does too: the first to publish wins, and the
    /// other flight ends with it.
    pub(super) fn fly_beside(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        flight: &Arc<RunFlight>,
    ) -> Result<Outcome, Error> {
        let ran = self.run_body(run, call, self.begin(run, None), self.next_run());
        match self.publishable(run, ran, None) {
            Ok(published) => {
                let entry = Arc::new(published.entry);
                flight.set_given(&published.given);
                let standing = run.cache.publish(flight, Arc::clone(&entry));
                // What lost is not saved: the record in memory and that in the
                // store are to be of one computation.
                if Arc::ptr_eq(&entry, &standing) {
                    self.note_new(run, flight, &entry);
                }
                self.forget_replaced(run);
                let own = Served {
                    entry,
                    map: published.given,
                };
                let served = self.standing(own, &standing, run.options.names);
                Ok(self.computed(run, served, Source::Duplicate))
            }
            Err(unpublished) => self.give_up(run, unpublished),
        }
    }

    /// Computes for this caller alone. If `record`, what came of it is kept as
    /// the record of the calculation.
    pub(super) fn fly_alone(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        record: bool,
    ) -> Result<Outcome, Error> {
        let generation = run.cache.generation();
        let ran = self.run_body(run, call, self.begin(run, None), self.next_run());
        match self.publishable(run, ran, None) {
            Ok(published) => {
                let entry = Arc::new(published.entry);
                if record && run.cache.record(&entry, generation) {
                    self.save_new(&entry);
                }
                let map = published.given;
                Ok(self.computed(run, Served { entry, map }, Source::Computed))
            }
            Err(unpublished) => self.give_up(run, unpublished),
        }
    }

    /// Puts a run on top of this thread's stack: it is known to be going on here before anybody is told of it.
    pub(crate) fn begin(&self, run: &Run<'_>, flight: Option<&Arc<RunFlight>>) -> Begun {
        // Its caller wants the result, if not cancelled, and so do those who wait for its flight.
        let others = flight.cloned();
        let interest = Interest::new(
            run.options.cancel.clone(),
            others.map(|flight| Box::new(move || flight.is_wanted()) as _),
        );
        let frame = Arc::new(Frame::new(
            Arc::clone(run.subject.facts),
            run.key,
            run.from.engine(),
            run.parent.clone(),
            run.above.clone(),
            interest,
            flight.is_some(),
        ));
        let unclaimed_in = flight.is_none().then(|| Arc::clone(run.cache));
        if let Some(cache) = &unclaimed_in {
            cache.unclaimed.fetch_add(1, Ordering::AcqRel);
        }
        Begun {
            unclaimed_in,
            _on_thread: Place::on_top(Arc::clone(&frame)).enter(),
            frame,
        }
    }

    /// Runs the body, with no lock, guard or shard held.
    pub(crate) fn run_body(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        begun: Begun,
        number: RunId,
    ) -> Ran {
        let (facts, frame) = (run.subject.facts, &begun.frame);
        let epoch = self.epoch();
        self.tell(|| Event::Started {
            app: Arc::clone(&facts.name),
            key: run.key,
            run: number,
        });
        let handle = Handle::new(
            Arc::clone(run.from.shared_runtime()),
            Some(Arc::clone(frame)),
            run.from.shared_ranks().cloned(),
        );
        let span = tracing::debug_span!("run", app = &*facts.name, key = %run.key.short());
        let inputs = call.summaries(&mut Listed::new(&run.encoded));
        let made_at = clock::now();
        let time = BodyTime::begin();
        let returned = {
            let _in_span = span.enter();
            catch_unwind(AssertUnwindSafe(|| call.compute(run.subject.app, &handle)))
        };
        let (took, own) = time.end();
        run.cache.counters.spent(own);
        let heard = frame.heard_that_nobody_wants_it();
        let gave_up = frame.gave_up();
        frame.end();
        let (calls, beneath) = frame.take_callees();
        let body = match returned {
            Ok(Ok(results)) => Body::Returned(results),
            Ok(Err(error)) => Body::Failed(error),
            Err(panic) => Body::Panicked(panic),
        };
        // A caller that goes on after a failure rests on what led to it.
        if let (false, Some(parent)) = (matches!(body, Body::Returned(_)), &run.parent) {
            parent.depends(beneath.iter().cloned(), frame.saw_nondeterminism());
            parent.note_anew(frame.is_anew());
        }
        Ran {
            body,
            inputs,
            calls,
            beneath,
            nondeterministic: frame.saw_nondeterminism() || facts.nondeterministic,
            anew: frame.is_anew() || self.is_in_place_of_another(run),
            run: number,
            made_at,
            took,
            heard,
            gave_up,
            epoch,
        }
    }

    /// Whether another result of the key was not to be used, or was made so itself, for all that is known here.
    fn is_in_place_of_another(&self, run: &Run<'_>) -> bool {
        let is_anew = |entry: Arc<Entry>| entry.record.anew;
        matches!(run.options.policy, Policy::Refresh | Policy::Bypass)
            || self.marks.any_of(run.key)
            || run.found_anew.get()
            || run.cache.entry(&run.key).is_some_and(is_anew)
            || run.subject.facts.info.distributed && self.sets.entry(&run.key).any(is_anew)
    }

    /// What is to be published, or why nothing is.
    pub(crate) fn publishable(
        &self,
        run: &Run<'_>,
        ran: Ran,
        previous: Option<&Entry>,
    ) -> Result<Published, Unpublished> {
        let facts = run.subject.facts;
        let app = Arc::clone(&facts.name);
        let key = run.key;
        let returned = match ran.body {
            // It may be only what it had when it heard that nobody wants it.
            Body::Returned(_) if ran.heard => {
                let cancelled = ErrorKind::Cancelled { app, key };
                return Err(Unpublished::of(cancelled, Failure::Transient));
            }
            Body::Returned(results) => match run.files_unchanged() {
                Ok(()) => results,
                Err(error) => {
                    run.cache.scratches.remove(&key);
                    return Err(Unpublished::of(error, Failure::Ordinary));
                }
            },
            Body::Failed(cause) => {
                // Somebody may have begun to wait since: let him try.
                let failure = match ran.gave_up {
                    true => Failure::Transient,
                    // Another file, or another try, and it may go well.
                    false
                        if ran.nondeterministic
                            || self.rest_on_files(&*ran.beneath)
                            || run.files_unchanged().is_err() =>
                    {
                        Failure::Ordinary
                    }
                    false => cause.lasts(facts.info.failures),
                };
                let error = match cause.too_deep() {
                    Some(error) => error.clone(),
                    None => ErrorKind::App { app, key, cause }.into(),
                };
                return Err(Unpublished::of(error, failure));
            }
            Body::Panicked(panic) => {
                let message = panic_message(&*panic);
                let error = ErrorKind::Panicked { app, key, message };
                return Err(Unpublished {
                    panic: Some(panic),
                    ..Unpublished::of(error, Failure::Transient)
                });
            }
        };
        let record = Record {
            app,
            code: facts.info.code.clone(),
            id: facts.id,
            key,
            run: ran.run,
            inputs: ran.inputs,
            setup: Arc::clone(facts.setup(run.subject.app)),
            calls: ran.calls,
            beneath: ran.beneath.iter().cloned().collect(),
            nondeterministic: ran.nondeterministic,
            anew: ran.anew,
            made_at: later_than(ran.made_at, run.found.get(), previous),
            took: ran.took,
            host: machine::host(),
            target: machine::target(),
        };
        let previous = previous.filter(|old| !ran.nondeterministic && self.may_fill(run, old));
        let checked = match self.rest_on_files(&record.beneath) {
            true => u64::MAX, // To be looked at each time.
            false => ran.epoch,
        };
        let merged = merge(facts, record, &returned, previous, checked);
        // What ranks make together is known when they have told one another what it rests on.
        let merged = match run.from.shared_ranks() {
            Some(_) => merged,
            None => merged.inspect(|made| bind(run.from, facts, &made.entry)),
        };
        merged.map_err(|error| Unpublished::of(error, Failure::Ordinary))
    }

    /// Counts and tells what was computed.
    pub(crate) fn computed(&self, run: &Run<'_>, served: Served, source: Source) -> Outcome {
        run.cache.counters.add(source.into(), 1);
        if let Some(parent) = &run.parent {
            self.tell_parent(parent, run.subject, &served.entry);
        }
        self.keep_within_limit(run.cache);
        self.outcome(served, source)
    }

    /// Makes the new entry this thread's last value, if it may be one.
    fn remember_last(&self, run: &Run<'_>, entry: &Arc<Entry>) {
        if !entry.whole || entry.record.nondeterministic {
            return;
        }
        let epoch = self.epoch();
        // It may have been cleaned, replaced, or outlived by what ran beneath; what
        // does that later raises the epoch.
        let stands = run.cache.entry(&run.key);
        if !stands.is_some_and(|standing| Arc::ptr_eq(&standing, entry))
            || self.refusal(entry, None).is_some()
            || !entry.is_checked(epoch)
        {
            return;
        }
        let id = run.subject.facts.id.as_bytes();
        let recent = &run.cache.recent;
        recent.put(id, &run.encoded, epoch, Arc::clone(entry));
    }

    fn give_up(&self, run: &Run<'_>, unpublished: Unpublished) -> Result<Outcome, Error> {
        let error = self.failed(run, unpublished.error);
        match unpublished.panic {
            Some(panic) => resume_unwind(panic),
            None => Err(error),
        }
    }
}

/// When a computation was made, which takes the place of those that are known: later than they were
/// made, whatever the clocks say by which that was written down. A store gives the latest.
fn later_than(
    made_at: SystemTime,
    found: Option<SystemTime>,
    previous: Option<&Entry>,
) -> SystemTime {
    let known = found.max(previous.map(|entry| entry.record.made_at));
    let after = known.and_then(|known| known.checked_add(Duration::from_nanos(1)));
    after.map_or(made_at, |after| made_at.max(after))
}

/// The text of a panic, if it has one.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    crate::error::printable(&text.unwrap_or_else(|| "with something that is no text".to_owned()))
}
