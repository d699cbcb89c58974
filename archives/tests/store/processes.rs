//! Who is at what, and who is told to stop.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sde::Key;
use sde::archiver::{Announced, Archiver};
use sde_archives::DirStore;
use sde_archives::processes::{Process, cancel_stop, list, tell_to_stop};
use tempfile::tempdir;

use super::child::{Worker, tell, wait_for_parent};

/// A wait of this length is taken for a hang.
const LIMIT: Duration = Duration::from_secs(120);

fn key(number: u8) -> Key {
    Key::from_bytes([number; 32])
}

/// The processes, once they are as they are to be.
fn listed(store: &Path, is_so: impl Fn(&[Process]) -> bool) -> Vec<Process> {
    let begun = Instant::now();
    loop {
        let all = list(store).unwrap();
        if is_so(&all) {
            return all;
        }
        assert!(begun.elapsed() < LIMIT, "{all:#?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Announces a run, and stays at it until the parent writes a line.
pub fn announces(dir: &Path) {
    let store = DirStore::open(dir).unwrap();
    let held = store.announce("an app", &key(1));
    assert!(matches!(held, Announced::Mine(_)));
    tell(format_args!("announced"));
    wait_for_parent();
}

fn names(store: &Path) -> Vec<String> {
    let names = std::fs::read_dir(store).unwrap();
    let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.contains("STOP") || name.contains("unfinished"))
        .collect()
}

#[test]
fn a_process_tells_at_which_runs_it_is() {
    let dir = tempdir().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    assert!(list(dir.path()).unwrap().is_empty());
    let held = [1, 2].map(|number| store.announce("an app", &key(number)));
    let is_told = |all: &[Process]| all[0].runs.iter().all(|run| run.about.is_some());
    let all = listed(dir.path(), is_told);
    let one = &all[0];
    assert_eq!((all.len(), one.runs.len()), (1, 2));
    assert!(one.alive && one.since.is_some() && one.told.is_none());
    assert_eq!(one.process, std::process::id());
    assert!(
        one.runs
            .iter()
            .all(|run| run.about.as_ref().unwrap().0 == "an app")
    );
    drop(held);
    assert_eq!(list(dir.path()).unwrap()[0].runs.len(), 0);
    drop(store);
    listed(dir.path(), <[Process]>::is_empty);
}

#[test]
fn a_killed_process_is_gone_and_is_not_told() {
    let dir = tempdir().unwrap();
    let mut worker = Worker::start("announces", dir.path(), &[]);
    worker.wait_for("announced");
    let all = list(dir.path()).unwrap();
    assert!(all[0].alive, "{all:?}");
    worker.kill();
    let all = list(dir.path()).unwrap();
    assert_eq!((all.len(), all[0].runs.len()), (1, 1));
    assert!(!all[0].alive);
    assert!(tell_to_stop(dir.path(), None).unwrap().is_empty());
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_request_stays_as_long_as_one_whom_it_names() {
    let dir = tempdir().unwrap();
    let mut worker = Worker::start("announces", dir.path(), &[]);
    worker.wait_for("announced");
    let told = tell_to_stop(dir.path(), None).unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(names(dir.path()), ["STOP"]);
    let all = list(dir.path()).unwrap();
    assert_eq!(all[0].told, told[0].told);
    DirStore::open(dir.path()).unwrap();
    assert_eq!(names(dir.path()), ["STOP"]);
    // Another request takes its place.
    tell_to_stop(dir.path(), None).unwrap();
    assert_eq!(names(dir.path()), ["STOP"]);
    worker.kill();
    DirStore::open_read_only(dir.path()).unwrap();
    assert_eq!(names(dir.path()), ["STOP"]);
    DirStore::open(dir.path()).unwrap();
    assert!(names(dir.path()).is_empty());
    assert!(!cancel_stop(dir.path()).unwrap());
}

#[test]
fn a_process_that_attends_is_told_and_one_that_comes_later_is_not() {
    let dir = tempdir().unwrap();
    let heeding = || {
        let (tell, told) = mpsc::channel();
        let store = DirStore::open(dir.path()).unwrap();
        store.heed(std::sync::Arc::new(move |request| {
            tell.send(request.cloned()).is_ok()
        }));
        (store, told)
    };
    let (first, told) = heeding();
    let _at_work = first.attend().unwrap();
    let named = tell_to_stop(dir.path(), None).unwrap();
    let (later, told_later) = heeding();
    let _at_work_too = later.attend().unwrap();
    assert_eq!(told.recv_timeout(LIMIT).unwrap(), named[0].told);
    // The next request is the first that it hears.
    let at = std::time::SystemTime::now() + LIMIT;
    let named = tell_to_stop(dir.path(), Some(at)).unwrap();
    assert_eq!(named.len(), 2);
    let heard = told_later.recv_timeout(LIMIT).unwrap().unwrap();
    assert!(heard.at > std::time::UNIX_EPOCH);
    assert_eq!(told.recv_timeout(LIMIT).unwrap(), Some(heard));
    assert!(cancel_stop(dir.path()).unwrap());
    assert_eq!(told.recv_timeout(LIMIT).unwrap(), None);
}
