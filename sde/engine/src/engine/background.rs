//! Checkpoints that nobody waits for.
//!
//! A thread of the engine makes them: when an interval is over, when it is asked to. It holds the
//! engine only while it saves, so that an engine that is dropped ends it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use super::Engine;
use crate::checkpoint::{SavePolicy, Selection};
use crate::error::panic_message;
use crate::sync::{MutexGuard, lock, wait_until};

/// The thread, if it was started, and its work.
#[derive(Default)]
pub(super) struct Background(Arc<SaveRequests>);

#[derive(Default)]
struct SaveRequests {
    state: Mutex<RequestState>,
    changed: Condvar,
}

#[derive(Default)]
struct RequestState {
    /// The process whose thread saves: a forked one has none.
    started: Option<u32>,
    wanted: bool,
    stopped: bool,
    /// How long runs have saved states themselves since the last checkpoint.
    took: Duration,
}

impl Background {
    pub(super) fn start(engine: &Arc<Engine>) -> io::Result<()> {
        let shared = &engine.background.0;
        let this = std::process::id();
        if shared.lock().started.replace(this) == Some(this) {
            return Ok(());
        }
        let (of_thread, weak) = (Arc::clone(shared), Arc::downgrade(engine));
        let policy = engine.policy;
        let started = std::thread::Builder::new()
            .name("sde-checkpoint".to_owned())
            .spawn(move || of_thread.work(&weak, policy));
        if started.is_err() {
            shared.lock().started = None;
        }
        started.map(drop)
    }

    /// Takes note of the time that a run has taken to save a state of its own.
    pub(super) fn took(&self, time: Duration) {
        self.0.lock().took += time;
    }

    pub(super) fn want(&self) {
        self.0.lock().wanted = true;
        self.0.changed.notify_one();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.lock().stopped = true;
        self.0.changed.notify_one();
    }
}

impl SaveRequests {
    fn lock(&self) -> MutexGuard<'_, RequestState> {
        lock(&self.state)
    }

    fn work(&self, engine: &Weak<Engine>, policy: SavePolicy) {
        let mut last_took = Duration::ZERO;
        while self.wait(pause(policy, last_took)) {
            let Some(engine) = engine.upgrade() else {
                return;
            };
            let start = Instant::now();
            engine.checkpoint_or_warn("in the background");
            last_took = start.elapsed() + std::mem::take(&mut self.lock().took);
        }
    }

    /// Waits until there is something to do; says whether there is still an engine.
    fn wait(&self, interval: Option<Duration>) -> bool {
        let until = interval.and_then(|interval| Instant::now().checked_add(interval));
        let mut state = self.lock();
        loop {
            if state.stopped {
                return false;
            }
            let is_due = until.is_some_and(|until| Instant::now() >= until);
            if std::mem::take(&mut state.wanted) || is_due {
                return true;
            }
            state = wait_until(&self.changed, state, until);
        }
    }
}

/// How long to wait before the next checkpoint, if the policy makes them unasked.
pub(super) fn pause(policy: SavePolicy, last_took: Duration) -> Option<Duration> {
    match policy {
        SavePolicy::Interval(interval) => Some(interval),
        SavePolicy::InBackground => Some((10 * last_took).max(Duration::from_secs(2))),
        SavePolicy::Never | SavePolicy::OnRequest | SavePolicy::EveryResult => None,
    }
}

impl Engine {
    /// A checkpoint whose caller can't be told of an error.
    pub(super) fn checkpoint_or_warn(&self, when: &str) {
        if self.archiver().is_none() {
            return;
        }
        // The thread goes on: a value's destructor may panic.
        let save = || self.save(Selection::Checkpoint, false);
        let why = match catch_unwind(AssertUnwindSafe(save)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("{error:#}"),
            Err(panic) => format!("it panicked: {}", panic_message(&*panic)),
        };
        self.warn(|| format!("a checkpoint {when} failed: {why}; the next one tries again"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_in_the_background_take_a_tenth_of_the_time() {
        let after = |took| pause(SavePolicy::InBackground, Duration::from_millis(took));
        assert_eq!(after(0), Some(Duration::from_secs(2)));
        assert_eq!(after(200), Some(Duration::from_secs(2)));
        assert_eq!(after(30_000), Some(Duration::from_secs(300)));
        assert_eq!(pause(SavePolicy::OnRequest, Duration::ZERO), None);
    }
}
