//! The events of an engine, told to its observers.
//!
//! A caller of [`run`](crate::Handle::run) gets a result and can't tell from it
//! whether it was computed, remembered or waited for. Tests, progress bars,
//! reports and people all want to know, and guessing from the time it took is
//! not knowing. So the engine tells [`Observer`]s what it does. With no observer
//! an event costs one branch and is never built.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::error::Error;
use crate::key::Key;
use crate::sync::{MutexGuard, lock};

/// One computation: the process that made it, and its number there.
///
/// Two entries with one key have different run ids if they were computed twice.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub struct RunId {
    /// A random number drawn when the engine was built.
    pub process: u64,
    /// Counts the computations of that engine, from 1.
    pub number: u64,
}

impl RunId {
    /// The computation of this number, of the engine that drew the number `process`.
    #[must_use]
    pub const fn new(process: u64, number: u64) -> Self {
        Self { process, number }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.process, self.number)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Tells how a run got its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The result was in memory. [`AppStats`](crate::AppStats) counts at which level of the cache.
    Memory,
    /// The result was in the store.
    Loaded,
    /// Another run was computing the result, and this call waited.
    Waited,
    /// This call computed the result.
    Computed,
    /// This call computed the result although another was computing it too, since waiting could have hung (see
    /// [`Handle::par_map`](crate::Handle::par_map)).
    Duplicate,
}

impl Source {
    /// For the spans of `tracing`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Loaded => "loaded",
            Self::Waited => "waited",
            Self::Computed => "computed",
            Self::Duplicate => "duplicate",
        }
    }

    /// Whether nothing was computed by this call.
    #[must_use]
    pub fn is_hit(self) -> bool {
        !matches!(self, Self::Computed | Self::Duplicate)
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// An app's body is about to run.
    #[non_exhaustive]
    Started {
        /// The app.
        app: Arc<str>,
        /// The key of the run.
        key: Key,
        /// The process and the number of the computation.
        run: RunId,
    },
    /// A call of `run` has its result.
    #[non_exhaustive]
    Finished {
        /// The app.
        app: Arc<str>,
        /// The key of the run.
        key: Key,
        /// The source of the result.
        source: Source,
        /// The computation that made the result.
        made_by: RunId,
    },
    /// A call of `run` failed.
    #[non_exhaustive]
    Failed {
        /// The app.
        app: Arc<str>,
        /// The key of the run.
        key: Key,
        /// The error.
        error: Error,
    },
    /// A call is about to wait for another: one that computes the same key, or one that
    /// runs an app that is not thread-safe.
    #[non_exhaustive]
    Waiting {
        /// The app.
        app: Arc<str>,
        /// The run it waits for.
        key: Key,
    },
    /// A call is about to wait for another process that computes the same key. It waits
    /// [a bounded time](crate::SharedWork).
    #[non_exhaustive]
    WaitingForProcess {
        /// The app.
        app: Arc<str>,
        /// The run.
        key: Key,
        /// The machine of the other process.
        host: Arc<str>,
        /// The process's number there.
        process: u32,
    },
    /// A run that failed or panicked is taken over by one that waited for it.
    #[non_exhaustive]
    TakenOver {
        /// The app.
        app: Arc<str>,
        /// The run.
        key: Key,
    },
    /// A run that keeps its state in scratch goes on from a state that an earlier one of its
    /// key left, which did not come to its end.
    #[non_exhaustive]
    Resumed {
        /// The app.
        app: Arc<str>,
        /// The run.
        key: Key,
    },
    /// A remembered result can't be used, and is computed again: an app that it called has changed, it was invalidated,
    /// or a part of it is gone.
    #[non_exhaustive]
    Stale {
        /// The app.
        app: Arc<str>,
        /// The run.
        key: Key,
        /// The cause among these, with details.
        why: String,
    },
    /// Runs that failed in an earlier program are made again, though [`keep_failures`](crate::Builder::keep_failures)
    /// would leave them. Told at the first such run, and at the end of the engine if there were more.
    #[non_exhaustive]
    Repeated {
        /// The number of such runs so far.
        runs: u64,
        /// The time that they had taken when they failed.
        took: Duration,
        /// Whether the engine is at its end.
        ended: bool,
    },
    /// An entry has left memory to make room, or its values have.
    #[non_exhaustive]
    Evicted {
        /// The app.
        app: Arc<str>,
        /// The run.
        key: Key,
        /// The bytes that the entry's values took.
        bytes: usize,
        /// The cost of having it again: of reading it if it is in the store, else of computing it.
        cost: Duration,
    },
    /// Entries or scratch were saved.
    #[non_exhaustive]
    Saved {
        /// The kind of save: `checkpoint` or `archive`.
        kind: &'static str,
        /// The number of entries that were written.
        entries: usize,
        /// The number of scratch states that were written.
        scratch: usize,
        /// The time that the save took.
        took: Duration,
    },
    /// The engine met something wrong that does not stop the program: a damaged entry, a save that failed.
    #[non_exhaustive]
    Warning {
        /// The trouble, and what was done about it.
        message: String,
    },
    /// Long work moved on. Threads that do parts of it tell so in any order.
    #[non_exhaustive]
    Progress {
        /// The name of the work.
        label: Arc<str>,
        /// The part of the work that is done.
        done: usize,
        /// The whole of the work.
        total: usize,
        /// Whether it is beside other work that is told of: within `par_map`, `par_each` or `join`, on one of rayon's
        /// workers, or a save that nobody waits for.
        nested: bool,
    },
    /// The process got a signal that the engine was [told](crate::Builder::checkpoint_on_signals) to listen to, and
    /// saves new results.
    #[non_exhaustive]
    Signal {
        /// The signal's name: `SIGTERM`, for example.
        signal: &'static str,
        /// Whether the process ends when all is saved.
        ends: bool,
    },
}

/// Gets every event, on the thread where it happened, with no lock of the engine
/// held. It should return soon: the run waits for it. It may be called from many
/// threads at once.
///
/// If it panics, the others are told all the same, and the run goes on.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use sde::{Event, Sde};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let warnings = Arc::new(AtomicUsize::new(0));
/// let counted = warnings.clone();
/// let observer = move |event: &Event| {
///     if let Event::Warning { .. } = event {
///         counted.fetch_add(1, Ordering::Relaxed);
///     }
/// };
/// let sde = Sde::builder().observer(observer).build()?;
/// cube.call(&sde, 2.0)?;
/// assert_eq!(warnings.load(Ordering::Relaxed), 0);
/// # Ok::<(), sde::Error>(())
/// ```
pub trait Observer: Send + Sync {
    /// Takes note of one event.
    fn observe(&self, event: &Event);

    /// Whether it wants to be told of hits. If no observer does, a hit costs no more than without observers; if one
    /// does, all are told.
    fn hears_hits(&self) -> bool {
        true
    }
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// An observer that keeps the events, for tests and reports.
///
/// ```
/// use sde::{Event, EventLog, Sde, Source};
///
/// #[sde::app]
/// fn double(x: f64) -> f64 {
///     2.0 * x
/// }
///
/// let log = EventLog::new();
/// let sde = Sde::builder().observer(log.clone()).build()?;
/// double.call(&sde, 4.0)?;
/// double.call(&sde, 4.0)?;
/// assert_eq!(log.sources("double"), [Source::Computed, Source::Memory]);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventLog(Arc<Mutex<Vec<Event>>>);

impl EventLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The events so far, in the order they were told.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// The events so far; the log is empty afterwards.
    #[must_use]
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.lock())
    }

    /// Lists how the finished runs of one app got their results, in order.
    #[must_use]
    pub fn sources(&self, of: &str) -> Vec<Source> {
        self.lock()
            .iter()
            .filter_map(|event| match event {
                Event::Finished { app, source, .. } if &**app == of => Some(*source),
                _ => None,
            })
            .collect()
    }

    /// Counts how many times the body of one app was started.
    #[must_use]
    pub fn started(&self, of: &str) -> usize {
        self.lock()
            .iter()
            .filter(|event| matches!(event, Event::Started { app, .. } if &**app == of))
            .count()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        lock(&self.0)
    }
}

impl Observer for EventLog {
    fn observe(&self, event: &Event) {
        self.lock().push(event.clone());
    }
}
