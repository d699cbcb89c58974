//! Processes of a run whose supervisor was killed: they are nobody's children.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::folder::PREFIX;

/// What a run's processes are known by: its folder, in which their `HOME` or `TMPDIR` lies.
pub(crate) struct Marks {
    run: PathBuf,
    /// The folder without links: whoever looks for it may name it in another way than the run did.
    real: PathBuf,
}

impl Marks {
    /// A program's descendants inherit `HOME` and `TMPDIR`, and no other's lie in the run's folder. Other variables,
    /// such as `PWD`, may be those of a shell of somebody who looks into it.
    pub(crate) fn new(run: &Path) -> Self {
        Self {
            run: run.to_owned(),
            real: run.canonicalize().unwrap_or_else(|_| run.to_owned()),
        }
    }

    /// Kills every process of the run, and gives their names.
    ///
    /// Needs `/proc`, and takes about 20 µs for each process of this machine. A process that cleared its
    /// environment is not found, one that can't be killed is given up after a second.
    pub(crate) fn kill(&self) -> Vec<String> {
        let mut names = Vec::new();
        // Who forks while it is looked for is found the next time, and so is who has not gone yet.
        for _ in 0..100 {
            let found: Vec<PathBuf> = processes().filter(|process| self.are_of(process)).collect();
            if found.is_empty() {
                break;
            }
            for name in found.iter().filter_map(|process| kill(process)) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        names
    }

    /// A process that has ended has no environment. This one is no stray, also where a run started it.
    fn are_of(&self, process: &Path) -> bool {
        let environ = std::fs::read(process.join("environ")).unwrap_or_default();
        let me = std::process::id().to_string();
        process.file_name() != Some(me.as_ref())
            && environ.split(|&byte| byte == 0).any(|entry| {
                let value = [&b"HOME="[..], b"TMPDIR="].into_iter();
                let mut value = value.filter_map(|name| entry.strip_prefix(name));
                value.any(|value| self.hold(Path::new(OsStr::from_bytes(value))))
            })
    }

    /// Whether a path lies in the run's folder. A folder that is no run's has nothing.
    fn hold(&self, path: &Path) -> bool {
        let is_run = |name: &OsStr| name.to_string_lossy().starts_with(PREFIX);
        let name = self.run.file_name().filter(|name| is_run(name));
        name.is_some()
            && path.ancestors().any(|above| {
                let is_same = || above.canonicalize().is_ok_and(|above| above == self.real);
                above.file_name() == name && (above == self.run || is_same())
            })
    }
}

fn processes() -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

fn kill(process: &Path) -> Option<String> {
    let pid = rustix::process::Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)?;
    let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok()?;
    Some(format!("{} ({})", name.trim_end(), pid.as_raw_nonzero()))
}

#[cfg(test)]
#[test]
fn only_a_runs_folder_holds_marks() {
    let holds = |run: &str, home: &str| Marks::new(Path::new(run)).hold(Path::new(home));
    assert!(holds("/s/sde-run-1", "/s/sde-run-1/home"));
    assert!(holds("/s//sde-run-1", "/s/sde-run-1/tmp/sde-run-2/home"));
    assert!(!holds("/s/sde-run-1", "/s/sde-run-12/home"));
    assert!(!holds("/s/sde-run-1", "/t/sde-run-1/home"));
    assert!(!holds("/s", "/s/home"));
    assert!(!holds("/", "/s/home"));
    let scratch = tempfile::tempdir().unwrap();
    let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
    std::fs::create_dir_all(real.join("sde-run-1")).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let marks = Marks::new(&link.join("sde-run-1"));
    assert!(marks.hold(&real.join("sde-run-1/home")));
}
