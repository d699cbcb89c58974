//! Setting up an engine.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, SystemTime};

use sde_last_value::Recent;

use super::announce::Announcer;
use super::background::{Background, pause, saves_at_the_end};
use super::catalog::AppCatalog;
use super::compare::Compared;
use super::failures::Repeats;
use super::invalidate::Invalidations;
use super::sde::Sde;
use super::share::Sharing;
#[cfg(unix)]
use super::signals;
use super::uses::Uses;
use super::{Engine, app_store};
use crate::cache::{CacheTable, MemoryBudget};
use crate::checkpoint::{Archiver, SavePolicy, SharedWork};
use crate::console::Console;
use crate::entry::PERIODS;
use crate::error::{ArchiveError, Error, ErrorKind};
use crate::event::Observer;
use crate::job::{BadLimit, Job};
use crate::machine;
use crate::parallel::Helpers;
use crate::ranks::ProcessGroup;
use crate::ranks::Sets;
use crate::result_map::Wire;

/// Configures an engine. For a program use `sde::builder(dir)`, which begins with [`for_program`](Self::for_program).
///
/// With a [store](Self::store) an engine saves [in the background](SavePolicy::InBackground) and keeps memory within
/// [half of what there is](MemoryBudget::default), unless [`save`](Self::save) and
/// [`memory_budget`](Self::memory_budget) say something else. A store that can only be read is never saved to unasked
/// ([`SavePolicy::Never`]). Without a store to save to, memory grows with each result. An engine prints nothing and takes
/// no signals.
///
/// ```
/// use sde::{SavePolicy, Sde};
/// use sde::archiver::MemoryArchiver;
///
/// let store = MemoryArchiver::new();
/// let sde = Sde::builder().store(store).save(SavePolicy::OnRequest).threads(2).build()?;
/// # Ok::<(), sde::Error>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    observers: Vec<Box<dyn Observer>>,
    archiver: Option<Arc<dyn Archiver>>,
    /// `None` if it was not said: then it depends on the store.
    policy: Option<SavePolicy>,
    shared_work: SharedWork,
    signals: bool,
    console: Option<Console>,
    threads: Option<usize>,
    rayon_patience: Duration,
    max_depth: usize,
    memory_budget: Option<MemoryBudget>,
    memory_budgets: HashMap<String, MemoryBudget>,
    process_group: Option<(Box<dyn ProcessGroup>, Arc<dyn Wire>)>,
    rank_patience: Duration,
    time: JobTime,
    keeps_failures: bool,
}

/// Where an engine has the time of its job from.
#[derive(Clone, Copy)]
enum JobTime {
    Unlimited,
    OfEnvironment,
    Within(Duration),
}

/// A level takes 3.7 KiB of the stack as released and 7.7 KiB without optimization, beside the body's own: on a thread
/// with 2 MiB, as Rust starts them, 8 KiB are left for each body at the worst.
const MAX_DEPTH: usize = 128;

impl Default for Builder {
    fn default() -> Self {
        Self {
            observers: Vec::new(),
            archiver: None,
            policy: None,
            shared_work: SharedWork::Off,
            signals: false,
            console: None,
            threads: None,
            rayon_patience: Duration::from_millis(100),
            max_depth: MAX_DEPTH,
            memory_budget: None,
            memory_budgets: HashMap::new(),
            process_group: None,
            rank_patience: Duration::from_secs(10),
            time: JobTime::Unlimited,
            keeps_failures: false,
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.archiver.as_ref().map(|store| store.describe());
        f.debug_struct("Builder")
            .field("store", &store)
            .field("policy", &self.policy)
            .field("shared_work", &self.shared_work)
            .field("threads", &self.threads)
            .field("memory_budget", &self.memory_budget)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Adds an observer, which is told of every event.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Looks up results in this store that are not in memory, and saves there, [in the
    /// background](SavePolicy::InBackground) unless [`save`](Self::save) says otherwise.
    pub fn store(mut self, archiver: impl Archiver + 'static) -> Self {
        self.archiver = Some(Arc::new(archiver));
        self
    }

    /// Sets when results are saved without being asked for.
    pub fn save(mut self, policy: SavePolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets whether processes that use the store at the same time share the work, and how long one waits for another.
    /// On several ranks nothing is shared with other processes, nor with [`SavePolicy::Never`].
    pub fn shared_work(mut self, shared: SharedWork) -> Self {
        self.shared_work = shared;
        self
    }

    /// Sets up an engine for a program with a person before it, or a batch system around it. Results are saved [in
    /// the background](SavePolicy::InBackground) and [on signals](Self::checkpoint_on_signals). Work is
    /// [shared](SharedWork::On) with other processes. Memory is kept within [half of what there
    /// is](MemoryBudget::default). The first rank tells on standard error what a person should know. It tells each
    /// [`Warning`](crate::Event::Warning) once, on one line, stores' warnings too, unless a `tracing` subscriber
    /// wants warnings. It tells that a signal has come and new results are saved. It shows a bar for the outermost
    /// work that takes longer than half a second, if standard error is a terminal and the environment has neither
    /// `CI` nor `TERM=dumb`.
    ///
    /// The [time of the job](crate::Handle::time_left) is found when the engine is built, for which the batch system may be
    /// asked.
    ///
    /// [`quiet`](Self::quiet), [`without_progress`](Self::without_progress),
    /// [`without_signals`](Self::without_signals), [`shared_work`](Self::shared_work) and [`save`](Self::save) take
    /// back one thing each. Warnings of a store go to any engine of the process that is not quiet.
    pub fn for_program() -> Self {
        Self {
            console: Some(Console::new()),
            signals: true,
            shared_work: SharedWork::On,
            time: JobTime::OfEnvironment,
            ..Self::default()
        }
    }

    /// Prints nothing: no warnings, no progress.
    pub fn quiet(mut self) -> Self {
        self.console = None;
        self
    }

    /// No bar is drawn.
    pub fn without_progress(mut self) -> Self {
        self.console = self.console.map(Console::without_progress);
        self
    }

    /// Signals do what they do without an engine.
    pub fn without_signals(mut self) -> Self {
        self.signals = false;
        self
    }

    /// Saves a checkpoint when the process gets SIGINT (Ctrl-C), SIGTERM, SIGHUP or SIGUSR1. After SIGUSR1 the
    /// process goes on; after the others it ends as it would have without this. Batch systems send such a signal some
    /// time before they kill a job. Does nothing where there are no such signals.
    ///
    /// A signal that the process ignores (`nohup`), or that the program handles itself when the first engine with signals is built, is left
    /// alone: set your own handlers before. Those that a library sets while it starts, as MPI may, are not the program's own where it was started by
    /// [`start_library`](crate::ranks::start_library). A thread makes the checkpoint; runs go on meanwhile. A second signal that ends the process does so at
    /// once. A failure is a warning event. The handlers stay for the life of the process.
    pub fn checkpoint_on_signals(mut self) -> Self {
        self.signals = true;
        self
    }

    /// Sets the number of threads that [`par_map`](crate::Handle::par_map) and [`join`](crate::Handle::join) use, the
    /// calling one among them; on several ranks, those of each. The default is the number of cores, divided by the
    /// ranks, or the tasks of the launcher, that share a node. Results do not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Limits the time that one of rayon's workers waits for another run before it computes the result too; the
    /// default is 100 ms. It also bounds the waits of all threads that make runs nested in one on a worker.
    ///
    /// Rayon's workers steal work while they wait, and the awaited run may be suspended below on the same stack, where
    /// the engine can't see it. Other threads wait without bound.
    pub fn rayon_patience(mut self, patience: Duration) -> Self {
        self.rayon_patience = patience;
        self
    }

    /// Limits how deep runs may nest, an app calling an app calling an app; the default is 128. One more is an error,
    /// [`ErrorKind::TooDeep`], where the stack could overflow, which ends a program.
    ///
    /// A level takes about 4 KiB of the thread's stack (8 KiB without optimization)
    /// beside what the body itself takes. A thread of 2 MiB, as Rust starts them,
    /// holds the default; for more, give the thread more.
    pub fn max_depth(mut self, runs: usize) -> Self {
        self.max_depth = runs.max(1);
        self
    }

    /// Limits the memory that entries may take, of all apps without a budget [of their own](Self::memory_budget_of).
    /// Without a store, nothing is evicted if no budget is given; with one the default is [half of what there
    /// is](MemoryBudget::default). On several ranks each counts for itself.
    pub fn memory_budget(mut self, budget: MemoryBudget) -> Self {
        self.memory_budget = Some(budget);
        self
    }

    /// The memory budget of one app. If the program has shown no app of that name when the last [`Sde`] goes, a warning
    /// says so. On several ranks all name the same apps, so that all evict the same of their collective results.
    pub fn memory_budget_of(mut self, app: impl Into<String>, budget: MemoryBudget) -> Self {
        self.memory_budgets.insert(app.into(), budget);
        self
    }

    /// Runs the program on these ranks; only the calling thread may make collective calls. `wire` says how values are
    /// written for other ranks: `sde_archives::Cbor`. A part of a split group can be the group too.
    ///
    /// Without this the program runs on one process, and all that is collective is done alone.
    pub fn process_group(
        mut self,
        group: impl Into<Box<dyn ProcessGroup>>,
        wire: impl Wire + 'static,
    ) -> Self {
        self.process_group = Some((group.into(), Arc::new(wire)));
        self
    }

    /// Gives failures of earlier programs in place of runs, where the store has them: of runs whose body returned an
    /// error, and that rest on the same code still. Without this a program makes such a run once more, and tells how many
    /// there were and what they had cost ([`Event::Repeated`](crate::Event::Repeated)).
    ///
    /// The error is an [`ErrorKind::App`] whose cause is the text that was stored, with when and where it was made.
    /// Panics and [transient](crate::Failure::Transient) failures are never given, nor is anything under
    /// [`Policy::Refresh`](crate::Policy::Refresh), nor failures of runs that ranks made together.
    ///
    /// ```
    /// use sde::archiver::MemoryArchiver;
    /// use sde::{Sde, SavePolicy};
    ///
    /// #[sde::app]
    /// fn diverges(x: f64) -> Result<f64, String> {
    ///     Err(format!("no convergence at {x}"))
    /// }
    ///
    /// let store = MemoryArchiver::new();
    /// let program = || Sde::builder().store(store.clone()).save(SavePolicy::OnRequest);
    /// let first = program().build()?;
    /// assert!(diverges.call(&first, 1.0).is_err());
    /// first.finish()?;
    ///
    /// let second = program().keep_failures().build()?;
    /// let error = diverges.call(&second, 1.0).unwrap_err();
    /// assert!(format!("{error:#}").contains("no convergence at 1 (it failed "));
    /// # Ok::<(), sde::Error>(())
    /// ```
    pub fn keep_failures(mut self) -> Self {
        self.keeps_failures = true;
        self
    }

    /// Limits the time that a rank waits for others before a [`Warning`](crate::Event::Warning) names those that are
    /// late; the default is 10 seconds. It goes on waiting, and says so again each time that it has waited twice as
    /// long.
    pub fn rank_patience(mut self, patience: Duration) -> Self {
        self.rank_patience = patience;
        self
    }

    /// Sets how much [time](crate::Handle::time_left) the engine has from when it is built, whatever the environment says. With `Duration::MAX` it
    /// has no limit, and nobody is asked.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sde::{ErrorKind, Sde};
    ///
    /// #[sde::app]
    /// fn square(x: f64) -> f64 {
    ///     x * x
    /// }
    ///
    /// let sde = Sde::builder().time_limit(Duration::ZERO).build()?;
    /// assert_eq!(sde.time_left(), Some(Duration::ZERO));
    /// # Ok::<(), sde::Error>(())
    /// ```
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time = JobTime::Within(limit);
        self
    }

    /// Makes the engine. Collective if it has ranks and a [time limit](Self::time_limit), or is [for a
    /// program](Self::for_program): the ranks agree on when the job ends, the first of their ends.
    ///
    /// # Errors
    /// If the environment's time limit can't be read. If the store can't be read. If another thread is to save, or signals are to be listened
    /// to, and the system gives no thread for it; if the interval is no time at all.
    pub fn build(self) -> Result<Sde, Error> {
        let has_store = self.archiver.is_some();
        let saves = self
            .archiver
            .as_ref()
            .is_some_and(|store| !store.is_read_only());
        let policy = self.policy.unwrap_or(match (has_store, saves) {
            (_, true) => SavePolicy::InBackground,
            (true, false) => SavePolicy::Never,
            (false, false) => SavePolicy::OnRequest,
        });
        if policy == SavePolicy::Interval(Duration::ZERO) {
            return Err(Error::refused(
                "the save policy",
                "an interval of no time would checkpoint without end; give a longer one, or use `SavePolicy::EveryResult`",
            ));
        }
        let ranks_here = ranks_here(self.process_group.as_ref().map(|(group, _)| &**group));
        let threads = self.threads;
        let threads = threads.unwrap_or_else(|| machine::cores_of_one_of(ranks_here));
        let has_ranks = self.process_group.is_some();
        let invalidations = match &self.archiver {
            Some(archiver) => read_invalidations(&**archiver, has_ranks)?,
            None => Invalidations::default(),
        };
        let (group, wire) = self.process_group.unzip();
        let is_alone = group.as_ref().is_none_or(|group| group.size() == 1);
        let rank = group.as_ref().map(|group| (group.rank(), group.size()));
        let rank = rank.filter(|_| !is_alone);
        let longest_wait = self.shared_work.longest_wait();
        let longest_wait = longest_wait.filter(|_| is_alone && policy != SavePolicy::Never);
        let is_first = rank.is_none_or(|(rank, _)| rank == 0);
        let time = match self.time {
            JobTime::Unlimited => Ok((Job::ending_in(None), None)),
            JobTime::Within(limit) => Ok((Job::ending_in(Some(limit)), None)),
            JobTime::OfEnvironment => Job::of_environment(is_first)
                .map_err(|bad| Error::refused(bad.what(), BadLimit::INSTEAD)),
        };
        let agrees_on_time = !is_alone && !matches!(self.time, JobTime::Unlimited);
        // All ranks get the error of one, where they agree.
        let (job, unknown_time, time_read) = match time {
            Ok((job, warning)) => (job, warning, Ok(())),
            Err(error) if agrees_on_time => (Job::ending_in(None), None, Err(error)),
            Err(error) => return Err(error),
        };
        tracing::info!(
            target: "sde",
            threads,
            rank = rank.map_or(0, |(rank, _)| rank),
            ranks = rank.map_or(1, |(_, ranks)| ranks),
            "begins, with {}",
            self.archiver.as_ref().map_or("no store".to_owned(), |archiver| archiver.describe()),
        );
        let memory = machine::memory_of_one_of(ranks_here);
        let memory_budget = self.memory_budget.unwrap_or_else(|| {
            if saves {
                MemoryBudget::default()
            } else {
                MemoryBudget::unlimited()
            }
        });
        let memory_budget = memory_budget.of_machine(memory);
        let memory_budgets = self.memory_budgets.into_iter();
        let memory_budgets = memory_budgets.map(|(app, budget)| (app, budget.of_machine(memory)));
        let mut observers = self.observers;
        if let Some(console) = self.console.filter(|_| is_first) {
            console.begin();
            observers.push(Box::new(console));
        }
        // Entries are made in period 0, so the first use of one in any other period is noted.
        let counts_uses = has_store && policy != SavePolicy::Never;
        let engine = Engine {
            caches: CacheTable::new(memory_budget, memory_budgets.collect()),
            recent: Recent::new(),
            apps: app_store::AppStore::default(),
            catalog: AppCatalog::linked(),
            epoch: AtomicU64::new(PERIODS + u64::from(counts_uses)),
            uses: Uses::new(counts_uses),
            hears_hits: observers.iter().any(|observer| observer.hears_hits()),
            observers,
            archiver: RwLock::new(self.archiver),
            policy,
            background: Background::default(),
            pending: Arc::default(),
            invalidations,
            keeps_failures: self.keeps_failures,
            repeats: Repeats::default(),
            process: random_number(),
            started: machine::now(),
            rank,
            runs: AtomicU64::new(0),
            unsaved: AtomicU64::new(u64::MAX),
            rayon_patience: self.rayon_patience,
            helpers: Helpers::new(threads),
            sharing: longest_wait.map(|longest_wait| Sharing {
                longest_wait,
                announcer: Announcer::default(),
            }),
            max_depth: self.max_depth,
            wire,
            sets: Sets::default(),
            evictions_fail: AtomicBool::new(false),
            forgotten: Mutex::default(),
            compared: Compared::default(),
            job,
        };
        let sde = Sde::of(engine, group.map(|group| (group, self.rank_patience)));
        if let Some(ranks) = sde.shared_ranks().filter(|_| agrees_on_time) {
            sde.engine().agree_on_end(ranks, time_read)?;
        }
        if let Some(warning) = unknown_time {
            sde.engine().warn(|| warning);
        }
        if let Some(archiver) = sde.engine().archiver() {
            sde.engine().heed(&*archiver);
        }
        let saves_at_the_end = saves && saves_at_the_end(policy);
        let saves_at_the_end = saves_at_the_end && sde.engine().job.time_left().is_some();
        if saves_at_the_end || pause(policy, Duration::ZERO).is_some() {
            Background::start(sde.engine()).map_err(no_thread)?;
        }
        #[cfg(unix)]
        if self.signals {
            signals::listen(sde.engine()).map_err(no_thread)?;
        }
        Ok(sde)
    }
}

/// How many ranks are on the machine of this one.
fn ranks_here(group: Option<&dyn ProcessGroup>) -> usize {
    let nodes = group.map_or_else(Vec::new, |group| group.nodes());
    let here = group.and_then(|group| nodes.get(group.rank()));
    nodes.iter().filter(|node| Some(*node) == here).count()
}

pub(super) fn no_thread(error: std::io::Error) -> Error {
    let why = format!("{error:#}");
    ErrorKind::Threads { why }.into()
}

/// The marks in a store that is about to be taken. Refuses one that ranks opened together where there are no ranks.
pub(super) fn read_invalidations(
    archiver: &dyn Archiver,
    has_ranks: bool,
) -> Result<Invalidations, Error> {
    // Nobody would ever commit it.
    if !has_ranks && archiver.commits_together() {
        let why = "it was opened by ranks together, and the engine knows of none; give it their group with \
                   `Builder::process_group`";
        let doing = format!("taking {}", archiver.describe());
        let source = ArchiveError::Other(why.to_owned());
        return Err(ErrorKind::Archive { doing, source }.into());
    }
    let invalidations = Invalidations::default();
    let saved = archiver.marks().map_err(|source| ErrorKind::Archive {
        doing: format!("opening {}", archiver.describe()),
        source,
    })?;
    saved.iter().for_each(|mark| invalidations.apply(mark));
    Ok(invalidations)
}

/// A number that no two engines share, on whatever machine they run. The hasher's
/// keys are random for each thread; time and process make up for what they lack.
fn random_number() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    hasher.write_u128(since.unwrap_or_default().as_nanos());
    hasher.write_u32(std::process::id());
    hasher.finish()
}
