//! One build among processes.
//!
//! Locks that are files which somebody removes at the end stay for ever when he is killed. These are
//! locks that the system keeps for an open file, and drops when its holder ends, however he ends. There
//! are 256 files, chosen by the key, which are made once and stay. Two programs may share
//! one: then one build waits for the other, for a bounded time, which costs time and nothing else.
//!
//! Where there are no locks, or they do not hold between machines, two processes build the same
//! program, and the later one replaces what the earlier one put.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::Turn;
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

    pub(super) fn turn(&self, key: &ProgramKey) -> Turn {
        let [bucket, ..] = *key.as_bytes();
        let path = self.dir.join(format!("{bucket:02x}"));
        match open(&self.dir, &path).and_then(|file| self.lock(file)) {
            Ok(turn) => turn,
            Err(error) => {
                tracing::debug!("no lock on {}: {error}", path.display());
                Turn::default()
            }
        }
    }

    /// A look now and then, since no lock of the system waits for a bounded time.
    fn lock(&self, file: File) -> io::Result<Turn> {
        let since = Instant::now();
        let mut waited = None;
        let mut pause = FIRST_LOOK;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    return Ok(Turn {
                        held: Some(Box::new(file)),
                        waited,
                    });
                }
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => {}
            }
            waited = Some(since.elapsed());
            let left = self.patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                tracing::warn!(
                    "another process has been building for {:?}; not waiting any longer",
                    since.elapsed()
                );
                return Ok(Turn { held: None, waited });
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LAST_LOOK);
        }
    }
}

fn open(dir: &Path, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(dir)?;
            options.open(path)
        }
        outcome => outcome,
    }
}
