//! One build among processes.
//!
//! Locks that are files which somebody removes at the end stay for ever when he is killed. These are
//! locks that the system keeps for an open file, and drops when its holder ends, however he ends. The
//! files are made once and stay, and are chosen by two bytes of the key: 65,536 at most, so that a build
//! seldom waits for that of another program. If it does, that costs time, a bounded one, and nothing else.
//!
//! Where there are no locks, or they do not hold between machines, two processes build the same
//! program, and the later one replaces what the earlier one put.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use sde_archives::vfs::{Disk, FileKind, Vfs};

use super::Turn;
use super::own::{self, Links};
use crate::identity::ProgramKey;
use crate::lock::lock;

/// How long to wait before looking again: from the first to the last.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(50);

/// Which thread of this process has which lock. A thread that steals jobs while it builds may come to the
/// lock that it has, and would wait for itself.
static HELD: LazyLock<Mutex<HashMap<PathBuf, ThreadId>>> = LazyLock::new(Mutex::default);

/// A lock that this process has.
struct Held {
    path: PathBuf,
    _file: File,
}

impl Held {
    fn by_this_thread(path: PathBuf, file: File) -> Self {
        lock(&HELD).insert(path.clone(), thread::current().id());
        Self { path, _file: file }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Before the system gives it to somebody else: the file is closed after this.
        lock(&HELD).remove(&self.path);
    }
}

/// A lock file, which may be somebody else's.
struct LockFile {
    path: PathBuf,
    file: File,
}

impl LockFile {
    /// Whether it is ours now.
    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether it lies beneath what this thread is doing.
    fn is_of_this_thread(&self) -> bool {
        lock(&HELD).get(&self.path) == Some(&thread::current().id())
    }

    fn held(self, waited: Option<Duration>) -> Turn {
        Turn {
            held: Some(Box::new(Held::by_this_thread(self.path, self.file))),
            waited,
        }
    }
}

pub(super) struct Locks {
    dir: PathBuf,
    patience: Duration,
}

impl Locks {
    pub(super) fn new(dir: PathBuf, patience: Duration) -> Self {
        Self { dir, patience }
    }

    /// Makes their directory, if it is not there.
    pub(super) fn make(&self) -> io::Result<()> {
        own::make(&Disk, &self.dir, Links::Refused)
    }

    /// The turn to build a program; waits for who has it, as long as there is patience.
    pub(super) fn turn(&self, key: &ProgramKey) -> Turn {
        let turn = self.open(key).and_then(|file| self.wait(file, key));
        turn.unwrap_or_else(|error| no_lock(key, &error))
    }

    /// The same, at once; nothing if somebody else has it.
    pub(super) fn turn_at_once(&self, key: &ProgramKey) -> Option<Turn> {
        let turn = self
            .open(key)
            .and_then(|file| file.try_lock().map(|is_ours| (file, is_ours)));
        match turn {
            Ok((file, true)) => Some(file.held(None)),
            Ok((_, false)) => None,
            Err(error) => Some(no_lock(key, &error)),
        }
    }

    /// A look now and then, since no lock of the system waits for a bounded time.
    fn wait(&self, file: LockFile, key: &ProgramKey) -> io::Result<Turn> {
        let since = Instant::now();
        let mut waited = None;
        let mut pause = FIRST_LOOK;
        while !file.try_lock()? {
            if file.is_of_this_thread() {
                return Ok(Turn::default());
            }
            if waited.is_none() {
                tracing::info!(
                    "waiting for whoever builds {key:?}, or a program that shares its lock, up to {:?}",
                    self.patience
                );
            }
            waited = Some(since.elapsed());
            let left = self.patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                sde::warning!(
                    "another process has been building {key:?} for {:?}, or a program that shares its lock; not waiting any longer",
                    since.elapsed()
                );
                return Ok(Turn { held: None, waited });
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LAST_LOOK);
        }
        Ok(file.held(waited))
    }

    fn open(&self, key: &ProgramKey) -> io::Result<LockFile> {
        let [first, second, ..] = *key.as_bytes();
        let path = self.dir.join(format!("{first:02x}{second:02x}"));
        // It would be made wherever a link leads, and opening a pipe may not be what one does.
        if let Some(found) = Disk.look(&path)?
            && (found.link || found.kind != FileKind::File)
        {
            let why = format!("{} is not a regular file", path.display());
            return Err(io::Error::other(why));
        }
        let file = match options().open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make()?;
                options().open(&path)
            }
            outcome => outcome,
        }?;
        Ok(LockFile { path, file })
    }
}

fn no_lock(key: &ProgramKey, error: &io::Error) -> Turn {
    tracing::debug!("no lock for the build of {key:?}: {error}");
    Turn::default()
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}
