//! Other processes: this test program, run again to do one job. A job tells with lines that begin
//! with `> `, and waits for lines.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::opencl::{devices, launches, programs, shared};
use crate::{killed, opencl, processes};

const JOB: &str = "SDE_OPENCL_TEST_JOB";

/// Does a job if this is such a process; passes as a test that does nothing otherwise.
#[test]
fn job() {
    let Ok(job) = std::env::var(JOB) else {
        return;
    };
    let dir = PathBuf::from(std::env::var("dir").unwrap());
    match &*job {
        "build" => processes::build(&dir),
        "keep" => killed::keep_and_replace(&dir),
        "hold" => processes::hold(&dir),
        "announce" => crate::launches::announce(&dir),
        "put" => processes::put_for_ever(&dir),
        "launch" => devices::launch_and_tell(&dir),
        "threads" => devices::look_with_many_threads(),
        "some" => launches::launch_some(&dir),
        "many" => shared::build_many(&dir),
        "linked" => opencl::job(&dir, programs::linked),
        "spaced" => opencl::job(&dir, programs::spaced),
        "blob" => opencl::job(&dir, programs::blob),
        "wrong" => opencl::job(&dir, programs::wrong),
        "foreign" => opencl::job(&dir, programs::foreign),
        "options" => opencl::job(&dir, programs::options),
        "bare" => opencl::job(&dir, programs::bare),
        "faults" => opencl::faults::each_call_fails_once(&dir),
        other => panic!("no job is called {other}"),
    }
}

pub fn tell(what: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n> {what}").unwrap();
    out.flush().unwrap();
}

/// Waits for a line.
pub fn listen() {
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
}

/// Stops for ever if this is the place that a setting of the job names, to be killed there.
pub fn stop_if(name: &str, at: u64) {
    if std::env::var(name).is_ok_and(|place| place == at.to_string()) {
        tell("stopped");
        listen();
    }
}

/// A process at work. It is killed if it is still there when this is dropped.
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Worker {
    pub fn start(job: &str, dir: &Path, settings: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::job", "--nocapture", "--test-threads=1"])
            .env(JOB, job)
            .env("dir", dir)
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// The next thing it tells; `None` if it has ended.
    pub fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(told) = line
                .strip_prefix("> ")
                .and_then(|line| line.strip_suffix('\n'))
            {
                return Some(told.to_owned());
            }
        }
    }

    pub fn say(&mut self) {
        writeln!(self.stdin).unwrap();
        self.stdin.flush().unwrap();
    }

    /// Ends it as no program can prevent.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
