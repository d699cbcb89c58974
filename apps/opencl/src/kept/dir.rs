//! Binaries in a directory, shared by all processes of a user.
//!
//! The directory is a store of SDE, and an engine of its own runs builds as apps on it. So one process builds while
//! others wait, entries are evicted, uses are counted, and nothing half-written or damaged is loaded, as for any
//! app. The program `sde` reads the store.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::archiver::{Announced, ArchiveError, Archiver, Codec, StoredEntry};
use sde::{
    AppStats, Error, Event, Key, MemoryBudget, Observer, Policy, SavePolicy, Sde, SharedWork,
    Storable,
};
use sde_archives::vfs::{Owner, Vfs};
use sde_archives::{DirStore, Retention, StoreOptions};

use super::Kept;
use super::build::Build;
use super::store::StoreError;
use crate::identity::Descriptor;
use crate::lock::lock;
use crate::settings::Settings;
use crate::stats::Stats;

/// Binaries in a directory, for all processes of a user; see [`Settings`].
///
/// Cloning is cheap, and clones are one store. It must belong to the user who runs the program, and nobody else
/// may write to it: binaries are code. In a group's only those count that the user has kept, or users who are
/// [trusted](sde_archives::trusted).
#[derive(Clone)]
pub struct KernelDir(Arc<Inner>);

struct Inner {
    sde: Sde,
    store: DirStore,
    settings: Settings,
    /// Why it can't be written to, if so.
    only_read: Option<StoreError>,
    counts: Arc<Counts>,
}

impl fmt::Debug for KernelDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelDir({})", self.0.store.describe())
    }
}

/// Counts from the engine's events.
#[derive(Default)]
struct Counts {
    kept: AtomicU64,
    failures: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl KernelDir {
    /// Opens the directory, or makes it. One that can't be written to is only read, and a warning says so.
    ///
    /// # Errors
    /// If the user has no home for the default directory, or the directory can't be read or is no store. If it
    /// belongs to somebody else, or others can write to it or put another in its place.
    pub fn open(settings: Settings) -> Result<Self, StoreError> {
        Self::open_observed(settings, |_: &Event| {})
    }

    /// Opens a directory of binaries, with an observer of the engine's runs: a build is one of the app
    /// `sde_opencl.Build`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_observed(
        settings: Settings,
        observer: impl Observer + 'static,
    ) -> Result<Self, StoreError> {
        let doing = "opening the kernel cache";
        let dir = settings.directory().ok_or_else(|| {
            let why = "there is neither XDG_CACHE_HOME nor HOME; set SDE_KERNEL_CACHE_DIR";
            StoreError::new(doing, why)
        })?;
        let failed = |error: ArchiveError| StoreError::new(doing, error);
        let vfs = &**settings.on();
        let above = check_above(vfs, &dir, settings.trusts_group);
        above.map_err(|error| StoreError::new(doing, error))?;
        if !settings.writes() && vfs.look(&dir).is_ok_and(|found| found.is_none()) {
            let why = format!(
                "there is none in {} yet, and this process only reads",
                dir.display()
            );
            return Err(StoreError::new(doing, why));
        }
        let open = |settings: &Settings| options(settings).open(&dir);
        let (settings, store, only_read) = match open(&settings) {
            Err(why) if settings.writes() && is_of_writing(&why) => {
                let settings = settings.only_read();
                let store = open(&settings).map_err(|_| failed(why.clone()))?;
                let error = StoreError::new("writing to the kernel cache, so it is only read", why);
                sde::warning!("{error:#}");
                (settings, store, Some(error))
            }
            opened => (settings, opened.map_err(failed)?, None),
        };
        let counts = Arc::new(Counts::default());
        let counting = Arc::clone(&counts);
        let policy = match settings.writes() {
            true => SavePolicy::EveryResult,
            false => SavePolicy::Never,
        };
        let sde = Sde::builder()
            .store(store.clone())
            .save(policy)
            .shared_work(SharedWork::Within(settings.patience))
            // Live programs have their own copies.
            .memory_budget_of(Build::NAME, MemoryBudget::bytes(0))
            .observer(move |event: &Event| counting.note(event))
            .observer(observer)
            .build()
            .map_err(|error| StoreError::new(doing, error))?;
        Ok(Self(Arc::new(Inner {
            sde,
            store,
            settings,
            only_read,
            counts,
        })))
    }

    /// The settings it was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The store: its path, and operations beside the builds of this process.
    #[must_use]
    pub fn store(&self) -> &DirStore {
        &self.0.store
    }

    /// The counts of builds: computed, loaded, waited for in another process, and the time spent and saved.
    #[must_use]
    pub fn stats(&self) -> AppStats {
        self.0.sde.stats().total
    }

    /// Saves the uses until now. Dropping the last clone does so too, but a process may be killed before.
    ///
    /// # Errors
    /// If it can't be written.
    pub(crate) fn note_uses(&self) -> Result<(), StoreError> {
        let noted = self.0.sde.checkpoint();
        noted.map_err(|error| StoreError::new("noting what was used of the kernel cache", error))
    }

    /// Why nothing is kept, though the settings ask for it.
    pub(crate) fn only_read(&self) -> Option<&StoreError> {
        self.0.only_read.as_ref()
    }

    /// The number of kept binaries, of failures of the store, and the latest failure.
    pub(crate) fn count(&self, stats: &mut Stats) {
        let counts = &self.0.counts;
        stats.kept = counts.kept.load(Ordering::Relaxed);
        stats.store_failures = counts.failures.load(Ordering::Relaxed);
        let last = lock(&counts.last_failure).clone();
        stats.why_not_kept = last.or(stats.why_not_kept.take());
    }

    /// Loads a program, or makes it with `make` and keeps it. Gives its key, too; `None` if the kept one can't be read.
    pub(crate) fn run(
        &self,
        program: &Descriptor,
        policy: Policy,
        make: impl Fn() -> Result<Kept, crate::Error> + Send + Sync + 'static,
    ) -> Result<Option<(Kept, Key)>, Error> {
        let settings = &self.0.settings;
        let build = Build {
            program: program.clone(),
            make: Box::new(make),
            lengths: settings.min_binary..=settings.max_binary,
            patience: settings.patience,
        };
        let inputs = build.inputs();
        let request = self.0.sde.request(&build, &inputs).names(&Build::RESULTS);
        let outcome = request.policy(policy).run()?;
        match Kept::of(&outcome.results) {
            Ok(kept) => Ok(Some((kept, outcome.key))),
            Err(error) => {
                sde::warning!("a kept binary is built anew: {error:#}");
                Ok(None)
            }
        }
    }

    /// The kernels with finished code in the binary that is kept now, by any process. This does not count as a use.
    pub(crate) fn launched(&self, key: &Key) -> Option<Vec<String>> {
        let store = &self.0.store;
        match store.refresh().and_then(|()| store.look(key)) {
            Ok(entry) => value(&entry?, "launched"),
            Err(error) => {
                sde::warning!("what others kept could not be looked for: {error:#}");
                None
            }
        }
    }

    /// Keeps other processes from building or capturing a program while this lives; `None` if one is doing so.
    pub(crate) fn announce(&self, key: &Key) -> Option<Announced> {
        let announced = self.0.store.announce(Build::NAME, key);
        (!matches!(announced, Announced::Others(_))).then_some(announced)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.sde.finish() {
            sde::warning!("{error:#}");
        }
    }
}

impl Counts {
    fn note(&self, event: &Event) {
        match event {
            Event::Saved { entries, .. } => {
                self.kept.fetch_add(*entries as u64, Ordering::Relaxed);
            }
            Event::Warning { message, .. } => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                *lock(&self.last_failure) = Some(message.to_string());
            }
            _ => {}
        }
    }
}

fn options(settings: &Settings) -> StoreOptions {
    let mut retention = Retention::new().results().order(settings.order);
    if let Some(capacity) = settings.capacity {
        retention = retention.capacity(capacity).max_entry(capacity);
    }
    if let Some(age) = settings.max_age {
        retention = retention.max_age(age);
    }
    let options = StoreOptions::new()
        .retention(retention)
        .without_environment()
        .runs_results()
        // A reader of a replaced file looks again, or builds.
        .grace(Duration::ZERO)
        .vfs(Arc::clone(settings.on()));
    match settings.writes() {
        true => options,
        false => options.read_only(),
    }
}

fn value<T: Storable + Clone>(entry: &StoredEntry, name: &str) -> Option<T> {
    let mut results = entry.results.iter();
    let payload = results
        .find(|result| result.name == name)?
        .payload
        .as_ref()?;
    let value = payload.decode(&Codec::of::<T>()).ok()?;
    value.downcast::<T>().map(|value| T::clone(&value))
}

/// The most links that a path may lead through, as on Linux.
const LINKS: usize = 40;

/// Refuses a path through a directory that others can write to, along its text and each link in it: they could put
/// another store in its place. The store itself is checked when it is opened.
fn check_above(vfs: &dyn Vfs, dir: &Path, trusts_group: bool) -> io::Result<()> {
    let mut path = std::path::absolute(dir)?;
    for _ in 0..LINKS {
        for above in path.ancestors().skip(1) {
            check_owner(vfs, above, dir, trusts_group)?;
        }
        match without_first_link(vfs, &path)? {
            Some(leads_to) => path = leads_to,
            None => return Ok(()),
        }
    }
    let dir = dir.display();
    Err(io::Error::other(format!(
        "{dir} leads through more than {LINKS} links"
    )))
}

/// The path with its first link, from the root on, replaced by its target; `None` if there is no link.
fn without_first_link(vfs: &dyn Vfs, path: &Path) -> io::Result<Option<PathBuf>> {
    let mut there = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        let link = there.join(part);
        if let Some(target) = vfs.link_target(&link)? {
            return Ok(Some(there.join(target).join(parts)));
        }
        there = link;
    }
    Ok(None)
}

fn check_owner(vfs: &dyn Vfs, above: &Path, dir: &Path, trusts_group: bool) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    const ROOT: u32 = 0;
    let Some(Owner { user, mode, .. }) = vfs.look(above)?.and_then(|found| found.owner) else {
        return Ok(());
    };
    let is_ours = user == ROOT || vfs.user().is_none_or(|own| own == user);
    let others = if trusts_group { 0o002 } else { 0o022 };
    if is_ours && (mode & others == 0 || mode & STICKY != 0) {
        return Ok(());
    }
    let (dir, above) = (dir.display(), above.display());
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "others can write to {above}, by which {dir} is found, and what is kept there is code; make it yours alone (`chmod go-w`), name another directory with SDE_KERNEL_CACHE_DIR, or, if its group may run code as you, set SDE_KERNEL_CACHE_TRUST=group"
        ),
    ))
}

/// Whether an error says that the place can't be written to.
fn is_of_writing(error: &ArchiveError) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let (ArchiveError::Open { cause, .. } | ArchiveError::Io { cause, .. }) = error else {
        return false;
    };
    cause.raw_os_error().is_some() && matches!(cause.kind(), PermissionDenied | ReadOnlyFilesystem)
}
