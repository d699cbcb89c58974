//! Failures that are kept: which, how they are saved, and when one is given in place of a run.
//!
//! A store has the failure of a run as an entry under a [key of its own](failure_key), which no look-up of a result
//! meets. So a failure can be replaced by a later one, and never by a result or the other way round: a run's result, if
//! there is a usable one, is found first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Engine;
use super::announce::Announcement;
use super::claim::Role;
use super::execute::Computation;
use super::handle::Policy;
use super::kept::{FailedBody, GivenFailure, SeenFailure, error_of};
use super::publish::{Unpublished, later_than};
use super::run_state::Run;
use crate::checkpoint::{SavePolicy, Selection};
use crate::entry::{Entry, FailureRecord, Record, RecordHead, failure_key, nanos};
use crate::error::{Error, ErrorKind, Failure};
use crate::event::Event;
use crate::key::Key;
use crate::machine;
use crate::result_map::Failed;

/// What is kept of a failure.
#[derive(Default)]
pub(super) struct Kept {
    /// What memory knows it by.
    pub(super) in_memory: Option<Arc<Entry>>,
    to_save: Option<Arc<Entry>>,
}

/// Runs that are computed again since they failed in an earlier program.
#[derive(Default)]
pub(super) struct Repeats {
    runs: AtomicU64,
    nanos: AtomicU64,
}

impl Run<'_> {
    fn see(&self, failure: &Record, is_given: bool) {
        self.failure.set(Some(SeenFailure {
            run: failure.run,
            made_at: failure.made_at,
            took: failure.took,
            is_given,
            is_transient: (failure.failure.as_ref())
                .is_some_and(|failure| failure.lasts == Failure::Transient),
        }));
    }
}

/// The text that is kept of an error.
fn message(error: &Error) -> String {
    let text = || match error.kind() {
        ErrorKind::App { cause, .. } => cause.to_string(),
        ErrorKind::Panicked { message, .. } => format!("it panicked: {message}"),
        _ => format!("{error:#}"),
    };
    let text = catch_unwind(AssertUnwindSafe(text));
    text.unwrap_or_else(|_| "the text of its error can't be had".to_owned())
}

/// The error of a kept failure.
fn given(run: &Run<'_>, failure: &FailureRecord, made: &RecordHead) -> Error {
    let app = Arc::clone(&run.app.resolved.name);
    let (key, cause) = (run.key, error_of(failure, made));
    ErrorKind::App { app, key, cause }.into()
}

/// The entry by which memory knows a failure: its error, and whether it is permanent.
fn in_memory(
    run: &Run<'_>,
    head: RecordHead,
    (error, is_permanent): (Error, bool),
    (epoch, own): (u64, Duration),
) -> Arc<Entry> {
    let head = RecordHead {
        key: run.key,
        ..head
    };
    let failed = Failed {
        error,
        is_permanent,
    };
    let entry = Entry::failed(Record::new(head, []), failed, epoch, own);
    run.cache.measure(&entry);
    Arc::new(entry)
}

impl Engine {
    /// What is kept of a failure. Made within the run's frame: users' code makes the text of an error.
    pub(super) fn kept(
        &self,
        run: &Run<'_>,
        unpublished: &mut Unpublished,
        (_, epoch, own): Computation,
        role: &Role<'_>,
    ) -> Kept {
        let body = unpublished.body.take();
        let is_permanent = unpublished.failure == Failure::Permanent;
        let is_for_all = !matches!(role, Role::Alone { keep: None } | Role::Beside(_));
        let ranks = run.from.shared_ranks();
        let ranks = ranks.filter(|_| run.app.resolved.is_distributed());
        let saves = self.policy != SavePolicy::Never && self.archiver().is_some();
        let saves = saves && !run.app.resolved.info.forgets_failures;
        let Some(body) = body.filter(|_| is_for_all) else {
            return Kept::default();
        };
        let FailedBody {
            mut record,
            output,
            lasts,
        } = *body;
        // Each rank would have to find the same failure in its store.
        let lasts = if ranks.is_some() {
            Failure::Transient
        } else {
            lasts
        };
        let seen = run.failure.get().map(|seen| seen.made_at);
        let known = run.known.borrow();
        let known = known.iter().map(|entry| entry.record.made_at);
        record.made_at = later_than(record.made_at, known.chain(seen));
        let saved = || {
            let output = output.as_deref().unwrap_or_default();
            record
                .clone()
                .failed(&message(&unpublished.error), output, lasts)
        };
        let is_saved = saves && ranks.is_none_or(|ranks| ranks.rank() == 0);
        let saved = is_saved.then(saved);
        let error = match saved.as_ref().and_then(|saved| saved.failure.as_ref()) {
            _ if is_permanent => Some(unpublished.error.clone()),
            Some(failure) if lasts == Failure::Ordinary => Some(given(run, failure, &record)),
            _ => None,
        };
        let in_memory = error.map(|error| {
            let head = record.head.clone();
            in_memory(run, head, (error, is_permanent), (epoch, own))
        });
        if let Some(saved) = &saved {
            run.see(saved, lasts != Failure::Transient);
        }
        Kept {
            in_memory,
            to_save: saved.map(|record| Arc::new(Entry::unchecked(record, []))),
        }
    }

    /// Saves a failure as the policy wants it; other processes that wait for the run see it at once.
    pub(super) fn save_failure(&self, run: &Run<'_>, kept: Kept, announced: Option<Announcement>) {
        let Some(entry) = kept.to_save else { return };
        let save = self.new_save(&entry);
        let encoded = save.as_ref().map(|save| save.encode());
        let saved = self.save_entry(&entry, encoded);
        self.tell_new(&entry, saved);
        if !entry.record.nondeterministic {
            self.give(run, announced, &entry);
        }
    }

    /// The error of a kept failure that is given in place of this run.
    pub(super) fn given_failure(
        &self,
        run: &Run<'_>,
        previous: Option<&Entry>,
    ) -> Option<GivenFailure> {
        let resolved = &*run.app.resolved;
        let may_be_given = run.options.policy == Policy::Use && !resolved.is_distributed();
        if !may_be_given || resolved.nondeterministic {
            return None;
        }
        let (has_looked, seen) = (run.has_looked.replace(true), run.failure.get());
        let record = self.find_failure(&run.key)?;
        let known = run.known.borrow();
        let known = known.iter().map(Arc::as_ref).chain(previous);
        let has_result = known
            .into_iter()
            .any(|one| one.record.made_at >= record.made_at);
        // One that has come since the call looked first was made meanwhile, whatever the clocks say.
        let is_new = has_looked && seen.is_none_or(|seen| seen.run != record.run);
        let keeps = is_new || run.options.keeps_failures;
        let is_given = !has_result && self.gives(&record, keeps);
        run.see(&record, is_given);
        if !is_given {
            return None;
        }
        if let Some(parent) = &run.parent {
            let callees = record.dependencies.iter().cloned();
            parent.dependencies.add(callees, false);
            parent.dependencies.note_anew(record.anew);
        }
        let (failure, epoch) = (Arc::clone(record.failure.as_ref()?), self.epoch());
        let error = given(run, &failure, &record);
        // The result of a caller that goes on without is remembered too.
        let in_memory = (failure.lasts == Failure::Permanent).then(|| {
            let own = record.took;
            in_memory(run, record.head, (error.clone(), true), (epoch, own))
        });
        Some(GivenFailure { error, in_memory })
    }

    /// The kept failure of a run, whether it is given or not.
    pub(super) fn find_failure(&self, of: &Key) -> Option<Record> {
        let archiver = self.archiver()?;
        let key = failure_key(of);
        let unsaved = self.pending.of(Selection::Checkpoint, &[key]).pop();
        let record = match unsaved {
            Some(entry) => entry.full_record(),
            // A store that can't be asked has said so when the result was looked for.
            None => archiver.look(&key).ok()??.record,
        };
        record.failure.is_some().then_some(record)
    }

    /// Whether a kept failure is given in place of a run, to a caller that keeps failures of earlier programs or not.
    pub(super) fn gives(&self, record: &Record, keeps: bool) -> bool {
        let Some(failure) = &record.failure else {
            return false;
        };
        let is_of_now = || {
            // By a clock that is ahead it may end later than now: then nobody knows when it did.
            let ended = record.made_at + record.took;
            let array = machine::array_of_jobs();
            (self.started..=machine::now()).contains(&ended)
                || !array.is_empty() && array == record.job
        };
        let is_asked_for = || failure.lasts == Failure::Permanent || keeps || self.keeps_failures;
        failure.lasts != Failure::Transient
            && !record.nondeterministic
            && (is_asked_for() || is_of_now())
            && self.invalid(record).is_none()
            && !self.rest_on_files(&record.dependencies)
            && self.changed_dependency(&record.dependencies).is_none()
    }

    /// Counts a run that failed in an earlier program, and is about to be made again. One with a transient failure is made
    /// again in any case.
    pub(super) fn note_repeat(&self, run: &Run<'_>) {
        let seen = run.failure.get();
        let repeated = seen.filter(|seen| !seen.is_given && !seen.is_transient);
        let Some(seen) = repeated.filter(|_| run.options.policy == Policy::Use) else {
            return;
        };
        let Repeats { runs, nanos: sum } = &self.repeats;
        sum.fetch_add(nanos(seen.took), Ordering::Relaxed);
        if runs.fetch_add(1, Ordering::Relaxed) == 0 {
            self.tell_repeats(1, seen.took, false);
        }
    }

    /// Tells at the end how many runs were made again, if there were more than the first.
    pub(super) fn tell_all_repeats(&self) {
        let Repeats { runs, nanos } = &self.repeats;
        let runs = runs.swap(0, Ordering::Relaxed);
        let took = Duration::from_nanos(nanos.swap(0, Ordering::Relaxed));
        if runs > 1 {
            self.tell_repeats(runs, took, true);
        }
    }

    fn tell_repeats(&self, runs: u64, took: Duration, ended: bool) {
        tracing::info!(target: "sde", runs, ?took, ended, "failed in an earlier program, and computed again");
        self.tell(|| Event::Repeated { runs, took, ended });
    }
}
