//! Claiming a key, and what to do when somebody else has the claim.

use std::sync::Arc;
#[cfg(not(sde_model))]
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::Instant;

use super::fly::Claim;
use super::run::Run;
use super::{Engine, Node};
use crate::app::{CancelToken, Frame, Outcome, Place, Policy, Wake, ancestry, depth_here, stack};
use crate::cache::flight::{Patience, Waited};
use crate::cache::waits::{From, Verdict};
use crate::cache::{Claimed, Entry, RunFlight};
use crate::error::{Error, ErrorKind};
use crate::event::{Event, RunId, Source};
use crate::inputs::Call;
use crate::result_map::ResultMap;

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
        // Before the claim: who waits for the turn holds up nobody.
        let _turn = self.turn(run).map_err(|error| self.failed(run, error))?;
        match run.options.policy {
            Policy::Bypass => self.fly_alone(run, call, false),
            Policy::OnlyIfRemembered => self.only_remembered(run),
            Policy::Use | Policy::Refresh if facts.nondeterministic => {
                self.fly_alone(run, call, true)
            }
            Policy::Use | Policy::Refresh => self.claim(run, call),
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
                Claimed::Ready(entry) if self.serves(&entry, names) => {
                    return Ok(self.conclude(run, &entry, Source::Map));
                }
                // It is whole, and does not serve: it was invalidated, or the
                // names asked for are not its own.
                Claimed::Ready(_) => match self.claim_refused(run, call)? {
                    Some(outcome) => return Ok(outcome),
                    None => continue,
                },
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
            && self.serves(entry, run.options.names)
        {
            // Published between looking and claiming.
            let standing = claim.publish(Arc::clone(entry));
            return Ok(self.conclude(run, &standing, Source::Map));
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
        let to = Node {
            key: run.key,
            app: Arc::clone(&run.subject.facts.name),
        };
        let guard = match self.waits.begin(whence(run, &here), to, flight) {
            Verdict::Wait(guard) => guard,
            Verdict::Compute => return self.beside(run, call, flight, &here).map(Some),
            Verdict::Cycle(path) => {
                let path = path.iter().map(label).collect();
                return Err(self.failed(run, ErrorKind::Cycle { path }.into()));
            }
        };
        self.tell(|| Event::Waiting {
            app: Arc::clone(&run.subject.facts.name),
            key: run.key,
        });
        let deadline = here.tainted.then(|| Instant::now() + self.rayon_patience);
        let patience = WaitPatience::new(run, flight, deadline);
        let waited = flight.flight.wait(&patience);
        drop(guard);
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
        let given = flight
            .given()
            .filter(|given| given.origin().is_some_and(|origin| origin.run == made));
        let has_all = |given: &&ResultMap| match run.options.names {
            Some(names) => names.iter().all(|name| given.has(name)),
            None => true,
        };
        let names = match given.filter(has_all) {
            // It holds what the entry itself may have let go since.
            Some(_) => Some(&[][..]),
            None => run.options.names,
        };
        self.serves(entry, names).then(|| {
            let mut outcome = self.conclude(run, entry, Source::Waited);
            if let Some(given) = given {
                outcome.results = given.clone();
            }
            outcome
        })
    }

    fn beside(
        &self,
        run: &Run<'_>,
        call: &mut dyn Call,
        flight: &Arc<RunFlight>,
        here: &Place,
    ) -> Result<Outcome, Error> {
        let on_stack = stack(here.top.as_ref()).filter(|frame| frame.key == run.key);
        if on_stack.count() >= DEEPEST {
            let path = stack(here.top.as_ref())
                .take(3)
                .map(|f| f.label())
                .collect();
            return Err(self.failed(run, ErrorKind::Cycle { path }.into()));
        }
        self.fly_beside(run, call, flight)
    }

    /// Counts, tells and records a result that this call did not compute.
    pub(super) fn conclude(&self, run: &Run<'_>, entry: &Arc<Entry>, source: Source) -> Outcome {
        if let Some(parent) = &run.parent {
            self.tell_parent(parent, run.subject, entry);
        }
        self.hit(run.cache, entry, source)
    }

    /// Gives what is in the store, and nothing else.
    fn only_remembered(&self, run: &Run<'_>) -> Result<Outcome, Error> {
        let generation = run.cache.generation();
        let previous = run.cache.entry(&run.key);
        if let Some(entry) = self.load(run, previous.as_deref()) {
            run.cache.record(&entry, generation);
            return Ok(self.conclude(run, &entry, Source::Loaded));
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
            flight.map(|flight| Box::new(move || flight.flight.waiting() > 0) as _),
        )
    }
}

/// Where a call is that is about to wait.
pub(super) fn whence(run: &Run<'_>, here: &Place) -> From<Node> {
    let node = |frame: &Arc<Frame>| Node {
        key: frame.key,
        app: Arc::clone(&frame.facts.name),
    };
    From {
        ancestry: ancestry(run.parent.as_ref()).map(node).collect(),
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
    let depth = ancestry(run.parent.as_ref()).position(|frame| frame.key == run.key)?;
    let mut path: Vec<_> = ancestry(run.parent.as_ref())
        .take(depth + 1)
        .map(|frame| frame.label())
        .collect();
    path.reverse();
    path.push(format!("{} [{}]", run.subject.facts.name, run.key.short()));
    Some(path)
}

pub(super) fn label(node: &Node) -> String {
    format!("{} [{}]", node.app, node.key.short())
}

/// How long a call waits: until it is cancelled, and on rayon's workers until
/// that has become suspicious.
pub(super) struct WaitPatience<'a> {
    own: Option<&'a CancelToken>,
    parent: Option<&'a Arc<Frame>>,
    deadline: Option<Instant>,
}

impl<'a> WaitPatience<'a> {
    pub(super) fn new(
        run: &'a Run<'_>,
        flight: &Arc<RunFlight>,
        deadline: Option<Instant>,
    ) -> Self {
        let patience = Self {
            own: run.options.cancel.as_ref(),
            parent: run.parent.as_ref(),
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
