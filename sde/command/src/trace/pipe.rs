//! The pipe that strace writes into, read while the program runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::follow::Follow;
use super::known::{Declared, Known};
use super::told::Traced;

/// The longest line: two paths of 4 KiB, in four characters a byte.
const LONGEST: usize = 256 << 10;
/// How long the end of the run may stay unseen, in ns.
const TICK: i64 = 20_000_000;

/// A named pipe in the run's folder.
pub(super) struct Pipe {
    pub(crate) path: PathBuf,
    file: File,
}

/// What a trace told.
pub(super) struct Heard {
    pub(crate) traced: Traced,
    /// Whether strace started the program.
    pub(crate) is_started: bool,
}

impl Pipe {
    pub(crate) fn new(path: PathBuf) -> io::Result<Self> {
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // Also for writing, so that it is at no end before strace opens it.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&path)?;
        Ok(Self { path, file })
    }

    /// Reads until `is_over` and nothing more is there. strace waits for the reader, and the program for strace: so
    /// whatever comes is read. `work` is where the program starts, `own` the folder of the run.
    pub(crate) fn hear(
        mut self,
        declared: &Declared,
        work: &Path,
        own: &Path,
        is_over: &AtomicBool,
    ) -> Heard {
        let mut known = Known::new(declared, own);
        let mut follow = Follow::new(work);
        let (mut line, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            // Asked first: what was written before is read then.
            let was_over = is_over.load(Ordering::Acquire);
            match self.file.read(&mut buffer) {
                Ok(count) if count > 0 => {
                    for &byte in &buffer[..count] {
                        match byte {
                            b'\n' => {
                                take(&mut follow, &mut known, &line);
                                line.clear();
                            }
                            _ if line.len() < LONGEST => line.push(byte),
                            _ => {}
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    follow.cut(|| format!("reading what strace wrote failed: {error}"));
                    break;
                }
                _ if was_over => break,
                _ => self.wait(),
            }
        }
        follow.end(&mut |access| known.take(&access));
        if !follow.is_started {
            follow.cut(|| "strace did not start the program".into());
        }
        let (undeclared, more) = known.undeclared();
        let (cut, is_started) = (follow.cut, follow.is_started);
        let traced = Traced {
            cut,
            undeclared,
            more,
        };
        Heard { traced, is_started }
    }

    fn wait(&self) {
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: TICK,
        };
        // An error shows when it is read.
        let _ = poll(&mut fds, Some(&tick));
    }
}

fn take(follow: &mut Follow, known: &mut Known, line: &[u8]) {
    match std::str::from_utf8(line) {
        Ok(text) if line.len() < LONGEST => follow.line(text, &mut |access| known.take(&access)),
        _ => follow.cut(|| "strace wrote a line that is too long, or no text".into()),
    }
}
