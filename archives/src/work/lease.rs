//! The file by which other processes know that this one lives.
//!
//! The process holds a POSIX lock on it: a forked child does not inherit that, and the system releases it however
//! the process ends. But closing the file releases it too, by any name and handle of the process. So a process
//! never closes its own lease: one opened by mistake is [kept](keep_if_own) open.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;

use crate::format::about::About;
use crate::format::id::UniqueId;
use crate::locks::{lock, wait_timeout};

/// A file's device and inode number, whatever its name.
pub(super) type FileId = (u64, u64);

/// The lease of this process, until it is dropped.
pub(super) struct Lease {
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    /// The process that made it: after a fork two have it open.
    process: u32,
    file: Arc<File>,
    renewal: Arc<Renewal>,
}

/// A lease of this process, with further handles that must stay open.
struct OwnLease {
    id: FileId,
    process: u32,
    kept: Vec<File>,
}

static OWN: Mutex<Vec<OwnLease>> = Mutex::new(Vec::new());

/// The renewal of the lease.
#[derive(Default)]
struct Renewal {
    state: Mutex<RenewalState>,
    changed: Condvar,
}

#[derive(Default)]
struct RenewalState {
    /// The number of announcements.
    announced: usize,
    has_thread: bool,
    /// The time of the last renewal, by this process's clock and the file system's.
    renewed: Option<(Instant, SystemTime)>,
}

/// A guard that keeps the lease renewed.
pub(super) struct Renewed(Arc<Renewal>);

impl Drop for Renewed {
    fn drop(&mut self) {
        lock(&self.0.state).announced -= 1;
    }
}

impl Lease {
    /// Makes the lease, and its folder.
    pub(super) fn begin(dir: &Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ if fs::symlink_metadata(dir)?.is_dir() => {}
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
        let path = dir.join(format!("{}.lease", UniqueId::new()));
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
            file: Arc::new(file),
            renewal: Arc::default(),
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
        let (at, time) = self.renewal.renew(&self.file, duration / 3)?;
        Ok(time + at.elapsed())
    }

    /// Renews the lease for as long as the guard lives.
    pub(super) fn renew(&self, duration: Duration) -> io::Result<Renewed> {
        let every = duration / 3;
        self.renewal.renew(&self.file, every)?;
        let mut state = lock(&self.renewal.state);
        state.announced += 1;
        if !state.has_thread {
            let (file, renewal) = (Arc::clone(&self.file), Arc::clone(&self.renewal));
            let thread = std::thread::Builder::new().name("sde-lease".to_owned());
            let work = move || renewal.work(&file, every);
            // Without the thread others may take over work that takes longer than a lease.
            state.has_thread = thread.spawn(work).is_ok();
        }
        Ok(Renewed(Arc::clone(&self.renewal)))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.changed.notify_all();
        lock(&OWN).retain(|own| own.id != self.id);
        if self.is_of_this_process() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Renewal {
    /// Renews the lease if it is due; gives the time of the last renewal.
    fn renew(&self, file: &File, every: Duration) -> io::Result<(Instant, SystemTime)> {
        if let Some(renewed) = lock(&self.state).renewed
            && renewed.0.elapsed() < every
        {
            return Ok(renewed);
        }
        let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let now = Timestamps {
            last_access: time(UTIME_OMIT),
            last_modification: time(UTIME_NOW),
        };
        rustix::fs::futimens(file, &now)?;
        let renewed = (Instant::now(), file.metadata()?.modified()?);
        lock(&self.state).renewed = Some(renewed);
        Ok(renewed)
    }

    /// The thread's work, while anything is announced.
    fn work(&self, file: &File, every: Duration) {
        let mut state = lock(&self.state);
        loop {
            state = wait_timeout(&self.changed, state, every).0;
            if state.announced == 0 {
                state.has_thread = false;
                return;
            }
            drop(state);
            // If renewing fails, others take over in the end.
            let _ = self.renew(file, every / 2);
            state = lock(&self.state);
        }
    }
}

/// The text of a lease: this machine's name, the process's number, and an id of the machine.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_renewed_as_long_as_anything_is_announced() {
        let dir = tempfile::tempdir().unwrap();
        let lease = Lease::begin(dir.path()).unwrap();
        let announced = || lock(&lease.renewal.state).announced;
        let renewed = [(), ()].map(|()| lease.renew(Duration::from_secs(30)).unwrap());
        assert_eq!(announced(), 2);
        drop(renewed);
        assert_eq!(announced(), 0);
    }
}
