//! The side of a run that stays in this process: one thread, which waits for all at once.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::capture::{self, Stream};
use super::strays::Marks;
use super::supervisor::{END, ENDED, ENDING, LEFT, MESSAGE, Started};
use super::{End, Finished};

/// How often the caller is asked for a signal, and the disk for its room, in ms.
const TICK: u32 = 50;
/// How much the disk must have free, in bytes. Programs that meet a full one may not tell.
const LEAST_FREE: u64 = 1 << 20;
/// How long the supervisor has to take an order, and pipes that someone else holds to be closed.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long after KILL a process may take to go; one that waits for a device can't before that answers.
const STUCK: Duration = Duration::from_secs(30);

pub(super) struct Rules<'a> {
    pub(super) limit: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) stop: &'a dyn Fn() -> Option<i32>,
    /// How many bytes the disk of the run has free, if that can be told.
    pub(super) free: &'a dyn Fn() -> Option<u64>,
    pub(super) marks: Marks,
}

pub(super) struct Watch<'a> {
    started: Started,
    streams: [Stream; 2],
    rules: Rules<'a>,
    /// The part of a message that has arrived.
    message: Vec<u8>,
    status: Option<ExitStatus>,
    left: Vec<String>,
    /// Why the run counts as ended early.
    cause: Option<End>,
    last_stop: Option<i32>,
    /// When the disk was looked at last.
    looked: Option<Instant>,
    /// Whether the disk was full at a time: a program may free it again, and its files stay cut off.
    was_full: bool,
    /// When the order to end was given.
    ordered: Option<Instant>,
    /// Since when the supervisor ends what is left.
    ending: Option<Instant>,
    /// Until when the streams are waited for: the supervisor is gone.
    until: Option<Instant>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(started: Started, streams: [Stream; 2], rules: Rules<'a>) -> Self {
        let message = Vec::with_capacity(MESSAGE);
        let (left, last_stop, ordered) = (Vec::new(), None, None);
        Self {
            started,
            streams,
            rules,
            message,
            status: None,
            left,
            cause: None,
            last_stop,
            looked: None,
            was_full: false,
            ordered,
            ending: None,
            until: None,
        }
    }

    pub(super) fn until_over(mut self) -> io::Result<Finished> {
        let result = self.attend();
        if result.is_err() && self.until.is_none() {
            // The supervisor takes the end of its line for the end of this process.
            let _ = self.started.line.shutdown(Shutdown::Both);
            let _ = self.started.child.wait();
        }
        result.map(|()| self.finish())
    }

    fn attend(&mut self) -> io::Result<()> {
        self.started.line.set_nonblocking(true)?;
        loop {
            self.hear();
            if self.over() {
                return Ok(());
            }
            self.decide();
            if self
                .looked
                .is_none_or(|last| last.elapsed() >= Duration::from_millis(TICK.into()))
            {
                self.look();
            }
            let before = Instant::now();
            let line = self.until.is_none().then(|| self.started.line.as_fd());
            capture::wait(line, &self.streams, TICK)?;
            if self.echoing()
                && let Some(until) = &mut self.until
            {
                *until += before.elapsed();
            }
            self.advance();
        }
    }

    /// Takes what the supervisor says, and whether it has gone.
    fn hear(&mut self) {
        if self.until.is_some() {
            return;
        }
        // Asked first: what it said before it went is heard then. Its end of the line may be open in a fork
        // that another thread made.
        let gone = self.started.child.try_wait();
        let mut buffer = [0; MESSAGE];
        let closed = loop {
            match self.started.line.read(&mut buffer) {
                Ok(0) => break true,
                Ok(count) => buffer[..count].iter().for_each(|&byte| self.take(byte)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(_) => break true,
            }
        };
        let status = match gone {
            Ok(None) if !closed => return,
            Ok(None) => self.started.child.wait().ok(),
            Ok(status) => status,
            // Somebody else has waited for it, or this process ignores its children.
            Err(_) => None,
        };
        self.until = Some(Instant::now() + PATIENCE);
        if !status.is_some_and(|status| status.success()) {
            self.left.extend(self.rules.marks.kill());
        }
    }

    fn take(&mut self, byte: u8) {
        self.message.push(byte);
        if self.message.len() < MESSAGE {
            return;
        }
        let number = |at: usize| {
            self.message[at..at + 4]
                .try_into()
                .map_or(0, i32::from_ne_bytes)
        };
        let (kind, value) = (number(0), number(4));
        match kind {
            ENDED => self.status = Some(ExitStatus::from_raw(value)),
            ENDING => self.ending = Some(Instant::now()),
            LEFT => {
                let name = String::from_utf8_lossy(&self.message[8..]);
                self.left
                    .push(format!("{} ({value})", name.trim_end_matches(['\0', '\n'])));
            }
            _ => {}
        }
        self.message.clear();
    }

    fn echoing(&self) -> bool {
        self.streams.iter().any(Stream::pending)
    }

    /// Who reads the echo may take his time; who holds a pipe and is no descendant may not.
    fn over(&self) -> bool {
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        self.until.is_some() && (self.streams.iter().all(Stream::over) || (late && !self.echoing()))
    }

    fn decide(&mut self) {
        let stop = (self.rules.stop)();
        if let Some(signal) = stop
            && stop != self.last_stop
        {
            self.pass_on(signal);
        }
        self.last_stop = stop;
        if let Some(limit) = self.rules.limit
            && self.status.is_none()
            && self.until.is_none()
            && self.ordered.is_none()
            && self.started.since.elapsed() >= limit
        {
            self.cause.get_or_insert(End::TimeLimit(limit));
            self.end_all();
        }
        if self.until.is_none() && self.stuck() {
            // The program gets its parent-death signal, and what else is left is looked for.
            let _ = self.started.child.kill();
        }
    }

    /// Whether the supervisor takes no order, or waits for what can't be killed.
    fn stuck(&self) -> bool {
        match (self.ending, self.ordered) {
            (Some(ending), _) => ending.elapsed() > self.rules.grace + STUCK,
            (None, Some(ordered)) => ordered.elapsed() > PATIENCE,
            (None, None) => false,
        }
    }

    /// A program that has ended by itself was not interrupted; only what comes after is cut short.
    fn pass_on(&mut self, signal: i32) {
        if self.status.is_some() || self.until.is_some() {
            self.end_all();
        } else if let Ok(order) = u8::try_from(signal) {
            self.cause.get_or_insert(End::Interrupted(signal));
            self.order(order);
        }
    }

    fn end_all(&mut self) {
        if self.ordered.is_none() {
            self.ordered = Some(Instant::now());
            self.order(END);
        }
    }

    /// An order that can't be sent finds a supervisor that has gone, or one that stands still and is killed.
    fn order(&mut self, order: u8) {
        if self.until.is_some() {
            return;
        }
        let _ = self.started.line.write(&[order]);
        if let Some(pid) = rustix::process::Pid::from_raw(self.started.child.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::CONT);
        }
    }

    fn look(&mut self) {
        self.looked = Some(Instant::now());
        self.was_full |= (self.rules.free)().is_some_and(|free| free < LEAST_FREE);
    }

    fn advance(&mut self) {
        let hurried = self.cause.is_some() || self.ordered.is_some();
        for at in 0..self.streams.len() {
            if hurried {
                self.streams[at].drop_stalled(PATIENCE);
            }
            if let Err(error) = self.streams[at].advance() {
                if !matches!(self.cause, Some(End::Full(_))) {
                    let why = format!("what it printed could not be written: {error}");
                    self.cause = Some(End::Full(io::Error::new(error.kind(), why)));
                }
                self.end_all();
            }
        }
    }

    fn finish(mut self) -> Finished {
        self.look();
        let end = match (self.cause, self.status) {
            (Some(cause), _) => cause,
            (None, Some(status)) => status
                .code()
                .map_or_else(|| End::Signal(status.signal().unwrap_or(0)), End::Exited),
            (None, None) => End::Lost,
        };
        let why = "the disk of its folder was full at a time, so its files may be cut off";
        let end = match end {
            End::Exited(_) if self.was_full => {
                End::Full(io::Error::new(io::ErrorKind::StorageFull, why))
            }
            end => end,
        };
        let named = ["standard output", "standard error"];
        let unshown = named.iter().zip(&self.streams);
        let unshown =
            unshown.filter_map(|(name, stream)| Some(format!("its {name}: {}", stream.unshown()?)));
        let unshown: Vec<String> = unshown.collect();
        Finished {
            end,
            left: self.left,
            unshown: (!unshown.is_empty()).then(|| unshown.join("; ")),
        }
    }
}

/// How many bytes are free on the disk of a file. Some kinds have no size that could be told.
pub(super) fn free(file: &File) -> Option<u64> {
    let about = rustix::fs::fstatvfs(file).ok()?;
    (about.f_blocks > 0).then(|| about.f_bavail.saturating_mul(about.f_frsize))
}
