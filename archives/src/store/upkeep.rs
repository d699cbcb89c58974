//! What a save leaves to a thread of the store: sealing what has grown long, removing what is superseded of scratch, and
//! keeping the limits. That may read and write all of the store, and no call is to wait for it.
//!
//! The thread is begun when something is due, and ends when nothing is any more. Whoever finishes or drops the store waits for it,
//! and whoever commits to one with limits.

use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::{self, Builder, ThreadId};

use crate::format::class::Part;
use crate::locks::{lock, wait, warnings_after};
use crate::store::{DirStore, Inner};

#[derive(Default)]
pub(crate) struct Upkeep {
    state: Mutex<UpkeepState>,
    ended: Condvar,
}

#[derive(Default)]
struct UpkeepState {
    /// The process whose thread is at it: a child that was forked has none.
    running: Option<u32>,
    /// The one that was begun last. It is given warnings to tell, and who hears them may use the store there.
    thread: Option<ThreadId>,
    is_due: bool,
}

impl UpkeepState {
    fn is_running(&self) -> bool {
        self.running == Some(std::process::id())
    }
}

impl Upkeep {
    /// Waits until nothing is due, on any other thread.
    pub(crate) fn wait(&self) {
        let mut state = lock(&self.state);
        while state.is_running() && state.thread != Some(thread::current().id()) {
            state = wait(&self.ended, state);
        }
    }

    /// Takes note that something is due. Gives whether a thread is to be begun for it.
    fn note_due(&self) -> bool {
        let mut state = lock(&self.state);
        let begins = !state.is_running();
        state.running = Some(std::process::id());
        state.is_due = true;
        begins
    }

    fn run(&self, store: &Weak<Inner>) {
        let _end = End(self);
        lock(&self.state).thread = Some(thread::current().id());
        while self.goes_on() {
            if let Some(inner) = store.upgrade() {
                DirStore::inner(inner).keep_up();
            }
        }
    }

    /// Whether something is due. If not, whoever waits goes on: the thread holds nothing of the store any more.
    fn goes_on(&self) -> bool {
        let mut state = lock(&self.state);
        if !state.is_due {
            state.running = None;
            self.ended.notify_all();
        }
        std::mem::take(&mut state.is_due)
    }
}

/// Nobody waits for a thread that has panicked.
struct End<'a>(&'a Upkeep);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).running = None;
            self.0.ended.notify_all();
        }
    }
}

/// What all handles share that users were given. When the last of them goes it waits for the thread of the store.
pub(crate) struct Opened(pub(crate) Arc<Inner>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.upkeep.wait();
    }
}

impl DirStore {
    /// Has a thread do what is due.
    pub(crate) fn begin_upkeep(&self) {
        if !self.0.upkeep.note_due() {
            return;
        }
        let (upkeep, store) = (Arc::clone(&self.0.upkeep), Arc::downgrade(&self.0));
        let thread = Builder::new().name("sde-upkeep".to_owned());
        if thread.spawn(move || upkeep.run(&store)).is_err() {
            // The system had no thread to give.
            self.0.upkeep.run(&Arc::downgrade(&self.0));
        }
    }

    /// Seals what has grown long, removes what is superseded of scratch, and keeps the limits: a program that saves each
    /// result commits at its end only.
    fn keep_up(&self) {
        let sealed = warnings_after(|| {
            let _alone = lock(&self.0.trimming);
            let sealed = self.seal_full();
            if sealed.contains(&Part::Scratch) {
                self.trim();
            }
            sealed
        });
        if !sealed.is_empty() && self.has_limits() {
            self.sweep_what_is_due();
        }
    }
}
