//! System calls, as a tool that is not ours sees them: killed at each, and how many a call makes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use sde::archiver::{Archiver, Batch};
use sde::{Key, SavePolicy};
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::tempdir;

use super::apps::{engine, expected_page, page, records, state};
use super::child::{Worker, tell};

/// The calls by which a store comes to the disk.
const CALLS: [&str; 12] = [
    "openat",
    "write",
    "writev",
    "fdatasync",
    "fsync",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "close",
];

/// How many pages a worker saves.
const PAGES: u64 = 4;

/// What a worker told that something happens to in this call; `None` if it came to its end.
fn with(job: &str, call: &str, what: &str, dir: &Path) -> Option<Vec<String>> {
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null", "-e"])
        .arg(format!("trace={call}"))
        .arg("-e")
        .arg(format!("inject={call}:{what}"))
        .arg(std::env::current_exe().unwrap());
    let mut worker = Worker::by(strace, job, dir, &[("to", PAGES)]);
    let told = worker.rest();
    match told.last().is_some_and(|last| last == "ended") {
        true => None,
        false => Some(told),
    }
}

#[test]
#[ignore = "part of ./test --only kill, which has strace"]
fn nothing_acknowledged_is_lost_at_any_system_call() {
    let mut kills = 0;
    for call in CALLS {
        for time in 1.. {
            let dir = tempdir().unwrap();
            let store = dir.path().join("store");
            let killed = format!("signal=SIGKILL:when={time}");
            let Some(told) = with("saved pages", call, &killed, &store) else {
                break;
            };
            kills += 1;
            let done = told.iter().filter_map(|line| line.strip_prefix("done "));
            let last = done.filter_map(|number| number.parse::<u64>().ok()).max();
            let (sde, _) = engine(&store, SavePolicy::OnRequest);
            for number in 0..PAGES {
                assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
            }
            let least = PAGES - last.map_or(0, |last| last + 1);
            let computed = sde.stats().total.computed;
            assert!(
                computed <= least,
                "{call} {time}: {computed} were computed, {told:?}"
            );
            std::mem::forget(sde);
        }
    }
    println!("{kills} kills");
    assert!(kills > 60, "{kills}");
}

/// A worker's job: copies one store to another.
pub fn copy(dir: &Path) {
    let from = DirStore::open_read_only(dir.join("one")).unwrap();
    let to = StoreOptions::new().segment_size(1);
    let to = to.open(dir.join("other")).unwrap();
    let copied = to.copy_from(&from, |_| true).unwrap();
    assert_eq!(copied.entries + copied.there, PAGES as usize);
    tell(format_args!("ended"));
}

#[test]
#[ignore = "part of ./test --only kill, which has strace"]
fn a_copy_that_is_killed_has_whole_entries_and_goes_on() {
    let made = tempdir().unwrap();
    let one = made.path().join("one");
    let (sde, _) = engine(&one, SavePolicy::OnRequest);
    for number in 0..PAGES {
        page.call(&sde, number).unwrap();
        sde.checkpoint().unwrap();
    }
    sde.finish().unwrap();
    drop(sde);
    let (mut kills, mut parts) = (0, 0);
    for call in CALLS {
        for time in 1.. {
            let dir = tempdir().unwrap();
            std::os::unix::fs::symlink(&one, dir.path().join("one")).unwrap();
            let other = dir.path().join("other");
            let killed = format!("signal=SIGKILL:when={time}");
            if with("copy", call, &killed, dir.path()).is_none() {
                break;
            }
            kills += 1;
            let mut there = Vec::new();
            if other.join("FORMAT").exists() {
                let left = DirStore::open_read_only(&other).unwrap();
                there = left.copyable(|one| Some(one.is_damaged)).unwrap();
            }
            assert!(!there.contains(&true), "{call} {time}");
            parts += usize::from((1..PAGES as usize).contains(&there.len()));
            copy(dir.path());
            let (sde, _) = engine(&other, SavePolicy::OnRequest);
            for number in 0..PAGES {
                assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
            }
            assert_eq!(sde.stats().total.computed, 0, "{call} {time}");
            std::mem::forget(sde);
        }
    }
    println!("{kills} kills, after {parts} of which a part was there");
    assert!(kills > 40 && parts > 0, "{kills} {parts}");
}

/// Found by leaving the calls out, which no other test noticed: what loses its power is a simulated medium.
#[test]
#[ignore = "part of ./test --only kill, which has strace"]
fn the_disk_is_asked_to_sync_files_and_folders() {
    for call in ["fdatasync", "fsync"] {
        let dir = tempdir().unwrap();
        let told = with("saved pages", call, "error=EIO", &dir.path().join("store"));
        assert!(told.is_some(), "it ends well although each {call} fails");
    }
}

/// How often each is done.
const TIMES: u8 = 100;

/// What a call of each kind begins and ends with.
const MARK: &str = "/no such file: ";

/// A state that fills a segment.
fn long_state(number: u8) -> Batch {
    state(Key::from_bytes([number; 32]), vec![u64::MAX; 1 << 12])
}

/// A worker's job: hits, misses and saves in a store with a capacity.
pub fn calls(dir: &Path) {
    let limit = Retention::new().capacity(1 << 18);
    let options = StoreOptions::new().segment_size(1 << 14).retention(limit);
    let store = options.open(dir).unwrap();
    let marked = |what: &str, job: &dyn Fn()| {
        drop(std::fs::metadata(format!("{MARK}{what}")));
        job();
        drop(std::fs::metadata(MARK));
    };
    let (sde, _) = engine(dir, SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    let found = records(&sde)[0].key;
    store.refresh().unwrap();
    for number in 0..TIMES {
        let state = long_state(number);
        marked("save", &|| drop(store.save(&state).unwrap()));
    }
    for number in 0..TIMES {
        let missed = Key::from_bytes([number; 32]);
        marked("miss", &|| assert!(store.find(&missed).unwrap().is_none()));
        marked("hit", &|| assert!(store.find(&found).unwrap().is_some()));
    }
    std::mem::forget(sde);
}

/// Found by reading: a save ran the compaction that it made due, and removed what it superseded of scratch, for which it
/// listed directories.
#[test]
#[ignore = "part of ./test --only kill, which has strace"]
fn no_hit_and_no_save_lists_a_directory() {
    let dir = tempdir().unwrap();
    let log = dir.path().join("log");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-e", "trace=%file,%desc", "-o"])
        .arg(&log)
        .arg(std::env::current_exe().unwrap());
    Worker::by(strace, "calls", &dir.path().join("store"), &[]).rest();
    let log = std::fs::read_to_string(log).unwrap();
    let calls = log
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace));
    let caller = calls
        .clone()
        .find(|(_, call)| call.contains(MARK))
        .unwrap()
        .0;
    let mut of_kind = BTreeMap::<&str, Vec<Vec<&str>>>::new();
    let mut kind = None;
    for (_, call) in calls.filter(|(thread, _)| *thread == caller) {
        match (call.split_once(MARK), kind) {
            (Some((_, rest)), _) => {
                kind = rest.split('"').next().filter(|kind| !kind.is_empty());
                if let Some(kind) = kind {
                    of_kind.entry(kind).or_default().push(Vec::new());
                }
            }
            // The end of a call that another thread's came between.
            (None, Some(_)) if call.trim().starts_with('<') => {}
            (None, Some(kind)) => {
                let name = call.trim().split('(').next().unwrap();
                let calls = of_kind.get_mut(kind).unwrap();
                calls.last_mut().unwrap().push(name);
            }
            (None, None) => {}
        }
    }
    assert_eq!(of_kind.len(), 3);
    for (kind, mut calls) in of_kind {
        assert_eq!(calls.len(), usize::from(TIMES));
        calls.sort_by_key(Vec::len);
        let (middle, most) = (&calls[calls.len() / 2], &calls[calls.len() - 1]);
        println!(
            "{kind}: {} calls, {} at most: {middle:?}",
            middle.len(),
            most.len()
        );
        let lists = calls.iter().filter(|calls| calls.contains(&"getdents64"));
        let lists = lists.count();
        assert!(
            kind == "miss" || lists == 0,
            "{lists} of {TIMES} list a directory: {kind}"
        );
    }
}
