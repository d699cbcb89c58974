//! Checkpoints that nobody waits for.
//!
//! A thread of the engine makes them: when an interval is over, when it is asked to, and once when the job's time is
//! nearly up. It holds the engine only while it saves, so that an engine that is dropped ends it.

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
        let at_first = engine.upgrade().and_then(|engine| engine.job.time_left());
        let mut is_near_the_end = false;
        loop {
            let last = match is_near_the_end {
                false => engine.upgrade().and_then(|engine| {
                    let margin = margin(engine.job.whole()?, at_first?, last_took);
                    Some(engine.job.time_left()?.saturating_sub(margin))
                }),
                true => None,
            };
            let Some(why) = self.wait(pause(policy, last_took), last) else {
                return;
            };
            let Some(engine) = engine.upgrade() else {
                return;
            };
            let start = Instant::now();
            engine.checkpoint_or_warn(match why {
                Why::Asked => "in the background",
                Why::NearTheEnd => "before the job's time is up",
            });
            is_near_the_end |= why == Why::NearTheEnd;
            last_took = start.elapsed() + std::mem::take(&mut self.lock().took);
        }
    }

    /// Waits until there is something to do: after the interval, if it is given, and after the time until the `last`
    /// checkpoint of the job. `None` if there is no engine any more.
    fn wait(&self, interval: Option<Duration>, last: Option<Duration>) -> Option<Why> {
        let now = Instant::now();
        let after = |time: Option<Duration>| time.and_then(|time| now.checked_add(time));
        let (interval, last) = (after(interval), after(last));
        let until = [interval, last].into_iter().flatten().min();
        let mut state = self.lock();
        loop {
            let is_due = |at: Option<Instant>| at.is_some_and(|at| Instant::now() >= at);
            if state.stopped {
                return None;
            }
            if is_due(last) {
                return Some(Why::NearTheEnd);
            }
            if std::mem::take(&mut state.wanted) || is_due(interval) {
                return Some(Why::Asked);
            }
            state = wait_until(&self.changed, state, until);
        }
    }
}

/// Why the thread makes a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Why {
    /// An interval is over, or somebody has asked for it.
    Asked,
    NearTheEnd,
}

/// How long before the job's end the last checkpoint begins: a twentieth of the whole time, ten seconds, or twice the time
/// of the checkpoint before, whichever is longest; two minutes at most, and half of the time that was left at first.
fn margin(whole: Duration, at_first: Duration, last_took: Duration) -> Duration {
    let margin = (whole / 20).max(Duration::from_secs(10)).max(2 * last_took);
    margin.min(Duration::from_secs(120)).min(at_first / 2)
}

/// Whether the thread saves before the job's end under a policy. Under another either nothing is saved, or all at once.
pub(super) fn saves_at_the_end(policy: SavePolicy) -> bool {
    match policy {
        SavePolicy::Never | SavePolicy::EveryResult => false,
        SavePolicy::OnRequest | SavePolicy::InBackground | SavePolicy::Interval(_) => true,
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
    fn the_last_checkpoint_leaves_time_for_itself() {
        let seconds = Duration::from_secs;
        let before = |whole, last| margin(seconds(whole), seconds(whole), seconds(last)).as_secs();
        assert_eq!(before(10, 0), 5);
        assert_eq!(before(60, 0), 10);
        assert_eq!(before(600, 0), 30);
        assert_eq!(before(600, 40), 80);
        assert_eq!(before(86_400, 0), 120);
        assert_eq!(before(86_400, 500), 120);
        // A process that was started long before it built its engine.
        assert_eq!(margin(seconds(600), seconds(4), seconds(0)), seconds(2));
    }

    /// It went back to sleep until the interval after it.
    #[test]
    fn the_last_checkpoint_is_made_before_the_next_interval_is_over() {
        let requests = SaveRequests::default();
        let (long, now) = (Some(Duration::from_secs(3600)), Some(Duration::ZERO));
        assert_eq!(requests.wait(long, now), Some(Why::NearTheEnd));
        assert_eq!(requests.wait(now, long), Some(Why::Asked));
        requests.lock().wanted = true;
        assert_eq!(requests.wait(long, None), Some(Why::Asked));
        requests.lock().stopped = true;
        assert_eq!(requests.wait(now, now), None);
    }

    #[test]
    fn checkpoints_in_the_background_take_a_tenth_of_the_time() {
        let after = |took| pause(SavePolicy::InBackground, Duration::from_millis(took));
        assert_eq!(after(0), Some(Duration::from_secs(2)));
        assert_eq!(after(200), Some(Duration::from_secs(2)));
        assert_eq!(after(30_000), Some(Duration::from_secs(300)));
        assert_eq!(pause(SavePolicy::OnRequest, Duration::ZERO), None);
    }
}
