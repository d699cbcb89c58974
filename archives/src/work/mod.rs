//! Who is at what: what the processes that use a store tell one another.
//!
//! Each has a [lease](lease): a file in the folder `work` of the store that says who it is. It is locked as long as the process lives,
//! and its time of writing is renewed while anything is announced. What it announces is a further name of that file: the digits of a
//! key. So announcing is one call of the file system, which fails if another was first, and an announcement is the
//! [file](other) that tells whether its holder lives.
//!
//! Nothing rests on any of this. Where a file system has no further names for files, nothing is announced; where it has no locks, or
//! the holder is on another machine, the lease alone decides.

mod lease;
mod other;
#[cfg(test)]
mod tests;
mod watch;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::{Announced, Holder, Key};

use crate::format::directory::FORMAT;
use crate::locks::{MutexGuard, lock};

use lease::{Lease, Renewed};
use other::HolderState;
use watch::{Changed, Watch};

/// Where announcements are in a store.
const FOLDER: &str = "work";

/// A process that has not renewed its lease for so long is taken for dead, or stopped.
const LEASE: Duration = Duration::from_secs(30);

/// How often announcing is tried if others announce and end meanwhile.
const TRIES: usize = 8;

/// The announcements of a store.
pub(crate) struct Work {
    dir: PathBuf,
    /// Without this file the store is not there any more, and nothing is to be made in its place.
    format: PathBuf,
    duration: Duration,
    /// Of this process, once it has announced or asked for something.
    lease: Mutex<Option<Arc<Lease>>>,
    watch: Arc<Watch>,
    /// Whether it was told that nothing can be announced.
    is_told: AtomicBool,
}

/// A key that this process has announced.
struct Announcement {
    path: PathBuf,
    lease: Arc<Lease>,
    _renewed: Renewed,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // Another may have taken it over, or this is a copy of the process that announced it.
        if self.lease.is_of_this_process() && other::id_of(&self.path).ok() == Some(self.lease.id) {
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
            watch: Arc::default(),
            is_told: AtomicBool::new(false),
        }
    }

    /// Says that this process is at a key, unless another is.
    pub(crate) fn announce(&self, key: &Key) -> Announced {
        self.try_announce(key).unwrap_or_else(|error| {
            if !self.is_told.swap(true, Ordering::Relaxed) {
                let dir = self.dir.display();
                tracing::debug!(target: "sde", "nothing is announced in {dir}: {error}");
            }
            Announced::Unsupported
        })
    }

    /// Who is at a key.
    pub(crate) fn announced_by(&self, key: &Key) -> Option<Holder> {
        let path = self.path(key);
        // Mostly nobody is, and then nothing is made.
        other::id_of(&path).ok()?;
        match self.look(&path).ok()? {
            HolderState::Alive(holder) => Some(holder),
            HolderState::Nothing | HolderState::Dead(_) => None,
        }
    }

    /// Calls `changed` when the announcement of a key is removed, until what this gives is dropped; `None` where the kernel does
    /// not tell.
    pub(crate) fn watch(&self, key: &Key, changed: Changed) -> Option<Box<dyn Send + Sync>> {
        let begun = self.watch.begin(&self.dir, key.to_string(), changed);
        let waiting = begun.inspect_err(|error| {
            tracing::debug!(target: "sde", "{} is not watched: {error}", self.dir.display());
        });
        waiting
            .ok()
            .map(|waiting| Box::new(waiting) as Box<dyn Send + Sync>)
    }

    /// Removes what dead processes have left.
    pub(crate) fn clean(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if let Ok(HolderState::Dead(dead)) = self.look(&path) {
                dead.remove(&path);
            }
        }
    }

    fn try_announce(&self, key: &Key) -> io::Result<Announced> {
        let path = self.path(key);
        for _ in 0..TRIES {
            let lease = self.lease()?;
            let renewed = lease.renew(self.duration)?;
            match fs::hard_link(&lease.path, &path) {
                Ok(()) => {
                    return Ok(Announced::Mine(Box::new(Announcement {
                        path,
                        lease,
                        _renewed: renewed,
                    })));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => match self.look(&path)? {
                    HolderState::Alive(holder) => return Ok(Announced::Others(holder)),
                    HolderState::Dead(dead) => dead.remove(&path),
                    HolderState::Nothing => {}
                },
                // The lease was removed, or the folder.
                Err(error) if error.kind() == ErrorKind::NotFound => *self.own() = None,
                Err(error) => return Err(error),
            }
        }
        Ok(Announced::Unsupported)
    }

    fn look(&self, path: &Path) -> io::Result<HolderState> {
        // The time of the file system, by which another's lease is told, is that of a file of one's own.
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
                let lease = Arc::new(Lease::begin(&self.dir)?);
                *own = Some(Arc::clone(&lease));
                Ok(lease)
            }
        }
    }

    fn own(&self) -> MutexGuard<'_, Option<Arc<Lease>>> {
        lock(&self.lease)
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.dir.join(key.to_string())
    }
}
