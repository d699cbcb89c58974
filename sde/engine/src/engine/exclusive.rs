//! Apps that say they are not thread-safe run one at a time.
//!
//! While its body runs, a run of such an app is its app type's exclusive run. A call that waits for that run to be gone
//! goes through the check for cycles, as every wait does. A run nested in a run of its own app can't wait for that one;
//! the runs nested in one such run are exclusive among themselves. The exclusive run may need a result whose flight
//! waits for it to be gone: then it computes the result itself, nested in itself. Two apps whose exclusive runs wait
//! for one another are an error.
//!
//! A rayon worker waits for the exclusive run with a bound: it may be holding up that very run. It can't compute beside
//! it either, so it gives an error.

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
        // Waiters do not see this error: they look again which run is exclusive.
        let (app, key) = (Arc::clone(&self.cache.name), self.held.key);
        let gone = ErrorKind::StaleHandle { app, key }.into();
        self.held.fail(gone, false);
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
        let waited = holder.wait(&patience);
        drop(guard);
        match waited {
            Waited::Stopped => Err(cancelled(run).unwrap_or_else(|| not_thread_safe(run))),
            Waited::Complete(_) | Waited::TakeOver | Waited::TooLate => Ok(()),
        }
    }
}
