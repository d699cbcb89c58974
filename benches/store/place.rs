//! The place of the files.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The variable that names a folder on another disk.
const VARIABLE: &str = "SDE_BENCH_DIR";

/// The folder of this run, removed at its end.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        let below = std::env::var_os(VARIABLE)
            .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
        let folder = tempfile::Builder::new()
            .prefix("store-bench-")
            .tempdir_in(below);
        Self(folder.unwrap())
    }

    /// An empty folder for one try, removed at its end.
    pub fn folder(&self) -> TempDir {
        TempDir::new_in(self.0.path()).unwrap()
    }

    /// A line about the disk.
    pub fn about(&self) -> String {
        let path = self.0.path();
        let kind = file_system(path).unwrap_or_else(|| "unknown".to_owned());
        let warning = match kind.as_str() {
            "tmpfs" | "ramfs" => " That is no disk: nothing is durable there, set SDE_BENCH_DIR.",
            _ => "",
        };
        format!(
            "Files are in {}, file system {kind}.{warning}",
            path.display()
        )
    }
}

/// The kind of file system of a path, if the system gives it.
fn file_system(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    // Of those mounted at the same place the last is on top.
    let (_, kind) = mounts
        .filter(|(at, _)| path.starts_with(at))
        .max_by_key(|(at, _)| at.len())?;
    Some(kind.to_owned())
}
