//! Saving entries, and reading them back: the seam between the engine and a store.
//!
//! The engine knows nothing of files or formats. It knows what has to be saved:
//! a *checkpoint* is everything needed to go on (results, intermediates, scratch),
//! an *archive* is what is worth keeping (results). An [`Archiver`] makes either
//! durable, and finds entries by key. Entries are immutable and independent of
//! one another, so no moment has to be frozen to save a consistent state.

mod archiver;
mod batch;
mod memory;
mod pending;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::cache::AppStats;

pub use archiver::{
    Announced, Archiver, EncodedSave, Holder, StopListener, StopRequest, StoredEntry, StoredResult,
};
pub use batch::{Batch, Mark, Saved, SavedEntry, SavedResult, SavedScratch, Selection};
pub use memory::MemoryArchiver;
pub(crate) use pending::{Pending, Replaced};

/// Whether processes that use one store at the same time share the work.
///
/// Then a run that takes more than some tens of milliseconds, whose results are to be saved, is announced. Another
/// process that needs it waits for it, or in `par_call` and [`par_map`](crate::Handle::par_map) first does items that
/// nobody is at. The result is written, though not durable yet, before the announcement ends. Nothing rests on that: a
/// process that waits in vain computes.
///
/// ```
/// use std::time::Duration;
/// use sde::{Sde, SharedWork};
///
/// let sde = Sde::builder().shared_work(SharedWork::Within(Duration::from_secs(60))).build()?;
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedWork {
    /// Each process computes the results that are not in the store. The default of a [`Builder`](crate::Builder).
    #[default]
    Off,
    /// A call waits an hour at most for another process. [`for_program`](crate::Builder::for_program) sets
    /// this.
    On,
    /// Processes share the work as with [`On`](Self::On), and this is the longest wait.
    ///
    /// A call waits ten times as long as the longest known run of the app, but 1 s at least, and never longer than
    /// this; where nothing is known of the app, this long. Nested in another run it waits twice the longest run, 1 s
    /// at least, or a tenth of this where nothing is known. A rayon worker waits no longer than
    /// [`rayon_patience`](crate::Builder::rayon_patience).
    Within(Duration),
}

impl SharedWork {
    /// How long a call waits for another process at most; `None` if nothing is shared.
    pub(crate) fn longest_wait(self) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::On => Some(Duration::from_secs(3600)),
            Self::Within(longest) => Some(longest),
        }
    }
}

/// When results are saved without being asked for.
///
/// [`checkpoint`](crate::Sde::checkpoint), [`archive`](crate::Sde::archive) and
/// [`finish`](crate::Sde::finish) save under each of them, and so does what
/// [`checkpoint_on_signals`](crate::Builder::checkpoint_on_signals) asks for. Under all but
/// [`Never`](Self::Never) dropping the last `Sde` saves what is new.
///
/// Where there is a [memory budget](crate::MemoryBudget), entries that are not saved yet are saved before they are
/// evicted, under all but [`Never`](Self::Never).
///
/// ```
/// use sde::archiver::MemoryArchiver;
/// use sde::{SavePolicy, Sde};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let store = MemoryArchiver::new();
/// let sde = Sde::builder().store(store.clone()).save(SavePolicy::EveryResult).build()?;
/// cube.call(&sde, 2.0)?;
/// assert_eq!(store.batches(), 1);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SavePolicy {
    /// Nothing is written that was not asked for, not on dropping the last `Sde` either: for
    /// looking into a store, or for results that are not to be kept.
    Never,
    /// When it is asked for, and at the end: dropping the last `Sde` saves what is new, but only
    /// [`finish`](crate::Sde::finish) can say that this failed.
    OnRequest,
    /// Each entry and each scratch state is checkpointed as soon as it is made: a
    /// run returns only when its result is durable.
    EveryResult,
    /// Another thread checkpoints new results two seconds after the last time, or ten times as long as that took if
    /// that is more. A process that is killed loses the results of the last seconds, and saving takes a tenth of the
    /// time at most. Runs do not wait for it. The default where there is a store to save to.
    InBackground,
    /// Another thread checkpoints new results each time that so much time has passed. Runs do not wait for it. No time
    /// at all is an error of [`build`](crate::Builder::build).
    Interval(Duration),
}

/// The work of one process so far: where the time of a sweep went, and what was spared.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Journal {
    /// The first half of the [`RunId`](crate::record::RunId)s of its computations.
    pub process: u64,
    /// When its engine was built.
    pub started: SystemTime,
    /// The process's rank, and the number of ranks; `None` if it is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<(usize, usize)>,
    /// Counts and times of the runs of each app, by its name.
    #[serde(default)]
    pub apps: BTreeMap<String, AppStats>,
}
