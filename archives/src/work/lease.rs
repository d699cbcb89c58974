//! The file by which other processes know that this one lives.
//!
//! The process holds a POSIX lock on it: a forked child does not inherit that, and the system releases it however
//! the process ends. But closing the file releases it too, by any name and handle of the process. So a process
//! never closes its own lease: one opened by mistake is [kept](keep_if_own) open.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::format::about::About;
use crate::format::id::UniqueId;
use crate::locks::lock;

use super::beat::Beat;
use super::heed::Heed;
use super::other;
use super::present::EXTENSION;

/// A file's device and inode number, whatever its name.
pub(super) type FileId = (u64, u64);

/// The lease of this process, until it is dropped.
pub(super) struct Lease {
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    /// The process that made it: after a fork two have it open.
    process: u32,
    pub(super) beat: Arc<Beat>,
}

/// A lease of this process, with further handles that must stay open.
struct OwnLease {
    id: FileId,
    process: u32,
    kept: Vec<File>,
}

static OWN: Mutex<Vec<OwnLease>> = Mutex::new(Vec::new());

impl Lease {
    /// Makes the lease, and its folder.
    pub(super) fn begin(dir: &Path, id_of_lease: UniqueId, heed: &Arc<Heed>) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ if fs::symlink_metadata(dir)?.is_dir() => {}
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
        let path = dir.join(format!("{id_of_lease}{EXTENSION}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let mut file = options.open(&path)?;
        let id = id(&file.metadata()?);
        lock(&OWN).push(OwnLease {
            id,
            process: std::process::id(),
            kept: Vec::new(),
        });
        let lease = |file| Self {
            path,
            id,
            process: std::process::id(),
            beat: Arc::new(Beat::new(file, id_of_lease, Arc::clone(heed))),
        };
        // Locked before it has its text, since an unlocked lease counts as a dead process's.
        let begun = match try_lock(&file) {
            Locked::Taken | Locked::Unsupported => file.write_all(this().as_bytes()),
            Locked::Held => Err(io::ErrorKind::WouldBlock.into()),
        };
        let lease = lease(file);
        begun.map(|()| lease)
    }

    /// Whether this process made it, and not its parent before a fork.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// The file system's time.
    pub(super) fn now(&self, duration: Duration) -> io::Result<SystemTime> {
        let (at, time) = self.beat.renew(duration / 3)?;
        Ok(time + at.elapsed())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.beat.wake();
        lock(&OWN).retain(|own| own.id != self.id);
        // A later lease of this process has the same name.
        if self.is_of_this_process() && other::id_of(&self.path).ok() == Some(self.id) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The first lines of a lease: this machine's name, the process's number, and an id of the machine.
pub(super) fn this() -> String {
    let About { host, process, .. } = About::this();
    format!("{host}\n{process}\n{}\n", machine())
}

/// An id of this machine, drawn at its last start.
pub(super) fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let drawn = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        drawn.map_or_else(|_| About::this().host, |drawn| drawn.trim().to_owned())
    })
}

/// The result of locking a file.
pub(super) enum Locked {
    Taken,
    Held,
    Unsupported,
}

/// Locks a file for this process.
pub(super) fn try_lock(file: &File) -> Locked {
    match rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Locked::Taken,
        Err(Errno::AGAIN | Errno::ACCESS) => Locked::Held,
        Err(_) => Locked::Unsupported,
    }
}

/// Whether a file is a lease of this process.
pub(super) fn is_own(id: FileId) -> bool {
    let process = std::process::id();
    lock(&OWN)
        .iter()
        .any(|own| own.id == id && own.process == process)
}

/// Keeps a file open if it is a lease of this process; gives back any other.
pub(super) fn keep_if_own(file: File, id: FileId) -> Option<File> {
    let process = std::process::id();
    let mut own = lock(&OWN);
    match own
        .iter_mut()
        .find(|own| own.id == id && own.process == process)
    {
        Some(own) => {
            own.kept.push(file);
            None
        }
        None => Some(file),
    }
}

pub(super) fn id(found: &fs::Metadata) -> FileId {
    (found.dev(), found.ino())
}
