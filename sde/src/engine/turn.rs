//! Apps that say they are not thread-safe run one at a time.
//!
//! A run of such an app holds its app type's turn while its body runs. Waiting for
//! a turn is waiting for a run, so it goes through the same check for cycles: one
//! that could never end is an error. A run beneath a run of the same app has the
//! turn already.

use std::sync::{Arc, PoisonError};

use super::run::Run;
use super::wait::{WaitPatience, label, whence};
use super::{Engine, Node};
use crate::app::{Place, ancestry};
use crate::cache::flight::Waited;
use crate::cache::waits::Verdict;
use crate::cache::{AppCache, RunFlight};
use crate::error::{Error, ErrorKind};

/// The right to run a body that is not thread-safe; given back when dropped.
pub(super) struct Turn<'a> {
    cache: &'a AppCache,
    held: Arc<RunFlight>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turn = self
            .cache
            .turn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *turn = None;
        drop(turn);
        // Those that wait look again who has the turn.
        self.held
            .flight
            .fail(given_back(self.cache, &self.held), false);
    }
}

/// What a turn ends with: nobody looks at it.
fn given_back(cache: &AppCache, held: &RunFlight) -> Error {
    ErrorKind::StaleHandle {
        app: Arc::clone(&cache.name),
        key: held.key,
    }
    .into()
}

impl Engine {
    /// Waits until no other run of this app is going on, if the app needs that.
    pub(super) fn turn<'a>(&self, run: &Run<'a>) -> Result<Option<Turn<'a>>, Error> {
        let facts = run.subject.facts;
        let has_it = |frame: &Arc<crate::app::Frame>| frame.facts.type_index == facts.type_index;
        if facts.info.thread_safe || ancestry(run.parent.as_ref()).any(has_it) {
            return Ok(None);
        }
        loop {
            let holder = {
                let mut turn = run
                    .cache
                    .turn
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                match &*turn {
                    Some(holder) => Arc::clone(holder),
                    None => {
                        let held = run.cache.new_flight(run.key);
                        *turn = Some(Arc::clone(&held));
                        return Ok(Some(Turn {
                            cache: run.cache,
                            held,
                        }));
                    }
                }
            };
            self.wait_for_turn(run, &holder)?;
        }
    }

    fn wait_for_turn(&self, run: &Run<'_>, holder: &Arc<RunFlight>) -> Result<(), Error> {
        let here = Place::here();
        let mut from = whence(run, &here);
        // The run waits on behalf of all who wait for it already.
        from.ancestry.insert(
            0,
            Node {
                key: run.key,
                app: Arc::clone(&run.cache.name),
            },
        );
        let to = Node {
            key: holder.key,
            app: Arc::clone(&run.cache.name),
        };
        let cycle = |path: Vec<String>| Err(ErrorKind::Cycle { path }.into());
        let guard = match self.waits.begin(from, to.clone(), holder) {
            Verdict::Wait(guard) => guard,
            Verdict::Compute => return cycle(vec![label(&to), label(&to)]),
            Verdict::Cycle(path) => return cycle(path.iter().map(label).collect()),
        };
        let patience = WaitPatience::new(run, holder, None);
        let waited = holder.flight.wait(&patience);
        drop(guard);
        match waited {
            Waited::Stopped => Err(ErrorKind::Cancelled {
                app: Arc::clone(&run.cache.name),
                key: run.key,
            }
            .into()),
            Waited::Landed(_) | Waited::TakeOver => Ok(()),
        }
    }
}
