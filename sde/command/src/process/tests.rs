//! Runs of programs, as they end.

#![cfg(target_os = "linux")]

mod ends;
mod kills;
mod streams;

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{End, Finished, Launch, run_with};
use crate::folder::RunFolder;

const MINUTE: Duration = Duration::from_secs(60);

/// A run to be, with what most tests don't care for.
struct Trial {
    folder: RunFolder,
    /// Dropped after the folder in it.
    _scratch: Option<tempfile::TempDir>,
    stdout: Option<File>,
    echoes: [Option<OwnedFd>; 2],
    free: Box<dyn Fn() -> Option<u64>>,
    limit: Option<Duration>,
    grace: Duration,
}

impl Trial {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mut trial = Self::within(scratch.path());
        trial._scratch = Some(scratch);
        trial
    }

    fn within(scratch: &Path) -> Self {
        let folder = RunFolder::make(scratch).unwrap();
        Self {
            folder,
            _scratch: None,
            stdout: None,
            echoes: [None, None],
            free: Box::new(|| None),
            limit: Some(MINUTE),
            grace: MINUTE,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn shell(&mut self, script: &str) -> Finished {
        self.shell_until(script, &|| None)
    }

    fn shell_until(&mut self, script: &str, stop: &dyn Fn() -> Option<i32>) -> Finished {
        self.program(Path::new("/bin/sh"), &["-c", script], stop)
            .unwrap()
    }

    fn program(
        &mut self,
        program: &Path,
        args: &[&str],
        stop: &dyn Fn() -> Option<i32>,
    ) -> io::Result<Finished> {
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        let run: OsString = self.folder.path().into();
        let environment = [
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("HOME".into(), self.folder.home().into()),
            ("RUN".into(), run),
        ];
        let stdout = self
            .stdout
            .take()
            .map_or_else(|| File::create(self.path("out")), Ok)?;
        let launch = Launch {
            program,
            args: &args,
            environment: &environment,
            folder: &self.folder.work(),
            stdin: File::open("/dev/null")?,
            stdout,
            stderr: File::create(self.path("err"))?,
            echo: false,
            limit: self.limit,
            grace: self.grace,
            lock: self.folder.lock(),
            stop,
        };
        let [out, err] = &mut self.echoes;
        run_with(launch, [out.take(), err.take()], &self.free)
    }
}

/// Whether a process runs. One that has ended and that nobody waited for does not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Waits, not for ever, until something is so.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it never came: {what}");
}

#[test]
fn the_status_and_what_is_printed() {
    let mut trial = Trial::new();
    let finished = trial.shell("echo $0 $HOME; pwd; echo no >&2; exit 3");
    assert!(matches!(finished.end, End::Exited(3)), "{finished:?}");
    assert!(finished.left.is_empty(), "{finished:?}");
    let (home, work) = (trial.folder.home(), trial.folder.work());
    assert_eq!(
        trial.text("out"),
        format!("/bin/sh {}\n{}\n", home.display(), work.display())
    );
    assert_eq!(trial.text("err"), "no\n");
}

#[test]
fn the_environment_is_what_was_given() {
    let mut trial = Trial::new();
    trial
        .program(Path::new("/usr/bin/env"), &[], &|| None)
        .unwrap();
    let text = trial.text("out");
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    assert_eq!(names, ["PATH", "HOME", "RUN"]);
}

#[test]
fn a_signal_that_ended_the_program() {
    let finished = Trial::new().shell("kill -SEGV $$");
    assert!(matches!(finished.end, End::Signal(11)), "{finished:?}");
}

#[test]
fn a_program_that_cannot_be_started() {
    let mut trial = Trial::new();
    let text = trial.path("text");
    std::fs::write(&text, "no program").unwrap();
    let error = trial
        .program(&trial.path("missing"), &[], &|| None)
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let error = trial.program(&text, &[], &|| None).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    std::fs::set_permissions(&text, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let error = trial.program(&text, &[], &|| None).unwrap_err();
    assert_eq!(
        error.raw_os_error(),
        Some(rustix::io::Errno::NOEXEC.raw_os_error()),
        "no shell runs it"
    );
    let error = trial
        .program(Path::new("/bin/true"), &["a\0b"], &|| None)
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    // Nobody has the lock but this process.
    trial.folder.lock().unlock().unwrap();
    let other = File::open(trial.path("lock")).unwrap();
    other.try_lock().unwrap();
}

#[test]
fn a_program_has_the_signals_and_files_of_its_own() {
    let mut trial = Trial::new();
    let leaked = File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let finished = trial.shell("ls -l /proc/self/fd | grep -c zero; cut -d' ' -f4-6 /proc/$$/stat; echo $$; cat /proc/self/status");
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    let text = trial.text("out");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[0], "0", "the open file is not the program's");
    assert_eq!(
        words[1], words[3],
        "the session is the supervisor's, and has no terminal"
    );
    assert_eq!(words[2], words[4], "the group is the program's");
    let mask = |name| {
        u64::from_str_radix(
            words[words.iter().position(|&word| word == name).unwrap() + 1],
            16,
        )
        .unwrap()
    };
    assert_eq!(mask("SigBlk:"), 0);
    assert_eq!(
        mask("SigIgn:") & 1 << 12,
        0,
        "this process ignores SIGPIPE, the program does not"
    );
}

/// A `stop` that gives a signal from when a file is there.
fn signal_when(path: PathBuf, signal: i32) -> impl Fn() -> Option<i32> {
    let given = Cell::new(false);
    move || {
        given.set(given.get() || path.exists());
        given.get().then_some(signal)
    }
}
