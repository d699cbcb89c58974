//! The file by which others know that this process lives.
//!
//! It is locked with a lock that the process owns: a forked child has none, and the system gives it back when the process
//! ends, however it ends. But such a lock is lost too when the process closes the file, by whatever name and handle it was opened. So
//! a file of one's own is never closed: who has opened one in place of another's [keeps](keep_if_own) it.

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

/// Which file it is, whatever its name: device and number.
pub(super) type FileId = (u64, u64);

/// The lease of this process, until it is dropped.
pub(super) struct Lease {
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    /// The process that began it: after a fork two have it open.
    process: u32,
    file: Arc<File>,
    renewal: Arc<Renewal>,
}

/// A lease of this process.
struct OwnLease {
    id: FileId,
    process: u32,
    kept: Vec<File>,
}

static OWN: Mutex<Vec<OwnLease>> = Mutex::new(Vec::new());

/// When the lease is renewed.
#[derive(Default)]
struct Renewal {
    state: Mutex<RenewalState>,
    changed: Condvar,
}

#[derive(Default)]
struct RenewalState {
    /// How many announcements there are.
    announced: usize,
    has_thread: bool,
    /// When it was renewed last, by this process and by the file system.
    renewed: Option<(Instant, SystemTime)>,
}

/// What is announced, as far as the lease is concerned.
pub(super) struct Renewed(Arc<Renewal>);

impl Drop for Renewed {
    fn drop(&mut self) {
        lock(&self.0.state).announced -= 1;
    }
}

impl Lease {
    /// Makes the file, and the folder it is in.
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
        // Before it says who holds it: without that it is nobody's.
        let begun = match try_lock(&file) {
            Locked::Taken | Locked::Unsupported => file.write_all(this().as_bytes()),
            Locked::Held => Err(io::ErrorKind::WouldBlock.into()),
        };
        let lease = lease(file);
        begun.map(|()| lease)
    }

    /// Whether this is the process that began it, and no copy of it.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// The time of the file system.
    pub(super) fn now(&self, duration: Duration) -> io::Result<SystemTime> {
        let (at, time) = self.renewal.renew(&self.file, duration / 3)?;
        Ok(time + at.elapsed())
    }

    /// Renews it as long as the guard lives.
    pub(super) fn renew(&self, duration: Duration) -> io::Result<Renewed> {
        let every = duration / 3;
        self.renewal.renew(&self.file, every)?;
        let mut state = lock(&self.renewal.state);
        state.announced += 1;
        if !state.has_thread {
            let (file, renewal) = (Arc::clone(&self.file), Arc::clone(&self.renewal));
            let thread = std::thread::Builder::new().name("sde-lease".to_owned());
            let work = move || renewal.work(&file, every);
            // Without it others may take over what takes longer than a lease.
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
    /// Renews the lease if that was long ago; gives when it was renewed.
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

    /// What a thread does as long as anything is announced.
    fn work(&self, file: &File, every: Duration) {
        let mut state = lock(&self.state);
        loop {
            state = wait_timeout(&self.changed, state, every).0;
            if state.announced == 0 {
                state.has_thread = false;
                return;
            }
            drop(state);
            // If it can't be renewed, others take over in the end.
            let _ = self.renew(file, every / 2);
            state = lock(&self.state);
        }
    }
}

/// Who this process is: its machine's name, its number, and what no other machine has.
pub(super) fn this() -> String {
    let About { host, process, .. } = About::this();
    format!("{host}\n{process}\n{}\n", machine())
}

/// What no other machine has: a number drawn when it was started.
pub(super) fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let drawn = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        drawn.map_or_else(|_| About::this().host, |drawn| drawn.trim().to_owned())
    })
}

/// What came of locking a file.
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

/// Keeps a file open that turned out to be a lease of this process; gives back any other.
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
