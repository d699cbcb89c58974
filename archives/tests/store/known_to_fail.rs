//! What must be true and is not yet. Each test says what it gives now; the day that this is cured it
//! fails, and goes to where it belongs.

use std::fs::{File, read_dir};
use std::path::Path;

use sde_archives::vfs::{Disk, Vfs};
use tempfile::tempdir;

/// The flags with which this process has a file open.
fn flags(path: &Path) -> Vec<u32> {
    let path = path.canonicalize().unwrap();
    let open = read_dir("/proc/self/fd").unwrap().flatten();
    let of_file = open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == path));
    let flags = of_file.map(|fd| {
        let info = Path::new("/proc/self/fdinfo").join(fd.file_name());
        let info = std::fs::read_to_string(info).unwrap();
        let octal = info.lines().find_map(|line| line.strip_prefix("flags:"));
        u32::from_str_radix(octal.unwrap().trim(), 8).unwrap()
    });
    flags.collect()
}

/// Found by reading: on NFS a lock that keeps all others out is refused on a file that was opened for reading
/// only, so that a compaction took it that there are no locks.
#[test]
#[cfg(target_os = "linux")]
#[should_panic(expected = "it is opened with mode [0]")]
fn a_file_is_opened_for_writing_to_be_locked() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("file");
    File::create(&path).unwrap();
    let _lock = Disk.try_lock(&path).unwrap().unwrap();
    let modes: Vec<u32> = flags(&path).into_iter().map(|flags| flags & 3).collect();
    let is_written = modes.iter().any(|mode| *mode != 0);
    assert!(is_written, "it is opened with mode {modes:?}");
}
