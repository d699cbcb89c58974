//! Claiming a key: who computes, and who shares what another makes.

use std::sync::Arc;

use super::Engine;
use super::fly::Claim;
use super::run::{Run, Served};
use crate::app::{Outcome, Policy};
use crate::cache::{Claimed, Entry, RunFlight};
use crate::error::Error;
use crate::event::{Event, Source};
use crate::inputs::Call;

impl Engine {
    /// Claims the key, or shares what the holder of the claim makes.
    pub(super) fn claim(&self, run: &Run<'_>, call: &mut dyn Call) -> Result<Outcome, Error> {
        let names = run.options.names;
        let refresh = run.options.policy == Policy::Refresh;
        loop {
            let failed_in = (!refresh).then(|| self.failure_epoch());
            let claimed = run.cache.claim(run.key, failed_in, |entry| {
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
        match run
            .cache
            .claim(run.key, Some(self.failure_epoch()), |_| false)
        {
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
        let mut claim = Claim::won(run.cache, flight);
        let begun = self.begin(run, Some(flight));
        if run.options.policy != Policy::Refresh
            && let Some(entry) = previous
            && let Ok(map) = self.serve(entry, run.options.names)
        {
            // Published between looking and claiming.
            claim = match claim.put_back(entry, &map) {
                Ok(()) => {
                    let entry = Arc::clone(entry);
                    return Ok(self.conclude(run, Served { entry, map }, Source::Map));
                }
                Err(claim) => claim,
            };
        }
        self.tell_stale(run, previous.map(|entry| &**entry));
        self.fly(run, call, claim, begun, previous.map(|entry| &**entry))
    }

    fn tell_stale(&self, run: &Run<'_>, previous: Option<&Entry>) {
        let previous = previous.filter(|entry| !entry.record.nondeterministic);
        let why = previous.and_then(|entry| self.refusal(entry, run.options.names));
        if let Some(why) = why {
            self.tell(|| Event::Stale {
                app: Arc::clone(&run.subject.facts.name),
                key: run.key,
                why,
            });
        }
    }
}
