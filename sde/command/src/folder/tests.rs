//! Folders of runs: made, swept, removed.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{LOCK, RunFolder, UNLOCKED, host, open_up, remove, sweep};

fn names(scratch: &Path) -> usize {
    fs::read_dir(scratch).unwrap().count()
}

/// A folder whose process is gone: its lock is free, and nothing was dropped.
fn killed(scratch: &Path) -> std::path::PathBuf {
    let run = RunFolder::make(scratch).unwrap();
    run.lock().unlock().unwrap();
    let path = run.path().to_path_buf();
    std::mem::forget(run);
    path
}

#[test]
fn a_run_has_its_folders_and_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let run = RunFolder::make(scratch.path()).unwrap();
    for folder in [run.path(), &run.work(), &run.home(), &run.tmp()] {
        assert_eq!(
            folder.metadata().unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            folder.display()
        );
    }
    fs::write(run.path().join("captured"), "text").unwrap();
    run.clear().unwrap();
    assert_eq!(
        names(run.path()),
        2,
        "the lock and what the caller put there"
    );
    run.clear().unwrap();
    drop(run);
    assert_eq!(names(scratch.path()), 0);
}

#[test]
fn what_killed_runs_left_goes_and_what_is_locked_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let alive = RunFolder::make(scratch.path()).unwrap();
    let (one, two) = (killed(scratch.path()), scratch.path().join("sde-run-2"));
    fs::create_dir(&two).unwrap();
    fs::write(two.join(LOCK), host()).unwrap();
    assert_eq!(sweep(scratch.path()).unwrap().folders, 2);
    assert!(!one.exists() && !two.exists() && alive.work().exists());
    let left = killed(scratch.path());
    let next = RunFolder::make(scratch.path()).unwrap();
    assert!(!left.exists(), "the next run sweeps");
    assert!(alive.work().exists() && next.work().exists());
}

#[test]
fn a_folder_that_is_being_made_stays_for_an_hour() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("sde-run-new");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(UNLOCKED), host()).unwrap();
    assert_eq!(sweep(scratch.path()).unwrap().folders, 0);
    let past = std::time::SystemTime::now() - super::MAKING - std::time::Duration::from_secs(1);
    let age = |folder: &Path| File::open(folder).unwrap().set_modified(past).unwrap();
    age(&folder);
    // A user may have such a folder.
    let users = scratch.path().join("sde-run-of-may");
    fs::create_dir(&users).unwrap();
    fs::write(users.join("results"), "").unwrap();
    age(&users);
    sweep(scratch.path()).unwrap();
    assert!(!folder.exists() && users.join("results").exists());
}

#[test]
fn others_folders_stay() {
    let scratch = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join(LOCK), host()).unwrap();
    symlink(elsewhere.path(), scratch.path().join("sde-run-link")).unwrap();
    let other_host = scratch.path().join("sde-run-host");
    fs::create_dir(&other_host).unwrap();
    fs::write(other_host.join(LOCK), "another host\n").unwrap();
    let other_name = scratch.path().join("other");
    fs::create_dir(&other_name).unwrap();
    fs::write(other_name.join(LOCK), host()).unwrap();
    let linked = scratch.path().join("sde-run-lock");
    fs::create_dir(&linked).unwrap();
    symlink(elsewhere.path().join(LOCK), linked.join(LOCK)).unwrap();
    if rustix::process::geteuid().is_root() {
        let other_user = scratch.path().join("sde-run-user");
        fs::create_dir(&other_user).unwrap();
        fs::write(other_user.join(LOCK), host()).unwrap();
        std::os::unix::fs::chown(&other_user, Some(65534), None).unwrap();
    }
    let before = names(scratch.path());
    assert_eq!(sweep(scratch.path()).unwrap().folders, 0);
    assert_eq!(names(scratch.path()), before);
    assert!(elsewhere.path().join(LOCK).exists());
}

#[test]
fn a_removal_removes_links_and_not_what_they_name() {
    let scratch = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("kept"), "text").unwrap();
    fs::set_permissions(elsewhere.path(), Permissions::from_mode(0o500)).unwrap();
    let run = RunFolder::make(scratch.path()).unwrap();
    symlink(elsewhere.path(), run.work().join("link")).unwrap();
    fs::remove_dir(run.home()).unwrap();
    symlink(elsewhere.path(), run.home()).unwrap();
    open_up(&run.work()).unwrap();
    drop(run);
    assert_eq!(names(scratch.path()), 0);
    assert!(elsewhere.path().join("kept").exists());
    assert_eq!(
        elsewhere.path().metadata().unwrap().permissions().mode() & 0o777,
        0o500
    );
}

/// Root may do everything, so that only another user sees whether this holds.
#[test]
fn a_removal_copes_with_folders_that_may_not_be_changed() {
    let scratch = tempfile::tempdir().unwrap();
    let run = RunFolder::make(scratch.path()).unwrap();
    let inner = run.work().join("a").join("b");
    fs::create_dir_all(&inner).unwrap();
    fs::write(inner.join("file"), "text").unwrap();
    for folder in [&inner, &run.work().join("a"), &run.work()] {
        fs::set_permissions(folder, Permissions::from_mode(0o000)).unwrap();
    }
    run.clear().unwrap();
    assert!(!run.work().exists());
    remove(&run.work()).unwrap();
    fs::set_permissions(run.path(), Permissions::from_mode(0o000)).unwrap();
    drop(run);
    assert_eq!(names(scratch.path()), 0);
}

#[test]
#[ignore = "part of the test below"]
fn sweep_from_inside() {
    let run = std::env::var_os("HOME").unwrap();
    let scratch = Path::new(&run).ancestors().nth(2).unwrap();
    assert_eq!(sweep(scratch).unwrap().folders, 1);
}

/// A run that was killed may have started `sde`, which lives on and sweeps.
#[test]
fn a_sweep_does_not_end_its_own_process() {
    let scratch = tempfile::tempdir().unwrap();
    let run = killed(scratch.path());
    let mut inside = std::process::Command::new(std::env::current_exe().unwrap());
    inside.args(["folder::tests::sweep_from_inside", "--exact", "--ignored"]);
    inside.stdout(std::process::Stdio::null());
    let status = inside.env("HOME", run.join("home")).status().unwrap();
    assert!(status.success() && !run.exists(), "{status}");
}
