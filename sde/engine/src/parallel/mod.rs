//! Working together without ever stealing.
//!
//! A rayon worker that waits takes other jobs onto its stack. If one of those
//! waits for a run that is suspended below it, neither can go on: that is how
//! memoizers hang under rayon. So the engine's own `join` and `par_map` are built
//! on helpers that take part in *one named piece of work* at a time, and a thread
//! that has nothing left to do of its own piece sleeps. The stack of a helper is
//! then always a chain of calls, every wait is for something that runs, and nothing
//! is computed twice.
//!
//! The price: a helper that waits is a core that rests. See
//! `docs/decisions/0004-parallel.md`.

#[allow(unsafe_code, reason = "lends borrowed work to threads that outlive it")]
mod ticket;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread::current;
use std::time::Duration;

use ticket::Ticket;
pub(crate) use ticket::Ticket as Errand;

use crate::sync::{MutexGuard, lock, unpoisoned, wait};

/// The helper threads of one engine; started when first needed, ended when it is
/// dropped.
pub(crate) struct Helpers {
    shared: Arc<HelperQueue>,
    /// How many threads work together, the caller among them.
    threads: usize,
}

#[derive(Default)]
struct HelperQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    tickets: VecDeque<Arc<Ticket>>,
    started: usize,
    idle: usize,
    closed: bool,
}

impl HelperQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

impl Helpers {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            shared: Arc::default(),
            threads: threads.max(1),
        }
    }

    /// How many threads work together at most.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` on this thread, and at the same time on up to `helpers` others that are free. Returns when every
    /// thread that began it has ended it, and gives how long this thread waited for others.
    ///
    /// `work` has to share out what there is to do by itself, and must do all of it
    /// if no helper comes.
    ///
    /// # Panics
    /// If `work` panics on any thread, after all have ended.
    pub(crate) fn share(&self, helpers: usize, work: &(dyn Fn() + Sync)) -> Duration {
        let helpers = helpers.min(self.threads - 1);
        if helpers == 0 {
            work();
            return Duration::ZERO;
        }
        ticket::scope(work, |ticket| self.offer(ticket, helpers))
    }

    fn offer(&self, ticket: &Arc<Ticket>, helpers: usize) {
        let mut queue = self.shared.lock();
        for _ in 0..helpers {
            queue.tickets.push_back(Arc::clone(ticket));
        }
        let wanted = queue.tickets.len().saturating_sub(queue.idle);
        let more = wanted.min((self.threads - 1).saturating_sub(queue.started));
        for _ in 0..more {
            let shared = Arc::clone(&self.shared);
            // Without a helper the caller does all the work itself.
            if new_thread().spawn(move || help(&shared)).is_ok() {
                queue.started += 1;
            }
        }
        drop(queue);
        self.shared.changed.notify_all();
    }
}

/// Has another thread do a job, and waits for it: the thread that `offer` gives the errand to, which does it once.
///
/// # Panics
/// If the job panics.
pub(crate) fn run_errand<T: Send>(
    job: impl FnOnce() -> T + Send,
    offer: impl FnOnce(Arc<Errand>),
) -> T {
    let here = current().id();
    let (job, returned, done) = (Mutex::new(Some(job)), Mutex::new(None), Barrier::new(2));
    let work = || {
        if current().id() != here {
            let taken = lock(&job).take();
            let ended = taken.map(|job| catch_unwind(AssertUnwindSafe(job)));
            *lock(&returned) = ended;
        }
        done.wait();
    };
    ticket::scope(&work, |errand| offer(Arc::clone(errand)));
    match unpoisoned(returned.into_inner()) {
        Some(Ok(returned)) => returned,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("it was waited for"),
    }
}

/// Calls a function when it is dropped: at the end of a piece of work, also by a panic.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A thread for bodies, which run on it as they do on a main thread, with as large a stack.
pub(crate) fn new_thread() -> std::thread::Builder {
    let thread = std::thread::Builder::new();
    thread.name("sde-helper".to_owned()).stack_size(8 << 20)
}

/// The life of a helper. The newest ticket comes first: it belongs to the innermost work, which others wait for.
fn help(shared: &HelperQueue) {
    let mut queue = shared.lock();
    loop {
        if let Some(ticket) = queue.tickets.pop_back() {
            drop(queue);
            ticket.work();
            drop(ticket);
            queue = shared.lock();
        } else if queue.closed {
            return;
        } else {
            queue.idle += 1;
            queue = wait(&shared.changed, queue);
            queue.idle -= 1;
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{Barrier, Helpers};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_helper_takes_part() {
        let helpers = Helpers::new(2);
        let meet = Barrier::new(2);
        helpers.share(1, &|| {
            meet.wait();
        });
    }

    #[test]
    fn alone_the_caller_does_it_all() {
        let left = AtomicUsize::new(10);
        let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        Helpers::new(1).share(4, &|| while take().is_ok() {});
        assert_eq!(left.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_panic_of_a_helper_reaches_the_caller() {
        let helpers = Helpers::new(2);
        let meet = Barrier::new(2);
        let caller = std::thread::current().id();
        let caught = std::panic::catch_unwind(|| {
            helpers.share(1, &|| {
                meet.wait();
                assert_eq!(std::thread::current().id(), caller, "on a helper");
            });
        });
        assert!(caught.is_err());
        helpers.share(1, &|| {
            meet.wait();
        });
    }

    #[test]
    fn shared_work_may_share_work() {
        let helpers = Helpers::new(3);
        let done = AtomicUsize::new(0);
        for _ in 0..200 {
            helpers.share(2, &|| {
                helpers.share(2, &|| {
                    done.fetch_add(1, Ordering::Relaxed);
                });
            });
        }
        assert!(done.load(Ordering::Relaxed) >= 200);
    }
}
