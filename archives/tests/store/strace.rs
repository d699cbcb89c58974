//! Killed at each system call by a tool that is not ours.

use std::process::Command;

use sde::SavePolicy;
use tempfile::tempdir;

use super::apps::{engine, expected_page, page};
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
