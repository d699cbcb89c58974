//! A process that forks with a store open.

#![allow(unsafe_code, reason = "only unsafe code can fork")]

use std::io::{Read, Write, pipe};
use std::sync::Arc;
use std::time::Duration;

use sde::Key;
use sde::archiver::{Announced, ArchiveError, Archiver, Selection};
use sde_archives::{DirStore, StoreOptions};
use tempfile::tempdir;

use super::apps::state;
use super::log::warnings;
use super::odd_disk::OddDisk;
use super::watchdog::Watchdog;

fn key(number: u8) -> Key {
    Key::from_bytes([number; 32])
}

/// Saves a state of this number, and commits.
fn commit(store: &DirStore, number: u8) -> Result<(), ArchiveError> {
    store.save(&state(key(number), number))?;
    store.commit(Selection::Checkpoint)
}

/// How a child ended.
fn ended(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: the status is written to; the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

#[test]
fn what_a_process_has_announced_stays_when_its_child_ends() {
    let _dog = Watchdog::new("a child that ends", Duration::from_secs(120));
    let dir = tempdir().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    let announced = store.announce("app", &key(1));
    assert!(matches!(announced, Announced::Mine(_)));
    let there = || {
        let names = std::fs::read_dir(dir.path().join("work")).unwrap();
        let mut names: Vec<_> = names.map(|name| name.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = there();
    assert_eq!(before.len(), 2, "a lease and a key: {before:?}");
    // SAFETY: the child removes files at the most, and ends without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop((announced, store));
        // SAFETY: it ends the child.
        unsafe { libc::_exit(0) }
    }
    assert_eq!(ended(child), 0);
    assert_eq!(there(), before);
}

/// Found by a hostile program: parent and child gave their next generations one name. The child's `finish` failed in 8 of 30
/// rounds: "File exists".
#[test]
fn a_child_and_its_parent_commit_at_once() {
    let _dog = Watchdog::new("a process that forks", Duration::from_secs(120));
    let dir = tempdir().unwrap();
    let ((mut came, comes), (answer, answers)) = (pipe().unwrap(), pipe().unwrap());
    let parent = std::process::id();
    // A child says so, and waits until its parent answers.
    let disk = OddDisk::that_first(move || match std::process::id() == parent {
        true => Ok(()),
        false => {
            (&comes).write_all(&[1])?;
            (&answer).read_exact(&mut [0])
        }
    });
    let options = StoreOptions::new().vfs(Arc::new(disk));
    let store = options.open(dir.path()).unwrap();
    commit(&store, 1).unwrap();
    // SAFETY: the child saves to files, which allocates, and ends without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(answers);
        let committed = commit(&store, 2);
        // SAFETY: it ends the child.
        unsafe { libc::_exit(i32::from(committed.is_err())) }
    }
    came.read_exact(&mut [0]).unwrap();
    commit(&store, 3).unwrap();
    (&answers).write_all(&[1]).unwrap();
    assert_eq!(ended(child), 0, "the child could not commit");
    let (left, warned) = warnings(|| DirStore::open_read_only(dir.path()).unwrap());
    assert_eq!(warned, [""; 0]);
    for number in 1..=3 {
        assert!(left.find_scratch(&key(number)).unwrap().is_some());
    }
}
