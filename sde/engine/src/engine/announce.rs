//! How other processes are told that a run goes on here, and when that announcement is taken back.
//!
//! An app that is known to take long is announced before its body runs. An announcement costs a file, too much for a
//! run of a microsecond. So a run of unknown duration is announced only after it has gone on for a while. A thread does
//! that and writes the results: runs do not wait for a disk. It exists only while it has work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::ThreadId;
use std::time::Instant;

use crate::app::{Frame, ancestry};
use crate::cache::SHORT;
use crate::checkpoint::{Announced, Archiver, Batch, Pending, Selection};
use crate::entry::Entry;
use crate::key::Key;
use crate::sync::{lock, wait, wait_until};

/// Keeps a run announced until it is dropped.
pub(super) type Held = Box<dyn Send + Sync>;

/// How a run of this process is announced to other processes. Dropping it takes the announcement back.
pub(super) enum Announcement {
    Held(Held),
    /// Another process computes the key too.
    Beside,
    /// To be made when the run has gone on for a while.
    Later(Arc<Later>),
}

/// A run of unknown duration, announced once it has gone on for a while. The announcement is taken back when the run
/// makes a nested run that is announced or waited for: other processes should take part in that one.
pub(super) struct Later {
    archiver: Arc<dyn Archiver>,
    app: Arc<str>,
    key: Key,
    /// The run that this is nested in.
    above: Option<Arc<Frame>>,
    state: Mutex<AnnounceState>,
}

enum AnnounceState {
    Running,
    Announced(Announced),
    Ended,
}

impl Announcement {
    /// Ends the run and gives how it was announced, if it was. A `Later` is not announced after this.
    pub(super) fn ended(self) -> Option<Self> {
        let Self::Later(later) = self else {
            return Some(self);
        };
        match std::mem::replace(&mut *lock(&later.state), AnnounceState::Ended) {
            AnnounceState::Announced(Announced::Mine(held)) => Some(Self::Held(held)),
            AnnounceState::Announced(Announced::Others(_)) => Some(Self::Beside),
            _ => None,
        }
    }
}

/// Announces runs after a while, and writes the results of announced runs.
#[derive(Default)]
pub(super) struct Announcer(Arc<AnnounceQueue>);

#[derive(Default)]
struct AnnounceQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Whether the latest write failed. Then runs are not announced: other processes would wait in vain.
    failed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    /// In the order in which they are due.
    due: VecDeque<(Instant, Weak<Later>)>,
    announced: Vec<Weak<Later>>,
    made: VecDeque<Made>,
    /// The thread, and the process it is in: after a fork there is none.
    thread: Option<(u32, ThreadId)>,
    /// There is no engine any more.
    ended: bool,
}

impl Queue {
    fn has_thread(&self) -> bool {
        let own = std::process::id();
        self.thread.is_some_and(|(process, _)| process == own)
    }
}

/// A result that other processes may wait for.
struct Made {
    archiver: Arc<dyn Archiver>,
    pending: Arc<Pending>,
    entry: Arc<Entry>,
    _held: Held,
}

impl Announcer {
    /// Has a run announced when it has gone on for a while, unless `held` announces it already.
    pub(super) fn later(
        &self,
        archiver: &Arc<dyn Archiver>,
        (app, key): (Arc<str>, Key),
        above: Option<&Arc<Frame>>,
        held: Option<Held>,
    ) -> Announcement {
        let is_announced = held.is_some();
        let state = held.map_or(AnnounceState::Running, |held| {
            AnnounceState::Announced(Announced::Mine(held))
        });
        let later = Arc::new(Later {
            archiver: Arc::clone(archiver),
            app,
            key,
            above: above.cloned(),
            state: Mutex::new(state),
        });
        let weak = Arc::downgrade(&later);
        if is_announced {
            lock(&self.0.queue).announced.push(weak)
        } else {
            self.enqueue(|queue| queue.due.push_back((Instant::now() + SHORT, weak)))
        }
        Announcement::Later(later)
    }

    /// Takes back the announcements of runs of unknown duration, from this run up through its callers.
    pub(super) fn retract(&self, from: Option<&Arc<Frame>>) {
        self.0.retract(from);
    }

    /// Has the thread write a pending result, and take the announcement back after that.
    pub(super) fn write(
        &self,
        archiver: Arc<dyn Archiver>,
        pending: &Arc<Pending>,
        entry: Arc<Entry>,
        held: Held,
    ) {
        let made = Made {
            archiver,
            pending: Arc::clone(pending),
            entry,
            _held: held,
        };
        self.enqueue(|queue| queue.made.push_back(made));
        self.0.changed.notify_all();
    }

    /// Whether the last result could not be written, and nothing was saved since.
    pub(super) fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::Relaxed)
    }

    /// Takes note that something was saved: the next result may be written too.
    pub(super) fn note_saved(&self) {
        self.0.failed.store(false, Ordering::Relaxed);
    }

    fn enqueue(&self, add: impl FnOnce(&mut Queue)) {
        let mut queue = lock(&self.0.queue);
        add(&mut queue);
        if !queue.has_thread() {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("sde-share".to_owned());
            let spawned = thread.spawn(move || shared.work()).ok();
            queue.thread = spawned.map(|thread| (std::process::id(), thread.thread().id()));
        }
        // Without a thread nothing is announced, and nothing is held back.
        let left = if queue.has_thread() {
            Queue::default()
        } else {
            std::mem::take(&mut *queue)
        };
        drop(queue);
        drop(left);
    }
}

/// The engine has saved the results that the thread has not written. After the drop the thread no longer uses the
/// store.
impl Drop for Announcer {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.ended = true;
        let left = std::mem::take(&mut queue.made);
        drop(queue);
        drop(left);
        self.0.changed.notify_all();
        let own = std::thread::current().id();
        let is_other = |queue: &Queue| queue.thread.is_some_and(|(_, thread)| thread != own);
        let mut queue = lock(&self.0.queue);
        while queue.has_thread() && is_other(&queue) {
            queue = wait(&self.0.changed, queue);
        }
    }
}

/// After a panic, notes that the thread is gone: `enqueue` starts another one, and no drop waits for this one.
struct UnlessEnded<'a>(&'a AnnounceQueue);

impl Drop for UnlessEnded<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.queue).thread = None;
            self.0.failed.store(true, Ordering::Relaxed);
        }
        self.0.changed.notify_all();
    }
}

impl AnnounceQueue {
    fn work(&self) {
        let _ended = UnlessEnded(self);
        let mut queue = lock(&self.queue);
        loop {
            if let Some(made) = queue.made.pop_front() {
                drop(queue);
                self.write(&made);
                drop(made);
                queue = lock(&self.queue);
                continue;
            }
            queue.due.retain(|(_, later)| later.strong_count() > 0);
            let next = queue.due.front().filter(|_| !queue.ended);
            let Some((at, later)) = next else {
                queue.thread = None;
                return;
            };
            let at = *at;
            if at > Instant::now() {
                queue = wait_until(&self.changed, queue, Some(at));
                continue;
            }
            let later = later.upgrade();
            queue.due.pop_front();
            drop(queue);
            if let Some(later) = later {
                later.announce();
                self.retract(later.above.as_ref());
                let mut announced = lock(&self.queue);
                announced.announced.retain(|later| later.strong_count() > 0);
                announced.announced.push(Arc::downgrade(&later));
            }
            queue = lock(&self.queue);
        }
    }

    fn retract(&self, from: Option<&Arc<Frame>>) {
        let Some(from) = from else {
            return;
        };
        let queue = lock(&self.queue);
        let due = queue.due.iter().map(|(_, later)| later);
        let all = due.chain(&queue.announced).filter_map(Weak::upgrade);
        let mut above: Vec<_> = all.collect();
        drop(queue);
        above.retain(|later| ancestry(Some(from)).any(|frame| frame.key == later.key));
        for later in above {
            let _taken_back = std::mem::replace(&mut *lock(&later.state), AnnounceState::Ended);
        }
    }

    fn write(&self, made: &Made) {
        let selection = Selection::Checkpoint;
        let record = &made.entry.record;
        // Dropped after the turn: destructors of values may save.
        let (mut entries, batch);
        // The turn keeps other saves from writing these entries a second time.
        let Ok(_turn) = made.pending.saver.turn(None) else {
            return;
        };
        entries = made.pending.of(selection, &[record.key]);
        entries.retain(|entry| entry.record.run == record.run);
        batch = Batch::of(selection, entries.iter().cloned());
        if batch.is_empty() {
            return;
        }
        if let Err(error) = made.archiver.write_through(&batch) {
            tracing::debug!(target: "sde", "what is shared could not be written: {error:#}");
            self.failed.store(true, Ordering::Relaxed);
        }
    }
}

impl Later {
    fn announce(&self) {
        if !matches!(*lock(&self.state), AnnounceState::Running) {
            return;
        }
        // The state is not locked meanwhile, so the run may end without waiting for a disk. Then `announced` is
        // dropped.
        let announced = self.archiver.announce(&self.app, &self.key);
        let mut state = lock(&self.state);
        if matches!(*state, AnnounceState::Running) {
            *state = AnnounceState::Announced(announced);
        }
    }
}
