//! Apps that say they are not thread-safe run one at a time.
//!
//! A run of such an app is the exclusive one of its app type while its body runs. Waiting for
//! it is waiting for a run to be out of the way, so that goes through the same check for
//! cycles. A run nested in a run of the same app can't wait for that one; those nested in one
//! run have an exclusive one among themselves. So if the exclusive run waits for what another
//! makes that waits for it to be gone, the first makes it itself, nested in itself. What is
//! left is an error: two apps whose exclusive runs wait for one another.
//!
//! A rayon worker does not wait for that without bound: it may be holding up the
//! very run that is to be gone. It can't compute beside it either, so it gives an error.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::admit::cancelled;
use super::run_state::Run;
use super::wait::{WaitPatience, wait_site};
use super::{Engine, waits};
use crate::app::{Frame, ThreadContext, ancestry};
use crate::cache::flight::Waited;
use crate::cache::waits::{Until, Verdict};
use crate::cache::{AppCache, RunFlight};
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::sync::lock;

/// The right to run a body that is not thread-safe, until it is dropped.
pub(super) struct ExclusiveRun<'a> {
    cache: &'a AppCache,
    /// The address of the run of the same app within which it is exclusive; 0 for none.
    ancestor: usize,
    held: Arc<RunFlight>,
}

impl Drop for ExclusiveRun<'_> {
    fn drop(&mut self) {
        lock(&self.cache.exclusive_runs).remove(&self.ancestor);
        // Those that wait look again which run is exclusive, and not at the error.
        let (app, key) = (Arc::clone(&self.cache.name), self.held.key);
        let gone = ErrorKind::StaleHandle { app, key }.into();
        self.held.flight.fail(gone, false);
    }
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
    pub(super) fn exclusive<'a>(&self, run: &Run<'a>) -> Result<Option<ExclusiveRun<'a>>, Error> {
        let resolved = &*run.app.resolved;
        if resolved.info.thread_safe {
            return Ok(None);
        }
        let same = |frame: &&Arc<Frame>| {
            frame.resolved.type_index == resolved.type_index && frame.engine == self.id()
        };
        let above = ancestry(run.above.as_ref()).find(same);
        let ancestor = above.map_or(0, |frame| Arc::as_ptr(frame) as usize);
        loop {
            let holder = match lock(&run.cache.exclusive_runs).entry(ancestor) {
                Entry::Occupied(held) => Arc::clone(held.get()),
                Entry::Vacant(free) => {
                    let held = run.cache.new_flight(run.key);
                    free.insert(Arc::clone(&held));
                    return Ok(Some(ExclusiveRun {
                        cache: run.cache,
                        ancestor,
                        held,
                    }));
                }
            };
            self.wait_until_gone(run, &holder)?;
        }
    }

    fn wait_until_gone(&self, run: &Run<'_>, holder: &Arc<RunFlight>) -> Result<(), Error> {
        let here = ThreadContext::here();
        let from = wait_site(run, &here);
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
