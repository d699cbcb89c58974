//! Work that is shared with other processes: which one computes a key, and how long to wait for it.
//!
//! A key is announced by the call that has its claim in this process; other calls here wait for that one as ever. Every
//! wait for another process ends in computing: two processes may wait for one another, or a process be stopped.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use super::Engine;
use super::admit::cancelled;
use super::announce::{Announcement, Announcer, Held};
use super::handle::{CalledApp, Policy};
use super::kept::GivenFailure;
use super::run_state::Run;
use crate::app::{ResolvedApp, ThreadContext, Wake};
use crate::cache::{Count, SHORT};
use crate::checkpoint::{Announced, Archiver, Holder, SavePolicy};
use crate::entry::{Entry, Served};
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::sync::{lock, wait_until};

/// How this engine shares work with other processes.
pub(super) struct Sharing {
    /// The longest that a call waits for another process.
    pub(super) longest_wait: Duration,
    pub(super) announcer: Announcer,
}

/// The next step of a call that has the claim of a key.
pub(super) enum SharedClaim {
    Compute(Option<Announcement>),
    /// The store has it, or another process has computed it.
    Loaded(Served),
    /// It has failed, and is not to be made again.
    Failed(GivenFailure),
    /// The call gives up: another process is at the key and the caller has other work, or the call was cancelled.
    Leave(Error),
}

/// The least patience that follows from the cost of an app.
const AT_LEAST: Duration = Duration::from_secs(1);

/// How long a call that is not woken pauses before it looks again whether another process is still at it: each time twice as
/// long as before, from the first to the second of these.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(2)];

/// A call that waits for another process.
#[derive(Default)]
struct Waiter {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Wake for Waiter {
    fn wake(&self) {
        *lock(&self.is_woken) = true;
        self.woken.notify_all();
    }
}

impl Waiter {
    /// Returns when the waiter is woken, or was woken since the last pause, or after `longest`.
    fn pause(&self, longest: Duration) {
        let end = Instant::now() + longest;
        let mut is_woken = lock(&self.is_woken);
        while !*is_woken && Instant::now() < end {
            is_woken = wait_until(&self.woken, is_woken, Some(end));
        }
        *is_woken = false;
    }
}

impl Engine {
    /// Whether runs of this app are shared, as far as the app decides.
    pub(super) fn shares(&self, app: &CalledApp<'_>, names: Option<&[&str]>) -> bool {
        self.sharing.is_some()
            && !app.resolved.nondeterministic
            && !self.cache_of(&app.resolved).varies.load(Ordering::Relaxed)
            && is_saved(&app.resolved, names)
    }

    /// Decides the next step of a call that has the claim of a key, which is not in the store.
    pub(super) fn ask_processes(&self, run: &Run<'_>, previous: Option<&Entry>) -> SharedClaim {
        let alone = SharedClaim::Compute(None);
        let cost = &run.cache.cost;
        let is_short = || cost.longest().is_some_and(|longest| longest < SHORT);
        let Some(sharing) = self.sharing.as_ref().filter(|_| !is_short()) else {
            return alone;
        };
        let is_shared = run.options.policy == Policy::Use
            && self.shares(run.app, run.options.names)
            && !sharing.announcer.has_failed();
        let Some(archiver) = self.archiver().filter(|_| is_shared) else {
            return alone;
        };
        let spares = cost.average().unwrap_or(SHORT);
        let announced = match cost.is_long() {
            true => archiver.announce(&run.key),
            // The run may take long.
            false => match archiver.announced_by(&run.key) {
                Some(holder) => Announced::Others(holder),
                None => {
                    if cost.average().is_none()
                        && let Some(found) = self.load_now(run, &*archiver, spares, previous)
                    {
                        return found;
                    }
                    let later =
                        sharing
                            .announcer
                            .later(&archiver, run.key, run.above.as_ref(), None);
                    return SharedClaim::Compute(Some(later));
                }
            },
        };
        sharing.announcer.retract(run.above.as_ref());
        match announced {
            // Another process may have finished since the store was looked at, or be one that can't announce its runs.
            Announced::Mine(_) | Announced::Unsupported => {
                let found = self.load_now(run, &*archiver, spares, previous);
                found.unwrap_or_else(|| {
                    SharedClaim::Compute(match announced {
                        Announced::Mine(held) => Some(Announcement::Held(held)),
                        _ => None,
                    })
                })
            }
            Announced::Others(holder) if run.options.waits_for_processes => {
                self.wait_for(run, sharing, &archiver, &holder, previous)
            }
            Announced::Others(_) => SharedClaim::Leave(not_now(run)),
        }
    }

    /// Loads what another process may have written since this call looked.
    fn load_now(
        &self,
        run: &Run<'_>,
        archiver: &dyn Archiver,
        spares: Duration,
        previous: Option<&Entry>,
    ) -> Option<SharedClaim> {
        archiver.catch_up(spares);
        self.load_or_failure(run, previous)
    }

    /// Waits until the other process is done with the key, or the patience is over.
    fn wait_for(
        &self,
        run: &Run<'_>,
        sharing: &Sharing,
        archiver: &Arc<dyn Archiver>,
        holder: &Holder,
        previous: Option<&Entry>,
    ) -> SharedClaim {
        self.tell(|| Event::WaitingForProcess {
            app: run.name(),
            key: run.key,
            host: Arc::from(&*holder.host),
            process: holder.process,
        });
        let stretch =
            crate::stretch!("wait for a process", app = &*run.cache.name, key = %run.key.short());
        let (begun, patience) = (Instant::now(), self.patience_with_others(run, sharing));
        let [mut pause, longest_pause] = PAUSES;
        let waiter = Arc::new(Waiter::default());
        run.wakes(&(Arc::downgrade(&waiter) as Weak<dyn Wake>));
        let woken = Arc::clone(&waiter);
        let _watch = archiver.watch(&run.key, Arc::new(move || woken.wake()));
        loop {
            if let Some(error) = cancelled(run) {
                return SharedClaim::Leave(error);
            }
            if archiver.announced_by(&run.key).is_none() {
                if let Some(found) = self.load_now(run, &**archiver, Duration::MAX, previous) {
                    stretch.end("shared");
                    run.cache.counters.add(Count::WaitedForOthers, 1);
                    return found;
                }
                // The other process was killed, or has failed and may go well the next time.
                match archiver.announce(&run.key) {
                    Announced::Mine(held) => {
                        stretch.end("taken over");
                        return SharedClaim::Compute(Some(taken_over(
                            run, sharing, archiver, held,
                        )));
                    }
                    Announced::Others(_) => {}
                    Announced::Unsupported => return SharedClaim::Compute(None),
                }
            }
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            waiter.pause(pause.min(left));
            pause = (2 * pause).min(longest_pause);
        }
        stretch.end("too late");
        SharedClaim::Compute(Some(Announcement::Beside))
    }

    /// How long a call may wait for another process. A nested call waits much less: that process may wait for a run
    /// that the call is nested in. A rayon worker waits less too: it may hold up the very run that is waited for.
    fn patience_with_others(&self, run: &Run<'_>, sharing: &Sharing) -> Duration {
        let longest = sharing.longest_wait;
        let (times, unknown) = if run.above.is_some() {
            (2, longest / 10)
        } else {
            (10, longest)
        };
        let by_cost = |cost: Duration| cost.saturating_mul(times).max(AT_LEAST);
        let patience = run.cache.cost.longest().map_or(unknown, by_cost);
        let on_rayon = ThreadContext::here().is_on_rayon(run.above.as_ref());
        let most = if on_rayon {
            self.rayon_patience.min(longest)
        } else {
            longest
        };
        patience.min(most)
    }

    /// Has an announced run's result written for other processes.
    pub(super) fn give(&self, run: &Run<'_>, announced: Option<Announcement>, entry: &Arc<Entry>) {
        let Some(sharing) = &self.sharing else {
            return;
        };
        if entry.record.nondeterministic {
            run.cache.varies.store(true, Ordering::Relaxed);
        }
        match announced.and_then(Announcement::ended) {
            Some(Announcement::Beside) => run.cache.counters.add(Count::BesideOthers, 1),
            // With every result saved, the store has it by now.
            Some(Announcement::Held(held)) if self.policy != SavePolicy::EveryResult => {
                let archiver = self.archiver();
                if let (false, Some(archiver)) = (entry.record.nondeterministic, archiver) {
                    let entry = Arc::clone(entry);
                    sharing
                        .announcer
                        .write(archiver, &self.pending, entry, held);
                }
            }
            _ => {}
        }
    }
}

/// The announcement of a run that is taken over from another process.
fn taken_over(
    run: &Run<'_>,
    sharing: &Sharing,
    archiver: &Arc<dyn Archiver>,
    held: Held,
) -> Announcement {
    match run.cache.cost.is_long() {
        true => Announcement::Held(held),
        false => {
            let above = run.above.as_ref();
            let announcer = &sharing.announcer;
            announcer.later(archiver, run.key, above, Some(held))
        }
    }
}

/// Whether all results that are asked for will be in the store.
fn is_saved(resolved: &ResolvedApp, names: Option<&[&str]>) -> bool {
    let results = &resolved.info.results;
    match names {
        None => results.iter().any(|spec| spec.tags.is_checkpointed()),
        Some(names) => names.iter().all(|name| {
            let spec = resolved.result(name);
            spec.is_some_and(|spec| spec.tags.is_checkpointed())
        }),
    }
}

pub(super) fn not_now(run: &Run<'_>) -> Error {
    ErrorKind::NotRemembered {
        app: run.name(),
        key: run.key,
        why: "another process is computing it".to_owned(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_pause_ends_when_it_is_over_or_the_waiter_is_woken() {
        let waiter = Arc::new(Waiter::default());
        let hour = Duration::from_secs(3600);
        let (tell, told) = mpsc::channel();
        let waits = Arc::clone(&waiter);
        std::thread::spawn(move || {
            for longest in [hour, Duration::ZERO, hour] {
                waits.pause(longest);
                tell.send(()).unwrap();
            }
        });
        let over = || told.recv_timeout(Duration::from_secs(60)).unwrap();
        waiter.wake();
        over();
        over();
        waiter.wake();
        over();
    }
}
