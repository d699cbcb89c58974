//! Making known what came of a body.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Engine;
use super::claim::Role;
use super::execute::Ran;
use super::handle::Policy;
use super::run_state::Run;
use crate::cache::{Entry, Record, RunFlight, Served, merge};
use crate::error::{AppError, Error, ErrorKind, Failure};
use crate::event::Source;
use crate::ranks::bind;
use crate::result_map::ResultMap;

/// Why nothing is published, and what that means for others.
pub(crate) struct Unpublished {
    pub(crate) error: Error,
    pub(crate) failure: Failure,
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

impl Engine {
    /// Checks what a body returned, records it and makes it visible; what its caller gets
    /// of that. A panic of the body goes on here.
    pub(super) fn publish(
        &self,
        run: &Run<'_>,
        ran: Ran,
        role: Role<'_>,
        previous: Option<&Entry>,
    ) -> Result<(Served, Source), Error> {
        let epoch = ran.epoch;
        let own = match self.publishable(run, ran, previous) {
            Ok(made) => made,
            Err(unpublished) => {
                if let Role::Holder(claim) = role {
                    claim.fail(&unpublished.error, unpublished.failure, epoch);
                }
                if unpublished.is_panic() {
                    self.failed(run, unpublished.error.clone());
                }
                return Err(unpublished.resume_panic());
            }
        };
        let (winner, source) = match role {
            Role::Holder(mut claim) => {
                self.note_new(run, &claim.flight, &own.entry);
                let announced = claim.announced.take();
                let flight = Arc::clone(&claim.flight);
                let winner = claim.publish(&own, || self.forget_replaced(run));
                self.give(run, &flight, announced, &own.entry);
                (winner, Source::Computed)
            }
            Role::Beside(flight) => {
                let forget = || self.forget_replaced(run);
                let winner = run.cache.publish(&flight, &own, forget);
                // What lost is not saved: the record in memory and that in the
                // store are to be of one computation.
                if Arc::ptr_eq(&own.entry, &winner) {
                    self.note_new(run, &flight, &own.entry);
                }
                (winner, Source::Duplicate)
            }
            Role::Alone { keep } => {
                if keep.is_some_and(|generation| run.cache.record(&own.entry, generation)) {
                    self.save_new(&own.entry);
                }
                return Ok((own, Source::Computed));
            }
        };
        Ok((own.or_winner(&winner, run.options.names), source))
    }

    /// Has a new entry saved, unless it was begun before another store was loaded.
    fn note_new(&self, run: &Run<'_>, flight: &RunFlight, entry: &Arc<Entry>) {
        run.cache.scratches.remove(&run.key);
        if run.cache.is_current(flight) {
            self.save_new(entry);
        }
    }

    /// After a refresh the earlier result may still be a recent hit of some thread, which must not find it after it was
    /// given the new one.
    fn forget_replaced(&self, run: &Run<'_>) {
        if run.options.policy == Policy::Refresh {
            self.raise_epoch();
        }
    }

    /// What is to be published, or why nothing is.
    pub(crate) fn publishable(
        &self,
        run: &Run<'_>,
        ran: Ran,
        previous: Option<&Entry>,
    ) -> Result<Served, Unpublished> {
        let resolved = &*run.app.resolved;
        let (epoch, own) = (ran.epoch, ran.own);
        let (returned, mut record) = self.usable(run, ran)?;
        record.made_at = later_than(record.made_at, run.found.get(), previous);
        let earlier = previous.filter(|old| !record.nondeterministic && self.may_fill(run, old));
        let checked = match self.rest_on_files(&record.dependencies) {
            true => u64::MAX, // To be looked at each time.
            false => epoch,
        };
        let merged = merge(resolved, (record, own), &returned, earlier, checked);
        // What ranks make together is known when they have told one another what it rests on.
        let merged = match run.from.shared_ranks() {
            Some(_) => merged,
            None => merged.inspect(|made| bind(run.from, resolved, &made.entry)),
        };
        merged.map_err(|error| Unpublished::of(error, Failure::Ordinary))
    }

    /// What a body returned, if it may be used, and the record of that.
    fn usable(&self, run: &Run<'_>, ran: Ran) -> Result<(ResultMap, Record), Unpublished> {
        let (app, key) = (run.name(), run.key);
        match ran.returned {
            // It may be only what it had when it heard that nobody wants it.
            Ok(Ok(_)) if ran.heard => {
                let cancelled = ErrorKind::Cancelled { app, key };
                Err(Unpublished::of(cancelled, Failure::Transient))
            }
            Ok(Ok(results)) => match run.files_unchanged() {
                Ok(()) => Ok((results, ran.record)),
                Err(error) => {
                    run.cache.scratches.remove(&run.scratch_key());
                    Err(Unpublished::of(error, Failure::Ordinary))
                }
            },
            Ok(Err(cause)) => {
                let failure = match ran.gave_up {
                    // Another caller may have begun to wait since: it is to try.
                    true => Failure::Transient,
                    false => self.lasts(run, &cause, &ran.record),
                };
                let error = match cause.too_deep() {
                    Some(error) => error.clone(),
                    None => ErrorKind::App { app, key, cause }.into(),
                };
                Err(Unpublished::of(error, failure))
            }
            Err(panic) => {
                let message = panic_message(&*panic);
                let error = ErrorKind::Panicked { app, key, message };
                Err(Unpublished {
                    panic: Some(panic),
                    ..Unpublished::of(error, Failure::Transient)
                })
            }
        }
    }

    /// How long an error of a body lasts.
    fn lasts(&self, run: &Run<'_>, cause: &AppError, record: &Record) -> Failure {
        // Another file, or another try, and it may go well.
        let may_go_well = record.nondeterministic
            || self.rest_on_files(&record.dependencies)
            || run.files_unchanged().is_err();
        match may_go_well {
            true => Failure::Ordinary,
            false => cause.lasts(run.app.resolved.info.failures),
        }
    }
}

impl Run<'_> {
    /// That the files among the inputs and the settings are as they were keyed: between keying a
    /// run and reading its files others may write to them, and what the body then makes is the
    /// result of the new content, under the key of the old. Reads them once more.
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
