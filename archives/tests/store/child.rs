//! Processes to kill: this test program, run again to do one job.

use std::fmt::Arguments;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const JOB: &str = "SDE_ARCHIVES_TEST_JOB";

/// A process at work. It is killed if it is still there when this is dropped.
pub struct Worker {
    child: Child,
    pub stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a job with its settings.
    pub fn start(job: &str, dir: &Path, settings: &[(&str, u64)]) -> Self {
        Self::by(
            Command::new(std::env::current_exe().unwrap()),
            job,
            dir,
            settings,
        )
    }

    /// Starts a job by a command to which the test program's arguments are added.
    pub fn by(mut command: Command, job: &str, dir: &Path, settings: &[(&str, u64)]) -> Self {
        command
            .args(["--exact", "child::job", "--nocapture", "--test-threads=1"])
            .env(JOB, job)
            .env("dir", dir)
            .envs(settings.iter().map(|(name, to)| (name, to.to_string())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            lines: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// The next thing it told; `None` if it has ended.
    pub fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // A line that was cut off by a kill was not told.
            if let Some(told) = line.strip_prefix("> ").and_then(|l| l.strip_suffix('\n')) {
                return Some(told.to_owned());
            }
        }
    }

    /// Waits until it told this.
    pub fn wait_for(&mut self, what: &str) {
        while self.next().unwrap_or_else(|| panic!("no \"{what}\" came")) != what {}
    }

    /// Kills it, wherever it is; gives what it told until then.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.rest()
    }

    /// What it tells until it ends.
    pub fn rest(&mut self) -> Vec<String> {
        let told = std::iter::from_fn(|| self.next()).collect();
        self.child.wait().unwrap();
        told
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells the parent, if this is a worker.
pub fn tell(what: Arguments<'_>) {
    if std::env::var_os(JOB).is_some() {
        // The test harness does not end its own lines.
        println!("\n> {what}");
        std::io::stdout().flush().unwrap();
    }
}

/// A setting of this worker.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Stops here for ever, if the setting says so.
pub fn stop_if(name: &str, at: u64) {
    if setting(name) == Some(at) {
        tell(format_args!("stopped"));
        let mut nothing = [0];
        let _ = std::io::stdin().read(&mut nothing);
        std::process::abort();
    }
}

/// Waits until the parent writes a line.
pub fn wait_for_parent() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

/// What workers run; as a test of its own it has nothing to do.
#[test]
fn job() {
    let Ok(job) = std::env::var(JOB) else {
        return;
    };
    let dir = std::env::var_os("dir").unwrap();
    match job.as_str() {
        "pages" => super::kill::pages(Path::new(&dir)),
        "awaited pages" => super::kill::awaited_pages(Path::new(&dir)),
        "saved pages" => super::kill::saved_pages(Path::new(&dir)),
        "orbit" => super::kill::one_orbit(Path::new(&dir)),
        "capacity" => super::capacity::work(Path::new(&dir)),
        "warned" => super::sharing::end_when_warned(Path::new(&dir)),
        #[cfg(unix)]
        "share" => super::also::share(Path::new(&dir)),
        #[cfg(target_os = "linux")]
        "without permission" => super::also_failing::without_permission(Path::new(&dir)),
        "together" => super::together::work(Path::new(&dir)),
        "fill" => super::kill::fill(Path::new(&dir)),
        #[cfg(target_os = "linux")]
        "member" => super::groups::member(Path::new(&dir)),
        #[cfg(target_os = "linux")]
        "calls" => super::strace::calls(Path::new(&dir)),
        #[cfg(target_os = "linux")]
        "copy" => super::strace::copy(Path::new(&dir)),
        #[cfg(target_os = "linux")]
        "announces" => super::processes::announces(Path::new(&dir)),
        #[cfg(target_os = "linux")]
        "no thread" => super::limits::save_without_a_thread(Path::new(&dir)),
        #[cfg(target_os = "linux")]
        "little memory" => super::limits::load_with_little_memory(Path::new(&dir)),
        #[cfg(target_os = "linux")]
        "user" => super::limits::tell_the_user(),
        other => panic!("no such job: {other}"),
    }
}
