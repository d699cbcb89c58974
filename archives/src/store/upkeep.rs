//! Work that saves leave to a thread of the store: sealing full segments, removing superseded scratch, and keeping
//! the limits. It may read and write the whole store, and no call is to wait for it.
//!
//! The thread starts when work is due, and ends when it is done. Finishing or dropping the store waits for it, and
//! so does a commit to a store with limits.

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
    /// The process whose thread runs: a forked child has no such thread.
    running: Option<u32>,
    /// The thread begun last. It reports warnings, and their receiver may use the store on it.
    thread: Option<ThreadId>,
    is_due: bool,
}

impl UpkeepState {
    fn is_running(&self) -> bool {
        self.running == Some(std::process::id())
    }
}

impl Upkeep {
    /// Waits until no work is due; on the thread itself it returns at once.
    pub(crate) fn wait(&self) {
        let mut state = lock(&self.state);
        while state.is_running() && state.thread != Some(thread::current().id()) {
            state = wait(&self.ended, state);
        }
    }

    /// Records that work is due. Gives whether a thread must be started.
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

    /// Whether work is due. If not, the waiters go on: the thread holds nothing of the store any more.
    fn goes_on(&self) -> bool {
        let mut state = lock(&self.state);
        if !state.is_due {
            state.running = None;
            self.ended.notify_all();
        }
        std::mem::take(&mut state.is_due)
    }
}

/// Wakes the waiters if the thread panics.
struct End<'a>(&'a Upkeep);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).running = None;
            self.0.ended.notify_all();
        }
    }
}

/// Shared by all handles that users hold. Dropping the last waits for the store's thread.
pub(crate) struct Opened(pub(crate) Arc<Inner>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.upkeep.wait();
    }
}

impl DirStore {
    /// Has a thread do the upkeep.
    pub(crate) fn begin_upkeep(&self) {
        if !self.0.upkeep.note_due() {
            return;
        }
        let (upkeep, store) = (Arc::clone(&self.0.upkeep), Arc::downgrade(&self.0));
        let thread = Builder::new().name("sde-upkeep".to_owned());
        if thread.spawn(move || upkeep.run(&store)).is_err() {
            // No thread could be started.
            self.0.upkeep.run(&Arc::downgrade(&self.0));
        }
    }

    /// Seals full segments, removes superseded scratch, and keeps the limits. A program that saves each result may
    /// commit only at its end, so commits alone would not do.
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
