//! The engine, which makes runs.
//!
//! Programs and bodies call [`handle`]; [`run`] is the path of a call. Its steps have files of their own: finding out
//! which app is meant ([`app_store`], [`catalog`]), looking up ([`look`]), claiming and waiting ([`claim`], [`wait`],
//! [`load`], [`share`]). Then come running the body ([`execute`]), making its results known ([`publish`]), saving them
//! ([`save`], [`background`], [`signals`]). [`Sde`] has the calls that only the user may make.

mod admit;
mod announce;
mod app_store;
mod background;
mod builder;
mod catalog;
mod claim;
mod compare;
mod evict;
mod exclusive;
mod execute;
mod failures;
mod gate;
mod handle;
mod invalidate;
mod kept;
mod last_states;
mod load;
mod look;
mod peek;
mod plan;
mod publish;
mod run;
mod run_state;
mod save;
mod save_parts;
mod scratch;
mod sde;
mod share;
#[cfg(unix)]
mod signals;
mod stats;
#[cfg(test)]
mod tests;
mod told;
mod uses;
mod wait;

pub use app_store::Apps;
pub use builder::Builder;
pub(crate) use gate::Gate;
pub use handle::{
    AppSource, CallApp, CallRequest, Called, CalledApp, GoesOn, Handle, Outcome, Peek, PlannedRun,
    Policy, Request, Scratch, Subset, Sweep, Transfer,
};
pub(crate) use handle::{Ended, Loop, Options, led};
pub use invalidate::Invalidated;
pub(crate) use load::entry_of;
pub use plan::Plan;
pub(crate) use publish::{ToSave, Unpublished};
pub(crate) use run_state::{Keyed, Run};
pub use sde::Sde;
#[cfg(unix)]
pub use signals::start_library;
pub use stats::Stats;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, SystemTime};

use sde_last_value::Recent;

use crate::cache::waits::Waits;
use crate::cache::{AppCache, CacheTable, RunFlight};
use crate::checkpoint::{Archiver, Pending, SavePolicy};
use crate::entry::{Entry, PERIODS, epoch_of};
use crate::error::{Error, ErrorKind, panic_message};
use crate::event::{Event, Observer, RunId};
use crate::job::Job;
use crate::key::Key;
use crate::parallel::Helpers;
use crate::ranks::{Sets, not_here};
use crate::result_map::Wire;
use crate::sync::{read, user_code};

/// A run as the waiting graph knows it: its key, and its name for messages.
#[derive(Clone)]
pub(crate) struct Node {
    /// The engine it runs in, by its address.
    engine: usize,
    key: Key,
    app: Arc<str>,
}

impl Node {
    /// `app [short key]`.
    fn label(&self) -> String {
        format!("{} [{}]", self.app, self.key.short())
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.engine == other.engine
    }
}

/// How far long work has come.
#[derive(Clone, Copy, Default)]
pub(crate) struct SoFar {
    pub(crate) done: usize,
    /// How many of these have failed.
    pub(crate) failed: usize,
}

/// The waiting graph of this program, for all engines: a run of one may need a run of another that needs the first.
fn waits() -> &'static Waits<Node, RunFlight> {
    static WAITS: OnceLock<Waits<Node, RunFlight>> = OnceLock::new();
    WAITS.get_or_init(Waits::new)
}

/// The state that all clones of one `Sde` share.
pub(crate) struct Engine {
    pub(crate) caches: CacheTable,
    /// The first cache level, for all apps.
    recent: Recent<look::RecentHit>,
    apps: app_store::AppStore,
    pub(crate) catalog: catalog::AppCatalog,
    /// Raised when a remembered result, or a remembered failure, may no longer be valid; see [`moment`](Self::moment).
    epoch: AtomicU64,
    uses: uses::Uses,
    observers: Vec<Box<dyn Observer>>,
    /// Whether any observer wants to be told of hits.
    hears_hits: bool,
    archiver: RwLock<Option<Arc<dyn Archiver>>>,
    pub(crate) policy: SavePolicy,
    background: background::Background,
    pending: Arc<Pending>,
    invalidations: invalidate::Invalidations,
    compared: compare::Compared,
    /// Whether failures of earlier programs are given in place of runs.
    keeps_failures: bool,
    repeats: failures::Repeats,
    process: u64,
    started: SystemTime,
    /// The rank, and the number of ranks; `None` without other ranks.
    rank: Option<(usize, usize)>,
    runs: AtomicU64,
    /// How many runs there were when saving at the end failed, and a warning said so.
    unsaved: AtomicU64,
    /// How long a rayon worker waits for a flight before it computes too.
    rayon_patience: Duration,
    helpers: Helpers,
    /// How work is shared with other processes; `None` if it is not.
    sharing: Option<share::Sharing>,
    max_depth: usize,
    /// How values are written for other ranks; `None` without a process group.
    wire: Option<Arc<dyn Wire>>,
    pub(crate) sets: Sets,
    /// Whether the latest save before an eviction failed, and a warning said so.
    evictions_fail: AtomicBool,
    /// The apps that runs rest on whose records have left memory.
    forgotten: Mutex<BTreeSet<Arc<str>>>,
    /// The job that the program runs in, as for its time.
    pub(crate) job: Job,
}

impl Engine {
    /// Tells engines apart.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    pub(crate) fn helpers(&self) -> &Helpers {
        &self.helpers
    }

    pub(crate) fn epoch(&self) -> u64 {
        epoch_of(self.moment())
    }

    /// The epoch, and the period in which [uses](uses) are noted once.
    fn moment(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Empties the first level, has each entry checked anew, and failed runs tried again.
    fn raise_epoch(&self) {
        self.epoch.fetch_add(PERIODS, Ordering::AcqRel);
    }

    /// A number that no other engine has.
    pub(crate) fn number(&self) -> u64 {
        self.process
    }

    /// The last computation that was begun.
    fn runs_so_far(&self) -> RunId {
        RunId {
            process: self.process,
            number: self.runs.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn next_run(&self) -> RunId {
        RunId {
            process: self.process,
            number: self.runs.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// Tells the observers, and builds the event only if there are any. A panic of
    /// an observer goes no further: claims are held where events are told.
    fn tell(&self, event: impl FnOnce() -> Event) {
        if self.observers.is_empty() {
            return;
        }
        user_code("an observer");
        let event = event();
        for observer in &self.observers {
            let told = catch_unwind(AssertUnwindSafe(|| observer.observe(&event)));
            if let Err(panic) = told {
                let why = panic_message(&*panic);
                tracing::error!(target: "sde", "an observer panicked: {why}; the event was {event:?}");
            }
        }
    }

    /// Tells how far long work has come.
    pub(crate) fn progress(&self, label: &str, so_far: SoFar, total: usize, nested: bool) {
        self.tell(|| Event::Progress {
            label: Arc::from(label),
            done: so_far.done,
            failed: so_far.failed,
            total,
            nested,
        });
    }

    pub(crate) fn warn(&self, message: impl FnOnce() -> String) {
        let message = message();
        tracing::warn!(target: "sde", "{message}");
        self.tell(|| Event::Warning { message });
    }

    /// The store, which is not to be called with a lock held: it may be one of the user's.
    pub(crate) fn archiver(&self) -> Option<Arc<dyn Archiver>> {
        user_code("a store");
        read(&self.archiver).clone()
    }

    fn store_to(&self, doing: &'static str) -> Result<Arc<dyn Archiver>, Error> {
        let none = || ErrorKind::NoStore { doing }.into();
        self.archiver().ok_or_else(none)
    }

    fn entries(&self) -> impl Iterator<Item = Arc<Entry>> {
        let ordinary = self.caches.all().flat_map(|cache| cache.entries());
        ordinary.chain(self.sets.entries())
    }

    pub(crate) fn wire(&self) -> Result<Arc<dyn Wire>, Error> {
        let none = || not_here("has no process group to send values to".to_owned());
        self.wire.clone().ok_or_else(none)
    }

    pub(crate) fn cache_of(&self, resolved: &crate::app::ResolvedApp) -> &Arc<AppCache> {
        self.caches.get(resolved.type_index, &resolved.name)
    }
}
