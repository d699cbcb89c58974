//! Claiming a key: whether the results are there by now, or in the store, or who computes them.

use std::sync::Arc;

use super::Engine;
use super::announce::Announcement;
use super::execute::Begun;
use super::handle::Policy;
use super::kept::GivenFailure;
use super::run_state::Run;
use super::share::{SharedClaim, not_now};
use crate::cache::{self, AppCache, RunFlight};
use crate::entry::{Entry, Served};
use crate::error::{Error, ErrorKind, Failure};
use crate::event::Source;

pub(super) enum Claimed<'a> {
    /// The results, and where they were.
    Found(Served, Source),
    /// This call is to compute them.
    Compute {
        role: Role<'a>,
        begun: Begun,
        /// The entry of the key so far, whose gaps are filled.
        previous: Option<Arc<Entry>>,
    },
}

/// For whom a call computes.
pub(crate) enum Role<'a> {
    /// For all who ask.
    Holder(Claim<'a>),
    /// For itself, while another holds the claim: the first of them to publish wins.
    Beside(Arc<RunFlight>),
    /// For its caller alone. The outcome is kept as the record of the calculation, if the cache has been of this
    /// generation all the time.
    Alone { keep: Option<u64> },
}

/// The right to end a flight. Ends it in an error if it is dropped, so that
/// a panic anywhere leaves nobody waiting.
pub(crate) struct Claim<'a> {
    cache: &'a AppCache,
    pub(super) flight: Arc<RunFlight>,
    /// How the run is announced to other processes.
    pub(super) announced: Option<Announcement>,
    ended: bool,
}

impl<'a> Claim<'a> {
    /// To be made as soon as the claim is won, before anything that may panic.
    pub(super) fn won(cache: &'a AppCache, flight: Arc<RunFlight>) -> Self {
        Self {
            cache,
            flight,
            announced: None,
            ended: false,
        }
    }

    /// Ends the flight in an error; `keep` is the entry by which the failure is remembered.
    pub(super) fn fail(mut self, error: &Error, failure: Failure, keep: Option<Arc<Entry>>) {
        self.ended = true;
        let retry = failure == Failure::Transient;
        self.cache.fail(&self.flight, error, retry, keep);
    }
}

impl Role<'_> {
    /// Gives the key back: calls that wait for the flight look again.
    pub(super) fn leave(self, run: &Run<'_>) {
        if let Self::Holder(claim) = self {
            claim.fail(&not_now(run), Failure::Transient, None);
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.ended && !self.flight.is_complete() {
            let error = Error::from(ErrorKind::Panicked {
                app: Arc::clone(&self.cache.name),
                key: self.flight.key,
                message: "outside of the app's body".to_owned(),
            });
            self.cache.fail(&self.flight, &error, true, None);
        }
    }
}

impl Engine {
    /// Finds the results, waits for a call that computes them, or takes the run on.
    pub(super) fn claim<'a>(&self, run: &Run<'a>) -> Result<Claimed<'a>, Error> {
        match run.options.policy {
            Policy::Bypass => return Ok(self.alone(run, false)),
            _ if run.app.resolved.nondeterministic => return Ok(self.alone(run, true)),
            _ => {}
        }
        let refresh = run.options.policy == Policy::Refresh;
        let mut refused: Option<Arc<Entry>> = None;
        loop {
            let failed_in = (!refresh).then(|| self.epoch());
            let (claimed, _before) = run.cache.claim(run.key, failed_in, |entry| {
                !run.options.replaces(entry.record.run)
                    && refused.as_ref().is_none_or(|old| !Arc::ptr_eq(old, entry))
            });
            match claimed {
                // Published between looking and claiming.
                cache::Claimed::Ready(entry) => match self.served(&entry, run.options.names) {
                    Ok(served) => return Ok(Claimed::Found(served, Source::Memory)),
                    Err(_) => refused = Some(entry),
                },
                cache::Claimed::Failed(error) => return Err(error),
                cache::Claimed::Mine(flight, previous) => {
                    let claim = Claim::won(run.cache, flight);
                    let begun = self.begin(run, Some(&claim.flight));
                    let sure = previous.as_ref().filter(|old| !old.record.nondeterministic);
                    let why = sure.and_then(|old| self.refusal(old, run.options.names));
                    self.tell_stale(run, why);
                    return self.load_or_compute(run, claim, begun, previous);
                }
                cache::Claimed::Theirs(flight) => {
                    if let Some(claimed) = self.wait(run, &flight)? {
                        return Ok(claimed);
                    }
                }
            }
        }
    }

    /// Takes on a run for this caller alone.
    pub(super) fn alone<'a>(&self, run: &Run<'a>, is_kept: bool) -> Claimed<'a> {
        let keep = is_kept.then(|| run.cache.generation());
        self.compute(run, Role::Alone { keep })
    }

    /// Takes on a run without a claim.
    pub(super) fn compute<'a>(&self, run: &Run<'a>, role: Role<'a>) -> Claimed<'a> {
        Claimed::Compute {
            role,
            begun: self.begin(run, None),
            previous: None,
        }
    }

    /// Takes on this rank's share of a run of all ranks. Only the thread that may begin collective runs claims their
    /// keys.
    pub(crate) fn claim_together<'a>(&self, run: &Run<'a>) -> (Role<'a>, Begun) {
        let is_bypass = run.options.policy == Policy::Bypass;
        let is_alone = is_bypass || run.app.resolved.nondeterministic;
        let claimed = (!is_alone).then(|| run.cache.claim(run.key, None, |_| false));
        let (flight, _before) = match claimed {
            Some((cache::Claimed::Mine(flight, _), before)) => (Some(flight), Some(before)),
            _ => (None, None),
        };
        let claim = flight.map(|flight| Claim::won(run.cache, flight));
        let begun = self.begin(run, claim.as_ref().map(|claim| &claim.flight));
        let keep = (!is_bypass).then(|| run.cache.generation());
        (claim.map_or(Role::Alone { keep }, Role::Holder), begun)
    }

    /// Ends the flight with an entry that the store has or gets from another process, or takes the run on.
    pub(super) fn load_or_compute<'a>(
        &self,
        run: &Run<'a>,
        mut claim: Claim<'a>,
        begun: Begun,
        previous: Option<Arc<Entry>>,
    ) -> Result<Claimed<'a>, Error> {
        // A run that was nondeterministic is not looked for: its result may come out otherwise.
        let before = previous.as_deref();
        let may_load = before.is_none_or(|entry| !entry.record.nondeterministic);
        let shared = match may_load {
            false => SharedClaim::Compute(None),
            true => match self.load_or_failure(run, before) {
                Some(found) => found,
                None => self.ask_processes(run, before),
            },
        };
        match shared {
            SharedClaim::Compute(announced) => claim.announced = announced,
            SharedClaim::Leave(error) => {
                // Calls that wait for the flight were not cancelled.
                Role::Holder(claim).leave(run);
                return Err(error);
            }
            SharedClaim::Loaded(loaded) => return Ok(self.found_in_store(run, claim, loaded)),
            SharedClaim::Failed(GivenFailure { error, in_memory }) => {
                claim.fail(&error, Failure::Ordinary, in_memory);
                return Err(error);
            }
        }
        self.note_repeat(run);
        Ok(Claimed::Compute {
            role: Role::Holder(claim),
            begun,
            previous,
        })
    }

    /// What the store has of the run: an entry that serves, or else a failure that is given.
    pub(super) fn load_or_failure(
        &self,
        run: &Run<'_>,
        previous: Option<&Entry>,
    ) -> Option<SharedClaim> {
        let loaded = self.load(run, previous).map(SharedClaim::Loaded);
        loaded.or_else(|| Some(SharedClaim::Failed(self.given_failure(run, previous)?)))
    }

    /// Ends the flight with an entry of the store.
    fn found_in_store<'a>(&self, run: &Run<'a>, claim: Claim<'a>, loaded: Served) -> Claimed<'a> {
        let record = &loaded.entry.record;
        if self.sharing.is_some() && record.calls.is_empty() {
            run.cache.cost.note(record.took);
        }
        run.cache.measure(&loaded.entry);
        let settled = self.settle(run, &claim.flight, loaded, |_| ());
        drop(claim);
        self.sets.received.forget(&run.key);
        Claimed::Found(settled.served, Source::Loaded)
    }

    /// Gives an entry of the store, or one that is in memory by now, and claims nothing.
    pub(super) fn remembered(&self, run: &Run<'_>) -> Result<(Served, Source), Error> {
        let generation = run.cache.generation();
        let previous = run.cache.entry(&run.key);
        if let Some(loaded) = self.load(run, previous.as_deref()) {
            run.cache.record(&loaded.entry, generation);
            self.sets.received.forget(&run.key);
            return Ok((loaded, Source::Loaded));
        }
        // Another run may have taken up the received entry meanwhile.
        let now = run.cache.entry(&run.key);
        if let Some(entry) = &now
            && let Ok(served) = self.served(entry, run.options.names)
        {
            return Ok((served, Source::Memory));
        }
        Err(self.not_remembered(run, now.or(previous)))
    }

    /// The error of a call whose results, of which this is left, do not serve.
    pub(super) fn not_remembered(&self, run: &Run<'_>, entry: Option<Arc<Entry>>) -> Error {
        let why = match entry {
            Some(entry) => self
                .refusal(&entry, run.options.names)
                .unwrap_or_else(|| "it is being computed again".to_owned()),
            None if run.cache.is_flying(&run.key) => "it is being computed".to_owned(),
            None => match self.stored_refusal(&run.app.resolved, &run.key, run.options.names) {
                Some(Err(why)) => format!("what is stored does not serve: {why}"),
                _ => "it was never computed, or not saved".to_owned(),
            },
        };
        let app = run.name();
        ErrorKind::NotRemembered {
            app,
            key: run.key,
            why,
        }
        .into()
    }
}
