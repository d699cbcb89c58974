//! The file of a lease: what is in it, its lock, and which are of this process.
//!
//! Closing the file gives up all locks that the process has on it, so its own files are known, and never closed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::format::about::About;
use crate::locks::lock;

/// The end of a lease's name.
pub(super) const EXTENSION: &str = ".lease";

/// A file's device and inode number, whatever its name.
pub(super) type FileId = (u64, u64);

/// A lease of this process, with further handles that must stay open.
struct OwnLease {
    id: FileId,
    process: u32,
    kept: Vec<File>,
}

static OWN: Mutex<Vec<OwnLease>> = Mutex::new(Vec::new());

/// Notes a lease of this process.
pub(super) fn is_begun(id: FileId) {
    lock(&OWN).push(OwnLease {
        id,
        process: std::process::id(),
        kept: Vec::new(),
    });
}

/// Forgets a lease of this process.
pub(super) fn is_over(id: FileId) {
    lock(&OWN).retain(|own| own.id != id);
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

/// The file with this name.
pub(super) fn id_of(path: &Path) -> io::Result<FileId> {
    Ok(id(&fs::symlink_metadata(path)?))
}
