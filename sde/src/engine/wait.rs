//! Claiming a key, and what to do when somebody else has the claim.

use std::sync::Arc;
#[cfg(not(sde_model))]
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::Instant;

use super::fly::Claim;
use super::run::{Run, Served};
use super::{Engine, Node, waits};
use crate::app::{CancelToken, Frame, Outcome, Place, Policy, Wake, ancestry, depth_here, stack};
use crate::cache::flight::{Patience, Waited};
use crate::cache::waits::{From, Until, Verdict};
use crate::cache::{Claimed, Entry, RunFlight};
use crate::error::{Error, ErrorKind};
use crate::event::{Event, RunId, Source};
use crate::inputs::Call;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How often a key may be on one stack. Redundant computing under work stealing
/// nests as deep as there are jobs to steal; an app that calls itself through an
/// `Sde` it captured would nest for ever.
const DEEPEST: usize = 100;

impl Engine {
    /// What happens when neither level of the cache has the result.
    pub(super) fn miss(&self, run: &Run<'_>, call: &mut dyn Call) -> Result<Outcome, Error> {
        let facts = run.subject.facts;
        if !facts.missing.is_empty() {
            let error = ErrorKind::NotReady {
                app: Arc::clone(&facts.name),
                missing: facts.missing.clone(),
            };
            return Err(self.failed(run, error.into()));
        }
        if let Some(path) = own_cycle(run) {
            return Err(self.failed(run, ErrorKind::Cycle { path }.into()));
        }
        let unfit = unknown_name(run).or_else(|| cancelled(run));
        if let Some(error) = unfit.or_else(|| self.too_deep(run)) {
            return Err(self.failed(run, error));
        }
        if run.options.policy == Policy::OnlyIfRemembered {
            return self.only_remembered(run);
        }
        // Before the claim: who waits for the turn holds up nobody.
        let _turn = self.turn(run).map_err(|error| self.failed(run, error))?;
        match run.options.policy {
            Policy::Bypass => self.fly_alone(run, call, false),
            _ if facts.nondeterministic => self.fly_alone(run, call, true),
            _ => self.claim(run, call),
        }
    }

    /// Whether the run would have more below it than a thread's stack is sure to hold.
    fn too_deep(&self, run: &Run<'_>) -> Option<Error> {
        let depth = depth_here(run.parent.as_ref());
        (depth >= self.max_depth).then(|| {
            ErrorKind::TooDeep {
                app: Arc::clone(&run.subject.facts.name),
                key: run.key,
                depth,
            }
            .into()
        })
    }

    /// Claims the key, or shares what the holder of the claim makes.
    fn claim(&self, run: &Run<'_>, call: &mut dyn Call) -> Result<Outcome, Error> {
        let names = run.options.names;
        let refresh = run.options.policy == Policy::Refresh;
        loop {
            let known_nondeterministic = run
                .cache
                .ready(&run.key)
                .is_some_and(|entry| entry.record.nondeterministic);
            if known_nondeterministic {
                return self.fly_alone(run, call, true);
            }
            let epoch = (!refresh).then(|| self.epoch());
            let claimed = run.cache.claim(run.key, epoch, |entry| {
                !refresh && entry.is_whole_and_checked(self.epoch())
            });
            match claimed {
                Claimed::Ready(entry) => {
                    if let Ok(map) = self.serve(&entry, names) {
                        return Ok(self.conclude(run, Served { entry, map }, Source::Map));
                    }
                    // It is whole, and does not serve: it was invalidated, or the
                    // names asked for are not its own.
                    if let Some(outcome) = self.claim_refused(run, call)? {
                        return Ok(outcome);
                    }
                }
                Claimed::Failed(error) => return Err(self.failed(run, error)),
                Claimed::Mine(flight, previous) => {
                    return self.with_claim(run, call, &flight, previous.as_ref());
                }
                Claimed::Theirs(flight) => {
                    if let Some(outcome) = self.share(run, call, &flight)? {
                        return Ok(outcome);
                    }
                }
            }
        }
    }

    /// Claims a key whose entry is whole and was refused.
    fn claim_refused(&self, run: &Run<'_>, call: &mut dyn Call) -> Result<Option<Outcome>, Error> {
        match run.cache.claim(run.key, Some(self.epoch()), |_| false) {
            Claimed::Mine(flight, previous) => self
                .with_claim(run, call, &flight, previous.as_ref())
                .map(Some),
            Claimed::Theirs(flight) => self.share(run, call, &flight),
            Claimed::Failed(error) => Err(self.failed(run, error)),
            Claimed::Ready(_) => Ok(None),
        }
    }

    fn with_claim(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        flight: &Arc<RunFlight>,
        previous: Option<&Arc<Entry>>,
    ) -> Result<Outcome, Error> {
        let claim = Claim::won(run.cache, flight);
        if run.options.policy != Policy::Refresh
            && let Some(entry) = previous
            && let Ok(map) = self.serve(entry, run.options.names)
        {
            // Published between looking and claiming.
            flight.set_given(&map);
            let standing = claim.publish(Arc::clone(entry));
            let own = Served {
                entry: Arc::clone(entry),
                map,
            };
            let served = self.standing(own, &standing, run.options.names);
            return Ok(self.conclude(run, served, Source::Map));
        }
        self.tell_stale(run, previous.map(|entry| &**entry));
        self.fly(run, call, claim, previous.map(|entry| &**entry))
    }

    /// Waits for another's flight; `None` if its result does not serve this call.
    fn share(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        flight: &Arc<RunFlight>,
    ) -> Result<Option<Outcome>, Error> {
        let here = Place::here();
        let since = self.runs_so_far();
        if stack(here.top.as_ref()).any(|frame| run.is(frame)) && flight.beside() >= most_beside() {
            return Err(self.endless(run, &here));
        }
        let from = whence(run, &here);
        let guard = match waits().begin(from, run.node(run.key), flight, Until::Made) {
            Verdict::Wait(guard) => guard,
            Verdict::Compute => return self.beside(run, call, flight, &here).map(Some),
            Verdict::Cycle(path) => {
                let path = path.iter().map(label).collect();
                return Err(self.failed(run, ErrorKind::Cycle { path }.into()));
            }
        };
        // Before it is told: who hears of it can rely on it.
        let interested = flight.interest();
        self.tell(|| Event::Waiting {
            app: Arc::clone(&run.subject.facts.name),
            key: run.key,
        });
        let deadline = here.tainted.then(|| Instant::now() + self.rayon_patience);
        let patience = WaitPatience::new(run, flight, guard.called_off(), deadline);
        let waited = flight.flight.wait(&patience);
        drop((guard, interested));
        match waited {
            Waited::Landed(Ok(entry)) => {
                if entry.record.nondeterministic {
                    return self.fly_alone(run, call, true).map(Some);
                }
                Ok(self.shared(run, flight, &entry, since))
            }
            Waited::Landed(Err(error)) => Err(self.failed(run, error)),
            Waited::TooLate => Ok(None),
            Waited::TakeOver => {
                let claim = Claim::won(run.cache, flight);
                self.tell(|| Event::TakenOver {
                    app: Arc::clone(&run.subject.facts.name),
                    key: run.key,
                });
                let previous = run.cache.entry(&run.key);
                self.fly(run, call, claim, previous.as_deref()).map(Some)
            }
            Waited::Stopped => {
                if let Some(error) = cancelled(run) {
                    Err(self.failed(run, error))
                } else {
                    self.beside(run, call, flight, &here).map(Some)
                }
            }
        }
    }

    /// What another's flight gives to one who waited for it; `None` if that does
    /// not serve.
    fn shared(
        &self,
        run: &Run<'_>,
        flight: &RunFlight,
        entry: &Arc<Entry>,
        since: RunId,
    ) -> Option<Outcome> {
        let made = entry.record.run;
        let fresh = made.process == since.process && made.number > since.number;
        if run.options.policy == Policy::Refresh && !fresh {
            return None;
        }
        let names = run.options.names;
        // It holds what the entry itself may have let go since.
        let given = flight.given().filter(|given| {
            let of_this_run = given.origin().is_some_and(|origin| origin.run == made);
            of_this_run && names.is_none_or(|names| names.iter().all(|name| given.has(name)))
        });
        let map = match given {
            Some(given) => self.serve(entry, Some(&[])).map(|_| given.clone()),
            None => self.serve(entry, names),
        };
        let entry = Arc::clone(entry);
        let served = Served {
            map: map.ok()?,
            entry,
        };
        Some(self.conclude(run, served, Source::Waited))
    }

    fn beside(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        flight: &Arc<RunFlight>,
        here: &Place,
    ) -> Result<Outcome, Error> {
        let on_stack = stack(here.top.as_ref()).filter(|frame| run.is(frame));
        if on_stack.count() >= DEEPEST || flight.one_more_beside() >= most_beside() {
            return Err(self.endless(run, here));
        }
        self.fly_beside(run, call, flight)
    }

    /// The error of a run that is computed over and over, beneath itself for all that
    /// can be seen.
    fn endless(&self, run: &Run<'_>, here: &Place) -> Error {
        let on_stack = stack(here.top.as_ref()).take(3).map(|frame| frame.label());
        let mut path: Vec<_> = on_stack.collect();
        path.reverse();
        path.push(label(&run.node(run.key)));
        self.failed(run, ErrorKind::Cycle { path }.into())
    }

    /// Counts, tells and records a result that this call did not compute.
    pub(super) fn conclude(&self, run: &Run<'_>, served: Served, source: Source) -> Outcome {
        if let Some(parent) = &run.parent {
            self.tell_parent(parent, run.subject, &served.entry);
        }
        self.hit(run.cache, served, source)
    }

    /// Gives what is in the store, and nothing else.
    fn only_remembered(&self, run: &Run<'_>) -> Result<Outcome, Error> {
        let generation = run.cache.generation();
        let previous = run.cache.entry(&run.key);
        if let Some(loaded) = self.load(run, previous.as_deref()) {
            run.cache.record(&loaded.entry, generation);
            return Ok(self.conclude(run, loaded, Source::Loaded));
        }
        let why = match previous {
            Some(entry) => self
                .refusal(&entry, run.options.names)
                .unwrap_or_else(|| "it is being computed again".to_owned()),
            None if run.cache.is_flying(&run.key) => "it is being computed".to_owned(),
            None => "it was never computed, or not saved".to_owned(),
        };
        let app = Arc::clone(&run.subject.facts.name);
        let key = run.key;
        Err(self.failed(run, ErrorKind::NotRemembered { app, key, why }.into()))
    }

    fn tell_stale(&self, run: &Run<'_>, previous: Option<&Entry>) {
        let why = previous.and_then(|entry| self.refusal(entry, run.options.names));
        if let Some(why) = why {
            self.tell(|| Event::Stale {
                app: Arc::clone(&run.subject.facts.name),
                key: run.key,
                why,
            });
        }
    }

    /// Says, for a run about to start, whether anybody wants its result: its
    /// caller, if not cancelled, or those who wait for its flight.
    pub(super) fn wanted_by(
        &self,
        run: &Run<'_>,
        flight: Option<&Arc<RunFlight>>,
    ) -> crate::app::Interest {
        let flight = flight.cloned();
        crate::app::Interest::new(
            run.options.cancel.clone(),
            flight.map(|flight| Box::new(move || flight.is_wanted()) as _),
        )
    }
}

/// How often a key may be computed beside one flight. Under work stealing every worker may
/// do so, and nest it some; an app that calls itself on rayon's workers, through an `Sde`
/// that it captured, does so without end, and with each call becoming many there would be
/// no end within any depth.
fn most_beside() -> usize {
    64 * rayon::current_num_threads()
}

/// Where a call is that is about to wait.
pub(super) fn whence(run: &Run<'_>, here: &Place) -> From<Node> {
    let node = |frame: &Arc<Frame>| Node {
        engine: frame.engine,
        key: frame.key,
        app: Arc::clone(&frame.facts.name),
    };
    From {
        ancestry: ancestry(run.above.as_ref()).map(node).collect(),
        stack: stack(here.top.as_ref()).map(node).collect(),
    }
}

/// A name was asked for that the app does not return.
fn unknown_name(run: &Run<'_>) -> Option<Error> {
    let facts = run.subject.facts;
    let mut names = run.options.names?.iter();
    let unknown = names.find(|name| facts.result(name).is_none())?;
    let results = facts.info.results.iter();
    let error = ErrorKind::NoResult {
        origin: format!("{} [{}]", facts.name, run.key.short()),
        name: (*unknown).to_owned(),
        there: results.map(|spec| spec.name.to_string()).collect(),
    };
    Some(error.into())
}

/// Whoever made this call, or a run that it is part of, has given up.
pub(super) fn cancelled(run: &Run<'_>) -> Option<Error> {
    let own = run
        .options
        .cancel
        .as_ref()
        .is_some_and(CancelToken::is_cancelled);
    let given_up = own
        || run
            .parent
            .as_ref()
            .is_some_and(|parent| parent.is_unwanted());
    given_up.then(|| {
        let app = Arc::clone(&run.subject.facts.name);
        ErrorKind::Cancelled { app, key: run.key }.into()
    })
}

/// The cycle, if a run is called from beneath itself.
fn own_cycle(run: &Run<'_>) -> Option<Vec<String>> {
    let depth = ancestry(run.above.as_ref()).position(|frame| run.is(frame))?;
    let mut path: Vec<_> = ancestry(run.above.as_ref())
        .take(depth + 1)
        .map(|frame| frame.label())
        .collect();
    path.reverse();
    path.push(label(&run.node(run.key)));
    Some(path)
}

fn label(node: &Node) -> String {
    format!("{} [{}]", node.app, node.key.short())
}

/// How long a call waits: until it is cancelled or called off, and on rayon's workers
/// until that has become suspicious.
pub(super) struct WaitPatience<'a> {
    own: Option<&'a CancelToken>,
    parent: Option<&'a Arc<Frame>>,
    called_off: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl<'a> WaitPatience<'a> {
    pub(super) fn new(
        run: &'a Run<'_>,
        flight: &Arc<RunFlight>,
        called_off: Arc<AtomicBool>,
        deadline: Option<Instant>,
    ) -> Self {
        let patience = Self {
            own: run.options.cancel.as_ref(),
            parent: run.parent.as_ref(),
            called_off,
            deadline,
        };
        let waker = Arc::downgrade(flight) as std::sync::Weak<dyn Wake>;
        let inherited = ancestry(run.parent.as_ref()).filter_map(|frame| frame.interest.token());
        for token in patience.own.into_iter().chain(inherited) {
            token.wakes(waker.clone());
        }
        patience
    }

    fn is_cancelled(&self) -> bool {
        self.own.is_some_and(CancelToken::is_cancelled)
            || self.parent.is_some_and(|parent| parent.is_unwanted())
    }
}

impl Patience for WaitPatience<'_> {
    fn is_over(&self) -> bool {
        self.is_cancelled()
            || self.called_off.load(Ordering::Acquire)
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }

    #[cfg(not(sde_model))]
    fn sleep<'g, T>(&self, on: &Condvar, guard: MutexGuard<'g, T>) -> MutexGuard<'g, T> {
        match self.deadline {
            None => on.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                on.wait_timeout(guard, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        }
    }
}
