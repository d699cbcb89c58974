//! Starts programs under `mpirun`, each under a time limit.
//!
//! A test of ranks is two things: a program that ranks run, and a test that starts it and looks
//! at how it ends. [`as_ranks`] has both in one test program, which starts itself.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The variable with the name of what ranks shall do.
const CASE: &str = "SDE_MPI_CASE";
/// The variable with the `mpirun` of the library that the program was built with.
const MPIRUN: &str = "SDE_MPIRUN";
/// After this long a job hangs, on however slow a machine: it is ended.
const LIMIT: Duration = Duration::from_secs(180);

/// How a job ended, and what its ranks printed.
#[derive(Clone, Debug)]
pub struct Job {
    /// What `mpirun` gave; `None` if a signal ended it.
    pub status: Option<i32>,
    /// What all ranks, and `mpirun`, wrote to standard output.
    pub stdout: String,
    /// The same for standard error.
    pub stderr: String,
    /// From the start of `mpirun` to its end.
    pub took: Duration,
}

impl Job {
    /// Says that the job has succeeded.
    ///
    /// # Panics
    /// If it has not.
    pub fn succeeded(&self) {
        assert_eq!(self.status, Some(0), "{self:#?}");
    }

    /// Says that the job has failed, and that its standard error has this in it.
    ///
    /// # Panics
    /// If it has not.
    pub fn failed_with(&self, text: &str) {
        assert_ne!(self.status, Some(0), "{self:#?}");
        assert!(
            self.stderr.contains(text),
            "not in its errors: {text:?}\n{self:#?}"
        );
    }
}

/// What this process shall do as a rank, if it is one.
#[must_use]
pub fn case() -> Option<String> {
    std::env::var(CASE).ok()
}

/// Runs one test of the calling test program on so many ranks, each of which is told the case.
///
/// # Panics
/// If `mpirun` can't be started, or the job hangs.
#[must_use]
pub fn as_ranks(ranks: usize, test: &str, case: &str) -> Job {
    as_ranks_with(ranks, test, case, |_| {})
}

/// The same, with a command to which something is added: variables, say.
///
/// # Panics
/// As [`as_ranks`].
#[must_use]
pub fn as_ranks_with(ranks: usize, test: &str, case: &str, add: impl FnOnce(&mut Command)) -> Job {
    let program = std::env::current_exe().expect("the path of the test program");
    let mut command = mpirun(ranks);
    command
        .arg(program)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CASE, case);
    add(&mut command);
    run(&mut command)
}

/// `mpirun` for so many ranks, which may be more than cores; what it shall run is to be added.
#[must_use]
pub fn mpirun(ranks: usize) -> Command {
    let mut command = bare();
    if is_open_mpi() {
        command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
    }
    command.args(["-n", &ranks.to_string()]);
    command
}

/// Runs a command to its end, for three minutes at most.
///
/// # Panics
/// If it can't be started, or takes longer.
#[must_use]
pub fn run(command: &mut Command) -> Job {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("starting {command:?}: {why}"));
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let status = wait(&mut child, start);
    let took = start.elapsed();
    let job = Job {
        status: status.and_then(|status| status.code()),
        stdout: stdout.join().expect("reading the output"),
        stderr: stderr.join().expect("reading the errors"),
        took,
    };
    assert!(status.is_some(), "{command:?} hangs: {job:#?}");
    job
}

/// Whether ranks are started by Open MPI.
#[must_use]
pub fn is_open_mpi() -> bool {
    static OPEN_MPI: OnceLock<bool> = OnceLock::new();
    *OPEN_MPI.get_or_init(|| {
        let asked = bare().arg("--version").output();
        let asked = asked.unwrap_or_else(|why| panic!("starting mpirun: {why}"));
        let asked = String::from_utf8_lossy(&asked.stdout).into_owned();
        // Which of its two names it has depends on the name it is called by.
        asked.contains("Open MPI") || asked.contains("OpenRTE")
    })
}

fn bare() -> Command {
    let mut command = Command::new(std::env::var(MPIRUN).unwrap_or_else(|_| "mpirun".to_owned()));
    // In a container the user is often root, and Open MPI wants to be told.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// `None` if it had to be ended.
fn wait(child: &mut Child, start: Instant) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().expect("waiting for a child") {
            return Some(status);
        }
        if start.elapsed() > LIMIT {
            end(child);
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Asked to end, `mpirun` ends its ranks too.
fn end(child: &mut Child) {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
    let asked = Instant::now();
    while asked.elapsed() < Duration::from_secs(10) {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
