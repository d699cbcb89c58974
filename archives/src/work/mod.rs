//! Announcements: processes that use a store tell one another which runs they are computing.
//!
//! Each process has a [lease](lease): a file in the store's folder `work` with its name. It is locked while the
//! process lives, and its time of writing is renewed while anything is announced. To announce a key, the process
//! links the lease under the key's digits. So announcing is one system call, which fails if another process was
//! first, and the announcement is the [file](other) that tells whether its holder lives.
//!
//! People [see](present) who is at what, and [tell](request) processes to stop. While anything is announced, or a sweep
//! goes on, a thread [looks](heed) for that at each [beat].
//!
//! Correctness does not depend on this. Without hard links nothing is announced; without locks, or for a holder on
//! another machine, the renewal alone decides.

mod beat;
mod file;
mod heed;
mod lease;
mod other;
mod present;
pub(crate) mod process;
mod request;
#[cfg(test)]
mod tests;
mod text;
mod watch;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::Key;
use sde::archiver::{Announced, Holder, StopListener};

use crate::format::directory::FORMAT;
use crate::format::id::UniqueId;
use crate::locks::{MutexGuard, lock};

use beat::AtWork;
use heed::Heed;
use lease::Lease;
use other::HolderState;
pub(crate) use present::{cancel_stop, processes, remove_if_over, tell_to_stop};
use watch::{Changed, Watch};

/// The folder of announcements.
pub(crate) const FOLDER: &str = "work";

/// A process that has not renewed its lease for this long is taken for dead or stopped.
const LEASE: Duration = Duration::from_secs(30);

/// The number of tries to announce while others announce and end.
const TRIES: usize = 8;

/// The announcements of a store.
pub(crate) struct Work {
    dir: PathBuf,
    /// Without this file the store is gone, and nothing must be made in its place.
    format: PathBuf,
    duration: Duration,
    /// This process's lease, once it has announced or asked for something.
    lease: Mutex<Option<Arc<Lease>>>,
    /// The id of this process's leases here, and the process: after a fork the child has another.
    id: Mutex<(u32, UniqueId)>,
    heed: Arc<Heed>,
    watch: Arc<Watch>,
    /// Whether it was logged that announcing does not work.
    is_told: AtomicBool,
}

/// A key that this process has announced.
struct Announcement {
    path: PathBuf,
    lease: Arc<Lease>,
    _at_work: AtWork,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // Another process may have taken it over, or this is a forked child.
        if self.lease.is_of_this_process() && file::id_of(&self.path).ok() == Some(self.lease.id) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Work {
    /// The announcements of the store in this directory.
    pub(crate) fn new(store: &Path) -> Self {
        Self {
            dir: store.join(FOLDER),
            format: store.join(FORMAT),
            duration: LEASE,
            lease: Mutex::default(),
            id: Mutex::new((std::process::id(), UniqueId::new())),
            heed: Arc::new(Heed::new(store)),
            watch: Arc::default(),
            is_told: AtomicBool::new(false),
        }
    }

    /// Announces that this process computes a key of an app, unless another does.
    pub(crate) fn announce(&self, app: &str, key: &Key) -> Announced {
        self.try_announce(app, key).unwrap_or_else(|error| {
            self.tell_once(&error);
            Announced::Unsupported
        })
    }

    /// Makes this process known as one that is at work, until the guard is dropped.
    pub(crate) fn attend(&self) -> Option<Box<dyn Send + Sync>> {
        let attended = self.lease().and_then(|lease| {
            let at_work = lease.beat.begin(None, self.duration)?;
            // Dropped first: the last guard ends the thread.
            Ok(Box::new((at_work, lease)) as Box<dyn Send + Sync>)
        });
        attended.inspect_err(|error| self.tell_once(error)).ok()
    }

    /// Tells this function of requests to stop, from now on and while this process is at work.
    pub(crate) fn heed(&self, listener: StopListener) {
        self.heed.listen(listener);
    }

    fn tell_once(&self, error: &io::Error) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let dir = self.dir.display();
            tracing::debug!(target: "sde", "nothing is announced in {dir}: {error}");
        }
    }

    /// The live process that has announced a key.
    pub(crate) fn announced_by(&self, key: &Key) -> Option<Holder> {
        let path = self.path(key);
        // Mostly there is none; then no lease is made.
        file::id_of(&path).ok()?;
        match self.look(&path).ok()? {
            HolderState::Alive(holder) => Some(holder),
            HolderState::Nothing | HolderState::Dead(_) => None,
        }
    }

    /// Calls `changed` when the announcement of a key is removed, until the value is dropped; `None` where the
    /// kernel can't watch.
    pub(crate) fn watch(&self, key: &Key, changed: Changed) -> Option<Box<dyn Send + Sync>> {
        let begun = self.watch.begin(&self.dir, key.to_string(), changed);
        let waiting = begun.inspect_err(|error| {
            tracing::debug!(target: "sde", "{} is not watched: {error}", self.dir.display());
        });
        waiting
            .ok()
            .map(|waiting| Box::new(waiting) as Box<dyn Send + Sync>)
    }

    /// Removes the announcements and leases of dead processes.
    pub(crate) fn clean(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if let Ok(HolderState::Dead(dead)) = self.look(&path) {
                dead.remove(&path);
            }
        }
        if let Some(store) = self.dir.parent() {
            remove_if_over(store);
        }
    }

    fn try_announce(&self, app: &str, key: &Key) -> io::Result<Announced> {
        let path = self.path(key);
        for _ in 0..TRIES {
            let lease = self.lease()?;
            let at_work = lease.beat.begin(Some((key, app)), self.duration)?;
            match fs::hard_link(&lease.path, &path) {
                Ok(()) => {
                    return Ok(Announced::Mine(Box::new(Announcement {
                        path,
                        lease,
                        _at_work: at_work,
                    })));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => match self.look(&path)? {
                    HolderState::Alive(holder) => return Ok(Announced::Others(holder)),
                    HolderState::Dead(dead) => dead.remove(&path),
                    HolderState::Nothing => {}
                },
                // The lease or the folder was removed.
                Err(error) if error.kind() == ErrorKind::NotFound => *self.own() = None,
                Err(error) => return Err(error),
            }
        }
        Ok(Announced::Unsupported)
    }

    fn look(&self, path: &Path) -> io::Result<HolderState> {
        // Another's lease is judged by the file system's time, which this process reads from its own lease.
        let now = || self.lease()?.now(self.duration);
        other::look(path, self.duration, now)
    }

    /// The lease of this process.
    fn lease(&self) -> io::Result<Arc<Lease>> {
        let mut own = self.own();
        match &*own {
            Some(lease) if lease.is_of_this_process() => Ok(Arc::clone(lease)),
            _ => {
                fs::symlink_metadata(&self.format)?;
                let lease = Arc::new(Lease::begin(&self.dir, self.id(), &self.heed)?);
                *own = Some(Arc::clone(&lease));
                Ok(lease)
            }
        }
    }

    fn id(&self) -> UniqueId {
        let (mut id, process) = (lock(&self.id), std::process::id());
        if id.0 != process {
            *id = (process, UniqueId::new());
        }
        id.1
    }

    fn own(&self) -> MutexGuard<'_, Option<Arc<Lease>>> {
        lock(&self.lease)
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.dir.join(key.to_string())
    }
}
