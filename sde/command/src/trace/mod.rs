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
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::process::{End, Finished};
use crate::program;
use pipe::{Heard, Pipe};

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

/// The folder of the run, that in which the program starts, and the file of what it prints as errors.
pub(crate) struct Places<'a> {
    pub(crate) run: &'a Path,
    pub(crate) work: &'a Path,
    pub(crate) stderr: &'a Path,
}

/// Runs a program by `run`, under strace if that can be; otherwise as it is, which is told.
pub(crate) fn run(
    declared: &Declared,
    places: Places<'_>,
    (program, args): (&Path, &[OsString]),
    run: &mut dyn FnMut(&Path, &[OsString]) -> io::Result<Finished>,
) -> io::Result<(Finished, Traced)> {
    let why = match under_strace(declared, &places, (program, args), run)? {
        Ok(done) => return Ok(done),
        Err(why) => why,
    };
    Ok((run(program, args)?, Traced::not(why)))
}

/// The inner error says why the program was not started.
fn under_strace(
    declared: &Declared,
    places: &Places<'_>,
    (program, args): (&Path, &[OsString]),
    run: &mut dyn FnMut(&Path, &[OsString]) -> io::Result<Finished>,
) -> io::Result<Result<(Finished, Traced), String>> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let Ok(strace) = program::find("strace".as_ref(), Path::new("/"), &search) else {
        return Ok(Err("there is no strace in PATH: install it".to_owned()));
    };
    let pipe = match Pipe::new(places.run.join("trace")) {
        Ok(pipe) => pipe,
        Err(error) => {
            let folder = places.run.display();
            return Ok(Err(format!("making a pipe in {folder}: {error}")));
        }
    };
    let args = arguments(&pipe.path, program, args);
    let is_over = AtomicBool::new(false);
    let (finished, heard) = thread::scope(|scope| {
        let over = Over(&is_over);
        let thread = thread::Builder::new().name("sde-trace".to_owned());
        let hear = || pipe.hear(declared, places.work, places.run, &is_over);
        let heard = thread.spawn_scoped(scope, hear)?;
        let finished = run(&strace, &args);
        drop(over);
        let heard = heard.join();
        Ok::<_, io::Error>((finished?, heard))
    })?;
    let heard = heard.unwrap_or_else(|_| Heard {
        traced: Traced::not("reading what strace wrote failed".to_owned()),
        is_started: true,
    });
    if !heard.is_started && matches!(finished.end, End::Exited(_)) {
        let mut said = Vec::new();
        File::open(places.stderr)?
            .take(1024)
            .read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said);
        let said = said.lines().next().unwrap_or("it failed");
        return Ok(Err(format!(
            "no process may be traced here, or strace is too old: {said}"
        )));
    }
    let mut finished = finished;
    // The tracer of what was left behind is none of the program's.
    finished.left.retain(|left| !left.starts_with("strace ("));
    Ok(Ok((finished, heard.traced)))
}

/// Tells the end of the run, also by a panic: whoever hears must not wait then.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// What strace is given to run a program and to write into `to`.
///
/// The tracer is neither parent nor in the group of the program: its status, its signals and its time limit are as
/// without one.
fn arguments(to: &Path, program: &Path, args: &[OsString]) -> Vec<OsString> {
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
