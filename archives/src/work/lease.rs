//! The file by which other processes know that this one lives.
//!
//! The process holds a POSIX lock on it: a forked child does not inherit that, and the system releases it however
//! the process ends. But closing the file releases it too, by any name and handle of the process. So a process
//! never closes its own lease: one opened by mistake is [kept](file::keep_if_own) open.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::format::id::UniqueId;
use crate::vfs::Permissions;

use super::beat::Beat;
use super::file::{self, EXTENSION, FileId, Locked, this, try_lock};
use super::heed::Heed;

/// The lease of this process, until it is dropped.
pub(super) struct Lease {
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    /// The process that made it: after a fork two have it open.
    process: u32,
    pub(super) beat: Arc<Beat>,
}

impl Lease {
    /// Makes the lease, and its folder.
    pub(super) fn begin(dir: &Path, id_of_lease: UniqueId, heed: &Arc<Heed>) -> io::Result<Self> {
        match Permissions::beside(dir)?.make_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ if fs::symlink_metadata(dir)?.is_dir() => {}
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
        let path = dir.join(format!("{id_of_lease}{EXTENSION}"));
        // Who looks whether this process lives takes a lock on it, for which it must be open for writing.
        let mut file = Permissions::beside(&path)?.create_shared(&path)?;
        let id = file::id(&file.metadata()?);
        file::is_begun(id);
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
        file::is_over(self.id);
        // A later lease of this process has the same name.
        if self.is_of_this_process() && file::id_of(&self.path).ok() == Some(self.id) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
