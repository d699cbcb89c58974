//! Processes of a run whose supervisor was killed: they are nobody's children.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::folder::PREFIX;

/// What a run's processes are known by: the entries of their environment that name the run's folder.
pub(super) struct Marks(Vec<Vec<u8>>);

impl Marks {
    /// A program's descendants inherit `HOME` and `TMPDIR`, which lie in the run's folder, and no other's do.
    /// In a folder that is no run's nothing is marked.
    pub(super) fn new(environment: &[(OsString, OsString)], run: &Path) -> Self {
        let is_run = run
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        let inside = environment
            .iter()
            .filter(|(_, value)| is_run && Path::new(value).starts_with(run));
        Self(
            inside
                .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
                .collect(),
        )
    }

    /// Kills every process of the run, and gives their names.
    ///
    /// Needs `/proc`, and takes about 20 µs for each process of this machine. A process that cleared its
    /// environment is not found, one that can't be killed is given up after a second.
    pub(super) fn kill(&self) -> Vec<String> {
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

    /// A process that has ended has no environment.
    fn are_of(&self, process: &Path) -> bool {
        let environ = std::fs::read(process.join("environ")).unwrap_or_default();
        environ
            .split(|&byte| byte == 0)
            .any(|entry| self.0.iter().any(|mark| mark == entry))
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
fn only_a_runs_folder_marks() {
    let environment = |home: &str| {
        [
            ("PATH".into(), "/bin".into()),
            ("HOME".into(), OsString::from(home)),
        ]
    };
    let marks = |home, run| Marks::new(&environment(home), Path::new(run)).0;
    assert_eq!(
        marks("/s/sde-run-1/home", "/s/sde-run-1"),
        [b"HOME=/s/sde-run-1/home"]
    );
    assert!(marks("/s/sde-run-12/home", "/s/sde-run-1").is_empty());
    assert!(marks("/s/home", "/s").is_empty());
    assert!(marks("/s/home", "/").is_empty());
}
