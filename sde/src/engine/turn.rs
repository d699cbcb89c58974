//! Apps that say they are not thread-safe run one at a time.
//!
//! A run of such an app holds its app type's turn while its body runs. Waiting for
//! a turn is waiting for a run to be out of the way, so it goes through the same check for
//! cycles. A run beneath a run of the same app can't wait for that one; those beneath one
//! run have a turn among themselves. So if the one that has the turn waits for what another
//! makes that waits for the turn, the first makes it itself, beneath its own turn. What is
//! left is an error: two apps of which each has its turn and waits for the other's.
//!
//! A rayon worker does not wait for a turn without bound: it may be holding up the
//! very run that has it. It can't compute beside it either, so it gives an error.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::admit::cancelled;
use super::run::Run;
use super::wait::{WaitPatience, whence};
use super::{Engine, waits};
use crate::app::{Frame, Place, ancestry};
use crate::cache::flight::Waited;
use crate::cache::waits::{Until, Verdict};
use crate::cache::{AppCache, RunFlight};
use crate::error::{Error, ErrorKind};
use crate::event::Event;

/// The right to run a body that is not thread-safe; given back when dropped.
pub(super) struct Turn<'a> {
    cache: &'a AppCache,
    /// The address of the run of the same app beneath which the turn is; 0 for none.
    beneath: usize,
    held: Arc<RunFlight>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        turns(self.cache).remove(&self.beneath);
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

fn turns(cache: &AppCache) -> MutexGuard<'_, HashMap<usize, Arc<RunFlight>>> {
    cache.turns.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_thread_safe(run: &Run<'_>) -> Error {
    ErrorKind::NotThreadSafe {
        app: Arc::clone(&run.cache.name),
        key: run.key,
    }
    .into()
}

impl Engine {
    /// Waits until no other run of this app is going on, if the app needs that.
    pub(super) fn turn<'a>(&self, run: &Run<'a>) -> Result<Option<Turn<'a>>, Error> {
        let facts = &*run.subject.facts;
        if facts.info.thread_safe {
            return Ok(None);
        }
        let same = |frame: &&Arc<Frame>| {
            frame.facts.type_index == facts.type_index && frame.engine == self.id()
        };
        let above = ancestry(run.above.as_ref()).find(same);
        let beneath = above.map_or(0, |frame| Arc::as_ptr(frame) as usize);
        loop {
            let holder = match turns(run.cache).entry(beneath) {
                Entry::Occupied(held) => Arc::clone(held.get()),
                Entry::Vacant(free) => {
                    let held = run.cache.new_flight(run.key);
                    free.insert(Arc::clone(&held));
                    return Ok(Some(Turn {
                        cache: run.cache,
                        beneath,
                        held,
                    }));
                }
            };
            self.wait_for_turn(run, &holder)?;
        }
    }

    fn wait_for_turn(&self, run: &Run<'_>, holder: &Arc<RunFlight>) -> Result<(), Error> {
        let here = Place::here();
        let from = whence(run, &here);
        let guard = match waits().begin(from, run.node(holder.key), holder, Until::Gone) {
            Verdict::Wait(guard) => guard,
            Verdict::Compute | Verdict::Cycle(_) => return Err(not_thread_safe(run)),
        };
        self.tell(|| Event::Waiting {
            app: Arc::clone(&run.cache.name),
            key: holder.key,
        });
        let deadline = self.deadline(run, &here);
        let patience = WaitPatience::new(run, holder, guard.called_off(), deadline);
        let waited = holder.flight.wait(&patience);
        drop(guard);
        match waited {
            Waited::Stopped => Err(cancelled(run).unwrap_or_else(|| not_thread_safe(run))),
            Waited::Complete(_) | Waited::TakeOver | Waited::TooLate => Ok(()),
        }
    }
}
