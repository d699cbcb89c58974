//! A program that someone else wrote, run so that nothing of it is left when the run is over.
//!
//! Between this process and the program stands a *supervisor*, a fork of this process that runs no
//! program: every descendant of the program that loses its parent becomes the supervisor's child, so that
//! it can be found and ended. It outlives this process if that is killed, and ends the rest then.

mod capture;
pub(crate) mod strays;
mod supervisor;
mod watch;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// What is run, and how.
pub(crate) struct Launch<'a> {
    /// The file that is executed, by absolute path; it is the first argument too.
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [OsString],
    /// The whole environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    /// Where the program starts. Its parent is taken for the run's folder when strays are looked for.
    pub(crate) folder: &'a Path,
    pub(crate) stdin: File,
    /// What the program prints is written here as it comes.
    pub(crate) stdout: File,
    pub(crate) stderr: File,
    /// Whether what is printed also goes to this process's standard output and error.
    pub(crate) echo: bool,
    pub(crate) limit: Option<Duration>,
    /// Time between TERM and KILL.
    pub(crate) grace: Duration,
    /// The locked file of the run's folder. The supervisor keeps it open too: the lock is free when nobody is left.
    pub(crate) lock: &'a File,
    /// Asked before the start, and then every 50 ms, for a signal to pass on. A signal is passed on when the answer
    /// before was another.
    pub(crate) stop: &'a dyn Fn() -> Option<i32>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    Exited(i32),
    /// A signal that this process did not send ended the program.
    Signal(i32),
    TimeLimit(Duration),
    /// This signal was passed on to the program, which may have ended by any status, or came before its start.
    Interrupted(i32),
    /// What it printed could not be written, or its disk was full at a time: what it wrote may be cut off.
    Full(io::Error),
    /// The supervisor was killed, and the program with it.
    Lost,
}

/// What is known of a program that ran.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) end: End,
    /// Processes that the program left behind when it ended by itself, as `name (pid)`. They were ended.
    pub(crate) left: Vec<String>,
    /// Why what it printed was not passed on as a whole. A reader that left is no reason.
    pub(crate) unshown: Option<String>,
}

impl Finished {
    /// The end of a run that a signal kept from its start.
    pub(crate) fn not_started(signal: i32) -> Self {
        Self {
            end: End::Interrupted(signal),
            left: Vec::new(),
            unshown: None,
        }
    }
}

/// Runs a program until it and all its descendants have ended.
///
/// Errors say that the program could not be started (not found, not permitted, no format of a program), or
/// that a system call of this process failed, in which case the program was ended.
///
/// The program is in a session of its own: it has no terminal, and a signal from the terminal reaches it
/// through `stop` only. Memory is constant, whatever is printed. Must be called by a thread that lives as
/// long as the call (any does): Linux ends the run with the thread.
pub(crate) fn run(launch: Launch<'_>) -> io::Result<Finished> {
    let mut echoes = [None, None];
    if launch.echo {
        // What this process printed before must not come after what the program prints.
        let _ = io::stdout().flush();
        echoes = [
            io::stdout().as_fd().try_clone_to_owned().ok(),
            io::stderr().as_fd().try_clone_to_owned().ok(),
        ];
    }
    // Open all the while, and on the disk of the run's folder, wherever the program moves that.
    let lock = launch.lock;
    run_with(launch, echoes, &|| watch::free(lock))
}

fn run_with(
    launch: Launch<'_>,
    echoes: [Option<OwnedFd>; 2],
    free: &dyn Fn() -> Option<u64>,
) -> io::Result<Finished> {
    if let Some(signal) = (launch.stop)() {
        return Ok(Finished::not_started(signal));
    }
    let mut started = supervisor::start(&launch)?;
    let missing = || io::Error::other("a program's pipe is missing");
    let out = started.child.stdout.take().ok_or_else(missing)?;
    let err = started.child.stderr.take().ok_or_else(missing)?;
    let [to_out, to_err] = echoes;
    let streams = [
        capture::Stream::new(out.into(), launch.stdout, to_out)?,
        capture::Stream::new(err.into(), launch.stderr, to_err)?,
    ];
    let run = launch.folder.parent().unwrap_or(launch.folder);
    let marks = strays::Marks::new(run);
    let rules = watch::Rules {
        limit: launch.limit,
        grace: launch.grace,
        stop: launch.stop,
        free,
        marks,
    };
    watch::Watch::new(started, streams, rules).until_over()
}
