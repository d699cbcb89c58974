//! `sde exec`, with real small programs.

mod also;
mod attempts;
mod each;
mod ends;
mod fails;
mod given;
mod image;
mod jobs;
mod judged;
mod looks;
mod outputs;
mod remembers;
mod shared;
mod traced;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::kit;
pub use attempts::until;

/// A folder in which somebody works.
struct Desk {
    _folder: tempfile::TempDir,
    path: PathBuf,
    /// Scripts append to it, so it tells how often they ran.
    counter: String,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (path, scratch) = (folder.path().join("desk"), folder.path().join("tmp"));
        std::fs::create_dir(&path).unwrap();
        std::fs::create_dir(scratch).unwrap();
        let counter = folder.path().join("count").to_str().unwrap().to_owned();
        Self {
            path,
            counter,
            _folder: folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn scratch(&self) -> PathBuf {
        self._folder.path().join("tmp")
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes a script that counts its runs in the file that is its first argument.
    fn script(&self, name: &str, lines: &str) {
        self.write(name, &format!("echo run >> \"$1\"\n{lines}\n"));
    }

    /// How often scripts ran.
    fn runs(&self) -> usize {
        let counted = std::fs::read_to_string(&self.counter).unwrap_or_default();
        counted.lines().count()
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        // A shell that starts tests in the background has them ignore INT.
        let program = kit::program();
        let mut command = Command::new("env");
        command
            .arg("--default-signal=INT,QUIT")
            .arg(program.get_program())
            .args(program.get_args())
            .args(arguments)
            .current_dir(&self.path)
            .env("TMPDIR", self.scratch());
        for variable in ["SDE_STORE", "SDE_ALSO", "SDE_DISABLE"] {
            command.env_remove(variable);
        }
        command
    }

    fn sde(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments).output().unwrap())
    }

    /// `sde exec OPTIONS -- LINE`.
    fn exec(&self, options: &[&str], line: &[&str]) -> Done {
        self.sde(&[&["exec"], options, &["--"], line].concat())
    }

    /// What came of `sde exec` on a script of `sh`.
    fn exec_script(&self, options: &[&str], script: &str) -> Done {
        self.script_command(options, script)
            .output()
            .map(Done::of)
            .unwrap()
    }

    fn script_command(&self, options: &[&str], script: &str) -> Command {
        let text = ["--text", &self.counter];
        let line = ["--", "sh", script, &self.counter];
        self.command([&["exec"], options, &text, &line].concat())
    }
}

/// What came of a command; a signal that ended it has the status of shells.
#[derive(Debug)]
struct Done {
    out: String,
    err: String,
    status: i32,
}

impl Done {
    fn of(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let by_signal = || 128 + output.status.signal().unwrap();
        let status = output.status.code().unwrap_or_else(by_signal);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(!err.contains("panicked"), "{err}");
        Self { out, err, status }
    }

    /// Its standard output, if all is well but for the note on the store.
    #[track_caller]
    fn well(self) -> String {
        assert_eq!(self.status, 0, "{self:?}");
        let told = self
            .err
            .lines()
            .filter(|line| !line.contains("results are kept in"));
        assert_eq!(told.collect::<Vec<_>>(), [""; 0], "{self:?}");
        self.out
    }

    #[track_caller]
    fn ends(&self, status: i32) {
        assert_eq!(self.status, status, "{self:?}");
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}
