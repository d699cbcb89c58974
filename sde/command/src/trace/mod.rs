//! What a program reads, and who declared it: a run under strace.
//!
//! strace writes each call that names a file into a pipe, which is read as it comes; so memory is bounded, however long
//! the program runs. What it reads in no such way is not seen: what comes by network, or from a process that ran before.

mod access;
mod exempt;
mod follow;
mod known;
mod parse;
mod pipe;
mod told;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::process::{End, Finished};
use crate::program;
use pipe::Pipe;

pub(crate) use known::Declared;
pub use told::{Traced, Undeclared, Use};

/// Whether a run is traced, and what follows: see [`Command::trace`](crate::Command::trace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// What was read and not declared is told.
    Warn,
    /// Such a run is not remembered, nor is one that could not be traced.
    Strict,
}

/// What is traced: calls that name a file, and those that make processes or hide files from here. Those with a
/// question mark are not there on all machines.
const CALLS: &str = "trace=%file,?clone,?clone3,?fork,?vfork,fchdir,?getdents,getdents64,?open_by_handle_at,\
                     ?io_uring_setup,unshare,setns,?move_mount";

/// Runs a program by `run`, under strace if that can be; otherwise as it is, which is told.
///
/// `folders` are that of the run and that in which the program starts.
pub(crate) fn run(
    declared: &Declared,
    folders: [&Path; 2],
    environment: &[(OsString, OsString)],
    (program, args): (&Path, &[OsString]),
    run: impl FnOnce(&Path, &[OsString]) -> io::Result<Finished>,
) -> io::Result<(Finished, Traced)> {
    let [own, work] = folders;
    let ready = Strace::find(environment).and_then(|strace| {
        let pipe = Pipe::new(own.join("trace"));
        let failed = |error| format!("making a pipe in {}: {error}", own.display());
        Ok((strace, pipe.map_err(failed)?))
    });
    let (strace, pipe) = match ready {
        Ok(ready) => ready,
        Err(why) => return Ok((run(program, args)?, Traced::not(why))),
    };
    let args = strace.arguments(&pipe.path, program, args);
    let is_over = AtomicBool::new(false);
    let (finished, heard) = thread::scope(|scope| {
        let thread = thread::Builder::new().name("sde-trace".to_owned());
        let heard = thread.spawn_scoped(scope, || pipe.hear(declared, work, own, &is_over))?;
        let finished = run(&strace.path, &args);
        is_over.store(true, Ordering::Release);
        let heard = heard.join();
        Ok::<_, io::Error>((finished?, heard))
    })?;
    let (mut traced, is_started) = match heard {
        Ok(heard) => (heard.traced, heard.is_started),
        Err(_) => (
            Traced::not("reading what strace wrote failed".to_owned()),
            true,
        ),
    };
    match finished.end {
        End::Exited(status) if !is_started => Err(io::Error::other(format!(
            "strace did not start it, and ended with status {status}; without --trace the error may tell more"
        ))),
        _ => Ok((without(&strace, finished, &mut traced), traced)),
    }
}

/// The tracer of what was left behind is none of the program's.
fn without(strace: &Strace, mut finished: Finished, traced: &mut Traced) -> Finished {
    finished.left.retain(|left| !strace.is_it(left));
    if !finished.left.is_empty() {
        let why = "processes were left behind, and were ended";
        traced.cut.get_or_insert_with(|| why.to_owned());
    }
    finished
}

/// A program that traces others, and was seen to do so.
struct Strace {
    path: PathBuf,
}

impl Strace {
    /// Looks for strace in the `PATH` of this process, and tries it under the environment of a run. The error says why
    /// nothing can be traced.
    fn find(environment: &[(OsString, OsString)]) -> Result<Self, String> {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let path = program::find("strace".as_ref(), Path::new("/"), &search)
            .map_err(|_| "there is no strace in PATH: install it".to_owned())?;
        let strace = Self { path };
        let tried = Command::new(&strace.path)
            .args(strace.arguments(Path::new("/dev/null"), &strace.path, &["-V".into()]))
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .output();
        let tried = tried.map_err(|error| format!("strace can't be run: {error}"))?;
        let said = String::from_utf8_lossy(&tried.stderr);
        match tried.status.success() {
            true => Ok(strace),
            false => Err(format!(
                "no process may be traced here, or strace is too old: {}",
                said.lines().next().unwrap_or("it failed")
            )),
        }
    }

    /// What strace is given to run a program and to write into `to`.
    ///
    /// The tracer is neither parent nor in the group of the program: its status, its signals and its time limit are as
    /// without one.
    fn arguments(&self, to: &Path, program: &Path, args: &[OsString]) -> Vec<OsString> {
        let options = [
            "-q",
            "-f",
            "-y",
            "-DD",
            "-xx",
            "-s",
            "0",
            "-e",
            "signal=none",
            "-e",
            CALLS,
            "-o",
        ];
        let options = options.iter().map(OsStr::new);
        let rest = [to.as_os_str(), OsStr::new("--"), program.as_os_str()];
        let whole = options.chain(rest).map(OsStr::to_owned);
        whole.chain(args.iter().cloned()).collect()
    }

    /// Whether a process that was left behind is the tracer of others that were.
    fn is_it(&self, left: &str) -> bool {
        left.starts_with("strace (")
    }
}
