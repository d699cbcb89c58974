//! System calls, as a tool that is not ours sees them: killed at each, and how many a call makes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use sde::archiver::{Archiver, Batch};
use sde::{Key, SavePolicy};
use sde_archives::{Retention, StoreOptions};
use tempfile::tempdir;

use super::apps::{engine, expected_page, page, records, state};
use super::child::Worker;

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
fn with(call: &str, what: &str, dir: &std::path::Path) -> Option<Vec<String>> {
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null", "-e"])
        .arg(format!("trace={call}"))
        .arg("-e")
        .arg(format!("inject={call}:{what}"))
        .arg(std::env::current_exe().unwrap());
    let mut worker = Worker::by(strace, "saved pages", dir, &[("to", PAGES)]);
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
            let Some(told) = with(call, &killed, &store) else {
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

/// Found by leaving the calls out, which no other test noticed: what loses its power is a simulated medium.
#[test]
#[ignore = "part of ./test --only kill, which has strace"]
fn the_disk_is_asked_to_sync_files_and_folders() {
    for call in ["fdatasync", "fsync"] {
        let dir = tempdir().unwrap();
        let told = with(call, "error=EIO", &dir.path().join("store"));
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
