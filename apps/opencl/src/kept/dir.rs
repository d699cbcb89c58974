//! Binaries in a directory, shared by all processes of a user.
//!
//! The directory is a store of SDE, and an engine of its own runs builds as apps on it. So one process builds and the others
//! wait, room is kept, uses are counted and nothing half-written or damaged is seen, as for any app; and the program
//! `sde` reads it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::{
    Announced, AppStats, ArchiveError, Archiver, Codec, Error, Event, Key, Observer, Policy,
    SavePolicy, Sde, SharedWork, Storable, StoredEntry,
};
use sde_archives::vfs::Vfs;
use sde_archives::{DirStore, Options, Retention};

use super::Kept;
use super::build::Build;
use super::store::StoreError;
use crate::identity::Descriptor;
use crate::lock::lock;
use crate::settings::Settings;
use crate::stats::Stats;

/// Binaries in a directory, for all processes of a user; see [`Settings`].
///
/// Cloning is cheap, and clones are one store. It must belong to who runs the program, and nobody else
/// may write to it: binaries are code.
#[derive(Clone)]
pub struct KernelDir(Arc<Inner>);

struct Inner {
    sde: Sde,
    store: DirStore,
    settings: Settings,
    /// Why it can't be written to.
    only_read: Option<StoreError>,
    counts: Arc<Counts>,
}

/// What the engine told.
#[derive(Default)]
struct Counts {
    kept: AtomicU64,
    failures: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl KernelDir {
    /// Opens the directory, or makes it. One that is there and can't be written to is read, and a warning says so.
    ///
    /// # Errors
    /// If there is no directory to be had, something else is in it, it belongs to somebody else or others can write to it
    /// or put another one in its place, or it can't be read.
    pub fn open(settings: Settings) -> Result<Self, StoreError> {
        Self::open_observed(settings, |_: &Event| {})
    }

    /// The same, and tells an observer of the runs that it makes: a build is one of the app `sde_opencl.Build`.
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
                sde::warning!("{error}");
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
            // What is live has its own copy.
            .memory_budget_of(Build::NAME, 0)
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

    /// The store: its path, and what can be done with it beside the builds of this process.
    #[must_use]
    pub fn store(&self) -> &DirStore {
        &self.0.store
    }

    /// What happened to builds: how many were computed and loaded, how often another process was waited for, the time that was
    /// spent and saved.
    #[must_use]
    pub fn stats(&self) -> AppStats {
        self.0.sde.stats().total
    }

    /// Writes down what was used until now, which is done when the last clone is dropped, too: a process may never come
    /// to an end in which that could be done.
    ///
    /// # Errors
    /// If it can't be written.
    pub(crate) fn note_uses(&self) -> Result<(), StoreError> {
        let noted = self.0.sde.checkpoint();
        noted.map_err(|error| StoreError::new("noting what was used of the kernel cache", error))
    }

    /// Why nothing is kept, though the settings that were given would have it.
    pub(crate) fn only_read(&self) -> Option<&StoreError> {
        self.0.only_read.as_ref()
    }

    /// How many binaries were kept, how often the store could not be used, and why not the last time.
    pub(crate) fn count(&self, stats: &mut Stats) {
        let counts = &self.0.counts;
        stats.kept = counts.kept.load(Ordering::Relaxed);
        stats.store_failures = counts.failures.load(Ordering::Relaxed);
        let last = lock(&counts.last_failure).clone();
        stats.why_not_kept = last.or(stats.why_not_kept.take());
    }

    /// Has a program: what is kept, or what `make` gives, which is kept then. Gives under which key, too; nothing if what
    /// is kept can't be read.
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
                sde::warning!("a kept binary is built anew: {error}");
                Ok(None)
            }
        }
    }

    /// For which kernels the binary has finished code that is kept under a key by now, by whatever process. It is no use of it.
    pub(crate) fn launched(&self, key: &Key) -> Option<Vec<String>> {
        let store = &self.0.store;
        match store.refresh().and_then(|()| store.look(key)) {
            Ok(entry) => value(&entry?, "launched"),
            Err(error) => {
                sde::warning!("what others kept could not be looked for: {error}");
                None
            }
        }
    }

    /// Keeps other processes from building or capturing a program for as long as this lives; nothing if one is at it.
    pub(crate) fn announce(&self, key: &Key) -> Option<Announced> {
        let announced = self.0.store.announce(key);
        (!matches!(announced, Announced::Others(_))).then_some(announced)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.sde.finish() {
            sde::warning!("{error}");
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

fn options(settings: &Settings) -> Options {
    let mut retention = Retention::new().results().order(settings.order);
    if let Some(capacity) = settings.capacity {
        retention = retention.max_bytes(capacity).max_entry(capacity);
    }
    if let Some(age) = settings.max_age {
        retention = retention.max_age(age);
    }
    let options = Options::new()
        .retention(retention)
        .without_environment()
        // Who still reads what was replaced looks again, or builds.
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

/// How many links a path may lead through, as on Linux.
const LINKS: usize = 40;

/// Whoever can write to a directory by which this one is found, as its path is written and as each link in it leads on, can put another in
/// its place. The store itself is looked at when it is opened.
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

/// The path with what the link nearest to the root leads to in place of that; nothing if there is none.
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
    let Some((owner, mode)) = vfs.look(above)?.and_then(|found| found.owner) else {
        return Ok(());
    };
    let is_ours = owner == ROOT || vfs.user().is_none_or(|user| user == owner);
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

/// Whether the system says that nothing can be written.
fn is_of_writing(error: &ArchiveError) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let (ArchiveError::Open { source, .. } | ArchiveError::Io { source, .. }) = error else {
        return false;
    };
    source.raw_os_error().is_some()
        && matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem)
}
