//! One output stream of a program: from its pipe to a file, and on to whom it may concern.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// The most that is read at once.
const CHUNK: usize = 64 * 1024;
/// A pipe that is ready takes this much without blocking.
const ECHO: usize = 4096;

pub(super) struct Stream {
    /// `None` at the end of the stream.
    pipe: Option<File>,
    file: File,
    /// False once a write to the file failed.
    keeps: bool,
    echo: Option<OwnedFd>,
    /// Why the echo was given up, other than by its reader.
    failed: Option<io::Error>,
    /// Since when the echo's reader takes nothing.
    stalled: Option<Instant>,
    buffer: Vec<u8>,
    /// How much of the buffer was echoed. Less than its length: nothing is read before the rest is echoed.
    echoed: usize,
}

impl Stream {
    pub(super) fn new(pipe: OwnedFd, file: File, echo: Option<OwnedFd>) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Self {
            pipe: Some(File::from(pipe)),
            file,
            keeps: true,
            echo,
            failed: None,
            stalled: None,
            buffer: Vec::with_capacity(CHUNK),
            echoed: 0,
        })
    }

    /// Whether something waits for the echo's reader.
    pub(super) fn pending(&self) -> bool {
        self.echo.is_some() && self.echoed < self.buffer.len()
    }

    pub(super) fn over(&self) -> bool {
        self.pipe.is_none() && !self.pending()
    }

    /// Why what was printed was not passed on as a whole. A reader that left, or that stalls at the end, is no reason.
    pub(super) fn unshown(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// What this stream waits for.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        match (&self.echo, &self.pipe) {
            (Some(echo), _) if self.pending() => Some(PollFd::new(echo, PollFlags::OUT)),
            (_, Some(pipe)) => Some(PollFd::new(pipe, PollFlags::IN)),
            _ => None,
        }
    }

    /// Moves what can be moved without blocking, one buffer at most. The error is that of the file.
    pub(super) fn advance(&mut self) -> io::Result<()> {
        if !self.pending() {
            self.read()?;
        }
        while self.pending() && self.echo_some() {}
        Ok(())
    }

    /// Gives an echo up whose reader has taken nothing for so long: a program that is to end may wait for it.
    pub(super) fn drop_stalled(&mut self, patience: Duration) {
        if self.stalled.is_some_and(|since| since.elapsed() > patience) {
            self.echo = None;
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        self.buffer.resize(CHUNK, 0);
        self.echoed = 0;
        let read = pipe.read(&mut self.buffer);
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Ok(0) | Err(_) => self.pipe = None,
            Ok(_) if self.keeps => {
                let written = self.file.write_all(&self.buffer);
                self.keeps = written.is_ok();
                return written;
            }
            Ok(_) => {}
        }
        Ok(())
    }

    /// Echoes a piece; whether more may go at once. An echo that fails is given up, the capture goes on.
    fn echo_some(&mut self) -> bool {
        let Some(echo) = &self.echo else { return false };
        if !ready(echo) {
            self.stalled.get_or_insert_with(Instant::now);
            return false;
        }
        self.stalled = None;
        let rest = &self.buffer[self.echoed..];
        match rustix::io::write(echo, &rest[..rest.len().min(ECHO)]) {
            Ok(count) => {
                self.echoed += count;
                true
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => false,
            Err(error) => {
                self.failed = (error != rustix::io::Errno::PIPE).then(|| error.into());
                self.echo = None;
                false
            }
        }
    }
}

/// Whether a write of [`ECHO`] bytes returns at once, be it with an error. Asked before each: both streams
/// may go to one pipe.
fn ready(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::OUT)];
    poll(
        &mut fds,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    )
    .is_ok_and(|count| count > 0)
}

/// Waits for one of the streams or the supervisor's line, for `millis` at most.
pub(super) fn wait(
    line: Option<BorrowedFd<'_>>,
    streams: &[Stream; 2],
    millis: u32,
) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = streams.iter().filter_map(Stream::interest).collect();
    fds.extend(line.map(|line| PollFd::from_borrowed_fd(line, PollFlags::IN)));
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(millis) * 1_000_000,
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
