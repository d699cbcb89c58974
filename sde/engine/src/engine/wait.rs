//! A call whose key another call has claimed: it waits for that one, or computes beside it.

use std::sync::Condvar;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::admit::cancelled;
use super::claim::{Claim, Claimed, Role};
use super::handle::is_left;
use super::run_state::Run;
use super::{Engine, Node, waits};
use crate::app::{Frame, ThreadContext, Wake, ancestry, stack};
use crate::cache::RunFlight;
use crate::cache::flight::{Patience, Waited};
use crate::cache::waits::{Until, Verdict, WaitSite};
use crate::entry::{Entry, Served};
use crate::error::{Error, ErrorKind};
use crate::event::{Event, RunId, Source};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{MutexGuard, wait_until};

/// How often a key may be on one stack. Redundant computing under work stealing
/// nests as deep as there are jobs to steal; an app that calls itself through an
/// `Sde` it captured would nest for ever.
const DEEPEST: usize = 100;

impl Engine {
    /// Waits for another's flight; `None` if its result does not serve this call.
    pub(super) fn wait<'a>(
        &self,
        run: &Run<'a>,
        flight: &Arc<RunFlight>,
    ) -> Result<Option<Claimed<'a>>, Error> {
        let here = ThreadContext::here();
        let since = self.runs_so_far();
        if stack(here.top.as_ref()).any(|frame| run.is(frame)) && flight.beside() >= most_beside() {
            return Err(endless(run, &here));
        }
        let from = wait_site(run, &here);
        let guard = match waits().begin(from, run.node(run.key), flight, Until::Made) {
            Verdict::Wait(guard) => guard,
            Verdict::Compute => return self.beside(run, flight, &here).map(Some),
            Verdict::Cycle(path) => {
                let path = path.iter().map(Node::label).collect();
                return Err(ErrorKind::Cycle { path }.into());
            }
        };
        // Before the event: an observer that hears of the wait can rely on it.
        let interested = flight.interest();
        self.tell(|| Event::Waiting {
            app: run.name(),
            key: run.key,
        });
        let deadline = self.deadline(run, &here);
        let patience = WaitPatience::new(run, flight, guard.called_off(), deadline);
        let stretch =
            crate::stretch!("wait", app = &*run.app.resolved.name, key = %run.key.short());
        let waited = flight.wait(&patience);
        stretch.end(match &waited {
            Waited::Complete(Ok(_)) => "shared",
            Waited::Complete(Err(_)) => "failed",
            Waited::TakeOver => "taken over",
            Waited::TooLate => "too late",
            Waited::Stopped => "stopped",
        });
        drop((guard, interested));
        if matches!(waited, Waited::Stopped) && !flight.is_wanted() {
            // Runs nested in the flight may be unwanted too: those that wait are woken to look.
            waits().wake_nested(&run.node(run.key));
        }
        match waited {
            Waited::Complete(Ok(entry)) if entry.record.nondeterministic => {
                Ok(Some(self.alone(run, true)))
            }
            Waited::Complete(Ok(entry)) => {
                let shared = self.shared(run, flight, entry, since);
                Ok(shared.map(|served| Claimed::Found(served, Source::Waited)))
            }
            // The flight's holder left the key to another process; this call looks for itself.
            Waited::Complete(Err(error)) if is_left(&error) => Ok(None),
            Waited::Complete(Err(error)) => Err(error),
            Waited::TooLate => Ok(None),
            Waited::TakeOver => self.take_over(run, flight).map(Some),
            Waited::Stopped => match cancelled(run) {
                Some(error) => Err(error),
                None => self.beside(run, flight, &here).map(Some),
            },
        }
    }

    /// Takes over the claim of a call that failed.
    fn take_over<'a>(&self, run: &Run<'a>, flight: &Arc<RunFlight>) -> Result<Claimed<'a>, Error> {
        let claim = Claim::won(run.cache, Arc::clone(flight));
        let begun = self.begin(run, Some(flight));
        self.tell(|| Event::TakenOver {
            app: run.name(),
            key: run.key,
        });
        let previous = run.cache.entry(&run.key);
        self.load_or_compute(run, claim, begun, previous)
    }

    /// Until when a call may wait: without bound, unless that could hold up a rayon worker.
    pub(super) fn deadline(&self, run: &Run<'_>, here: &ThreadContext) -> Option<Instant> {
        let bounded = here.is_on_rayon(run.above.as_ref());
        bounded.then(|| Instant::now().checked_add(self.rayon_patience))?
    }

    /// The entry and values that a flight gives to a call that waited for it; `None` if they do not serve.
    fn shared(
        &self,
        run: &Run<'_>,
        flight: &RunFlight,
        entry: Arc<Entry>,
        since: RunId,
    ) -> Option<Served> {
        let made = entry.record.run;
        let fresh = made.process == since.process && made.number > since.number;
        if run.options.replaces(made) && !fresh {
            return None;
        }
        let names = run.options.names;
        // The flight's map holds values that the entry may have let go since.
        let given = flight.given().filter(|given| {
            let of_this_run = given.entry().is_some_and(|of| of.record.run == made);
            of_this_run && names.is_none_or(|names| names.iter().all(|name| given.has(name)))
        });
        let map = match given {
            Some(given) => self.serve(&entry, Some(&[])).map(|_| given.clone()),
            None => self.serve(&entry, names),
        };
        let map = map.ok()?;
        Some(Served { entry, map })
    }

    /// Takes the run on beside the holder of the claim.
    fn beside<'a>(
        &self,
        run: &Run<'a>,
        flight: &Arc<RunFlight>,
        here: &ThreadContext,
    ) -> Result<Claimed<'a>, Error> {
        let on_stack = stack(here.top.as_ref()).filter(|frame| run.is(frame));
        if on_stack.count() >= DEEPEST || flight.one_more_beside() >= most_beside() {
            return Err(endless(run, here));
        }
        Ok(self.compute(run, Role::Beside(Arc::clone(flight))))
    }
}

/// The error of a run that is computed over and over, and so seems to be nested in itself.
fn endless(run: &Run<'_>, here: &ThreadContext) -> Error {
    let on_stack = stack(here.top.as_ref()).take(3).map(|frame| frame.label());
    let mut path: Vec<_> = on_stack.collect();
    path.reverse();
    path.push(run.label());
    ErrorKind::Cycle { path }.into()
}

/// How often a key may be computed beside one flight. Under work stealing every worker may
/// do so, and nest it some; an app that calls itself on rayon's workers, through an `Sde`
/// that it captured, does so without end, and with each call becoming many there would be
/// no end within any depth.
fn most_beside() -> usize {
    64 * rayon::current_num_threads()
}

/// The ancestry and the stack of a call that is about to wait.
pub(super) fn wait_site(run: &Run<'_>, here: &ThreadContext) -> WaitSite<Node> {
    let node = |frame: &Arc<Frame>| Node {
        engine: frame.engine,
        key: frame.key,
        app: Arc::clone(&frame.resolved.name),
    };
    WaitSite {
        ancestry: ancestry(run.above.as_ref()).map(node).collect(),
        stack: stack(here.top.as_ref()).map(node).collect(),
    }
}

/// How long a call waits: until it is cancelled or called off. A rayon worker, and runs nested there, also have a
/// deadline.
pub(super) struct WaitPatience<'a> {
    run: &'a Run<'a>,
    called_off: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl<'a> WaitPatience<'a> {
    pub(super) fn new(
        run: &'a Run<'a>,
        flight: &Arc<RunFlight>,
        called_off: Arc<AtomicBool>,
        deadline: Option<Instant>,
    ) -> Self {
        let waiter: Weak<RunFlight> = Arc::downgrade(flight);
        run.wakes(&(waiter as Weak<dyn Wake>));
        Self {
            run,
            called_off,
            deadline,
        }
    }
}

impl Patience for WaitPatience<'_> {
    fn is_over(&self) -> bool {
        self.run.is_cancelled()
            || self.called_off.load(Ordering::Acquire)
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn sleep<'g, T>(&self, on: &Condvar, guard: MutexGuard<'g, T>) -> MutexGuard<'g, T> {
        wait_until(on, guard, self.deadline)
    }
}
