//! One build among processes.
//!
//! Locks that are files which somebody removes at the end stay for ever when he is killed. These are
//! locks that the system keeps for an open file, and drops when its holder ends, however he ends. The
//! files are made once and stay, and are chosen by two bytes of the key: 65,536 at most, so that a build
//! seldom waits for that of another program. If it does, that costs time, a bounded one, and nothing else.
//!
//! Where there are no locks, or they do not hold between machines, two processes build the same
//! program, and the later one replaces what the earlier one put.

use std::any::Any;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use sde_archives::medium::{Disk, FileKind, Medium};

use super::Turn;
use super::own::{self, Links};
use crate::identity::ProgramKey;

/// How long to wait before looking again: from the first to the last.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(50);

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
            .and_then(|file| try_lock(&file).map(|is_ours| (file, is_ours)));
        match turn {
            Ok((file, true)) => Some(held(file, None)),
            Ok((_, false)) => None,
            Err(error) => Some(no_lock(key, &error)),
        }
    }

    /// A look now and then, since no lock of the system waits for a bounded time.
    fn wait(&self, file: File, key: &ProgramKey) -> io::Result<Turn> {
        let since = Instant::now();
        let mut waited = None;
        let mut pause = FIRST_LOOK;
        while !try_lock(&file)? {
            waited = Some(since.elapsed());
            let left = self.patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                tracing::warn!(
                    "another process has been building {key:?} for {:?}, or a program that shares its lock; not waiting any longer",
                    since.elapsed()
                );
                return Ok(Turn { held: None, waited });
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LAST_LOOK);
        }
        Ok(held(file, waited))
    }

    fn open(&self, key: &ProgramKey) -> io::Result<File> {
        let [first, second, ..] = *key.as_bytes();
        let path = self.dir.join(format!("{first:02x}{second:02x}"));
        // It would be made wherever a link leads, and opening a pipe may not be what one does.
        if let Some(found) = Disk.look(&path)?
            && (found.link || found.kind != FileKind::File)
        {
            let why = format!("{} is not a regular file", path.display());
            return Err(io::Error::other(why));
        }
        match options().open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make()?;
                options().open(&path)
            }
            outcome => outcome,
        }
    }
}

/// Whether it is ours now.
fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn held(file: File, waited: Option<Duration>) -> Turn {
    let held: Box<dyn Any + Send> = Box::new(file);
    Turn {
        held: Some(held),
        waited,
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
