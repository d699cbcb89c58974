//! Setting up an engine.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};

use super::background::Background;
use super::known::Known;
use super::sde::Sde;
#[cfg(unix)]
use super::signals;
use super::{Engine, app_store, invalidate};
use crate::cache::CacheTable;
use crate::checkpoint::{Archiver, Pending, SavePolicy};
use crate::error::{ArchiveError, Error, ErrorKind};
use crate::event::Observer;
use crate::parallel::Helpers;
use crate::process_group::ProcessGroup;
use crate::process_set::Sets;
use crate::result_map::Wire;

/// Sets up a [`Sde`]; made by [`Sde::builder`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    observers: Vec<Box<dyn Observer>>,
    archiver: Option<Arc<dyn Archiver>>,
    policy: SavePolicy,
    #[cfg(unix)]
    signals: bool,
    threads: Option<usize>,
    rayon_patience: Duration,
    max_depth: usize,
    memory_limits: HashMap<String, usize>,
    process_group: Option<(Box<dyn ProcessGroup>, Arc<dyn Wire>)>,
    rank_patience: Duration,
}

/// A level takes 3.7 KiB of the stack as released and 7.7 KiB without optimization,
/// and what the body has: on a thread with 2 MiB, as Rust starts them, 8 KiB are left
/// for each body at the worst.
const MAX_DEPTH: usize = 128;

impl Default for Builder {
    fn default() -> Self {
        Self {
            observers: Vec::new(),
            archiver: None,
            policy: SavePolicy::OnRequest,
            #[cfg(unix)]
            signals: false,
            threads: None,
            rayon_patience: Duration::from_millis(100),
            max_depth: MAX_DEPTH,
            memory_limits: HashMap::new(),
            process_group: None,
            rank_patience: Duration::from_secs(60),
        }
    }
}

impl Builder {
    /// Has an observer told of every event.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Looks up in this store what is not in memory, and saves there.
    pub fn store(mut self, archiver: impl Archiver + 'static) -> Self {
        self.archiver = Some(Arc::new(archiver));
        self
    }

    /// Says when results are saved without being asked for.
    pub fn save(mut self, policy: SavePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Has a checkpoint made when the process gets SIGUSR1, after which it goes on, or
    /// SIGTERM, after which it ends as it would have without this. Batch systems send
    /// such a signal some time before they kill a job.
    ///
    /// A thread makes the checkpoint; runs go on meanwhile. A second SIGTERM ends the process at
    /// once. A failure is a warning event. The handlers stay for the life of the process;
    /// a program that has its own for these signals does better to call
    /// [`checkpoint`](Sde::checkpoint) itself.
    #[cfg(unix)]
    pub fn checkpoint_on_signals(mut self) -> Self {
        self.signals = true;
        self
    }

    /// How many threads [`par_map`](crate::Handle::par_map) and
    /// [`join`](crate::Handle::join) use, the calling one among them. The default
    /// is the number of cores. Results do not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// How long one of rayon's workers waits for another run before it computes
    /// the result too; 100 ms if nothing is said.
    ///
    /// Rayon's workers steal work while they wait, and what is waited for may be
    /// suspended below on the same stack, where the engine can't see it. Other
    /// threads, those of `par_map` and `join` among them, wait without bound.
    pub fn rayon_patience(mut self, patience: Duration) -> Self {
        self.rayon_patience = patience;
        self
    }

    /// How many runs may be in progress beneath one another, an app calling an app
    /// calling an app; 128 if nothing is said. One more is an error,
    /// [`ErrorKind::TooDeep`], where the stack could overflow, which ends a program.
    ///
    /// A level takes about 4 KiB of the thread's stack (8 KiB without optimization)
    /// beside what the body itself takes. A thread of 2 MiB, as Rust starts them,
    /// holds the default; for more, give the thread more.
    pub fn max_depth(mut self, runs: usize) -> Self {
        self.max_depth = runs.max(1);
        self
    }

    /// How many bytes of memory the remembered values of an app may take. When they take more, those
    /// that were used longest ago are dropped, but for what somebody else holds, until seven eighths
    /// of that are left. Computing them again, or reading them from the store, gives them back.
    ///
    /// Sizes are those that [`ResultSpec::sized`](crate::ResultSpec::sized) tells. What is not saved
    /// yet is held by the list of what is to be saved until then. The values of distributed apps
    /// stay. Costs a look at every entry of the app each time that the limit is passed.
    ///
    /// ```
    /// use sde::Sde;
    ///
    /// #[sde::app]
    /// fn zeros(length: usize) -> Vec<f64> {
    ///     vec![0.0; length]
    /// }
    ///
    /// let sde = Sde::builder().memory_limit("zeros", 100_000).build()?;
    /// for length in 1_000..1_100 {
    ///     zeros.call(&sde, length)?;
    /// }
    /// assert!(sde.stats().total.evicted > 80);
    /// # Ok::<(), sde::Error>(())
    /// ```
    pub fn memory_limit(mut self, app: impl Into<String>, bytes: usize) -> Self {
        self.memory_limits.insert(app.into(), bytes);
        self
    }

    /// Runs the program on these ranks; the calling thread is the one that may do things together
    /// with other ranks. `wire` says how values are written for them: `sde_archives::Cbor`.
    ///
    /// Without this the program runs on one process, and all that is collective is done alone.
    pub fn process_group(
        mut self,
        group: impl ProcessGroup + 'static,
        wire: impl Wire + 'static,
    ) -> Self {
        self.process_group = Some((Box::new(group), Arc::new(wire)));
        self
    }

    /// How long a rank waits for others before a [`Warning`](crate::Event::Warning) names those
    /// that are late; a minute if nothing is said. It goes on waiting.
    pub fn rank_patience(mut self, patience: Duration) -> Self {
        self.rank_patience = patience;
        self
    }

    /// Makes the engine.
    ///
    /// # Errors
    /// If the store can't be read. If the policy is an interval, or signals are to be listened
    /// to, and the system gives no thread for it; if the interval is no time at all.
    pub fn build(self) -> Result<Sde, Error> {
        if self.policy == SavePolicy::Interval(Duration::ZERO) {
            let why = "an interval of no time would checkpoint without end; give a longer one, or use `SavePolicy::EveryResult`";
            return Err(ErrorKind::SavePolicy { why }.into());
        }
        let threads = self.threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        let marks = invalidate::Marks::default();
        if let Some(archiver) = &self.archiver {
            if archiver.commits_together() && self.process_group.is_none() {
                return Err(no_ranks(&**archiver));
            }
            read_marks(&**archiver, &marks)?;
        }
        #[cfg(unix)]
        let signals = self.signals;
        let (group, wire) = self.process_group.unzip();
        let engine = Engine {
            caches: CacheTable::new(self.memory_limits),
            apps: app_store::AppStore::default(),
            known: Known::linked(),
            epoch: AtomicU64::new(0),
            failure_epoch: AtomicU64::new(0),
            observers: self.observers,
            archiver: RwLock::new(self.archiver),
            policy: self.policy,
            background: Background::default(),
            pending: Pending::default(),
            saving: RwLock::new(()),
            marks,
            process: random_number(),
            runs: AtomicU64::new(0),
            rayon_patience: self.rayon_patience,
            helpers: Helpers::new(threads),
            max_depth: self.max_depth,
            wire,
            sets: Sets::default(),
        };
        let sde = Sde::of(engine, group.map(|group| (group, self.rank_patience)));
        if let SavePolicy::Interval(interval) = self.policy {
            Background::start(sde.engine(), Some(interval)).map_err(no_thread)?;
        }
        #[cfg(unix)]
        if signals {
            signals::listen(sde.engine()).map_err(no_thread)?;
        }
        Ok(sde)
    }
}

/// Nobody would ever commit it.
fn no_ranks(archiver: &dyn Archiver) -> Error {
    let why = "it was opened by ranks together, and the engine knows of none; give it their group with \
               `Builder::process_group`";
    let doing = format!("taking {}", archiver.describe());
    let source = ArchiveError::Other(why.to_owned());
    ErrorKind::Archive { doing, source }.into()
}

pub(super) fn no_thread(error: std::io::Error) -> Error {
    let why = error.to_string();
    ErrorKind::Threads { why }.into()
}

pub(super) fn read_marks(archiver: &dyn Archiver, marks: &invalidate::Marks) -> Result<(), Error> {
    let saved = archiver.marks().map_err(|source| ErrorKind::Archive {
        doing: format!("opening {}", archiver.describe()),
        source,
    })?;
    saved.iter().for_each(|mark| marks.apply(mark));
    Ok(())
}

/// A number that no two engines share, on whatever machine they run. The hasher's
/// keys are random for each thread; time, process and address make up for what
/// they lack.
fn random_number() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    hasher.write_u128(since.unwrap_or_default().as_nanos());
    hasher.write_u32(std::process::id());
    hasher.finish()
}
