//! Processes that write, checkpoint and compact one store at once, killed at any moment: nothing
//! that one of them acknowledged is lost.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sde::archiver::Archiver;
use sde::{SavePolicy, Sde};
use sde_archives::{Retention, StoreOptions};
use tempfile::tempdir;

use super::apps::{engine, expected_page, fresh, page};
use super::child::{self, Worker};
use super::stopping::Stopping;

/// A worker's job: each second page from one on, a checkpoint now and then, and a compaction.
pub fn work(dir: &Path) {
    let options = StoreOptions::new()
        .segment_size(8 << 10)
        .grace(Duration::ZERO);
    let store = options.vfs(Arc::new(Stopping::default())).open(dir);
    let store = store.unwrap();
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
    let from = child::setting("from").unwrap();
    let to = child::setting("to").unwrap_or(u64::MAX);
    for number in (from..to).step_by(2) {
        page.call(&sde, number).unwrap();
        child::tell(format_args!("done {number}"));
        // With one step each, so that the two do not keep time with one another.
        if number % 7 == from % 7 {
            sde.checkpoint().unwrap();
        }
        if number % 13 == from % 13 {
            store.compact(&Retention::new()).unwrap();
        }
    }
    sde.archive().unwrap();
    child::tell(format_args!("end"));
}

fn done(line: &str) -> Option<u64> {
    line.strip_prefix("done ")?.parse().ok()
}

/// All of them load. The other process may be compacting, without any grace for those who read: what
/// was not found is looked for again, and nobody else computes it. Gives how often something was not
/// found.
fn check(dir: &Path, acknowledged: &BTreeSet<u64>, when: &str) -> usize {
    let mut left = acknowledged.clone();
    let mut misses = 0;
    for _ in 0..20 {
        let (sde, _) = engine(dir, SavePolicy::OnRequest);
        left.retain(|number| {
            let before = sde.stats().total.computed;
            assert_eq!(*page.call(&sde, *number).unwrap(), expected_page(*number));
            sde.stats().total.computed != before
        });
        std::mem::forget(sde);
        misses += left.len();
        if left.is_empty() {
            return misses;
        }
    }
    panic!("{when}: {left:?} are lost");
}

#[test]
fn two_processes_killed_at_random_lose_nothing_acknowledged() {
    let kills = match std::env::var_os("SDE_LONG_TESTS") {
        Some(_) => 1000,
        None => 60,
    };
    let random = RandomState::new();
    let mut dir = tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    let (mut checked, mut misses) = (0, 0);
    let start = |dir: &Path, from: u64| Worker::start("together", dir, &[("from", from)]);
    let mut workers = [start(dir.path(), 0), start(dir.path(), 1)];
    for kill in 0..kills {
        let number = random.hash_one(kill);
        let (which, lines) = (number as usize % 2, number >> 8 & 15);
        let told = (0..lines).map_while(|_| workers[which].next());
        acknowledged.extend(told.filter_map(|line| done(&line)));
        // It goes on meanwhile, so the kill falls anywhere; the other one goes on all the time.
        let from = acknowledged.last().map_or(0, |last| last / 2 * 2 + 2) + which as u64;
        let next = start(dir.path(), from);
        let killed = std::mem::replace(&mut workers[which], next);
        acknowledged.extend(killed.kill().iter().filter_map(|line| done(line)));
        checked += acknowledged.len();
        misses += check(dir.path(), &acknowledged, &format!("after kill {kill}"));
        if kill % 50 == 49 {
            // Another store, so that looking at all of it does not take longer and longer.
            for worker in workers {
                acknowledged.extend(worker.kill().iter().filter_map(|line| done(line)));
            }
            let quiet = check(dir.path(), &acknowledged, "after both were killed");
            assert_eq!(
                quiet, 0,
                "nobody is compacting, and something is not found at once"
            );
            acknowledged.clear();
            dir = tempdir().unwrap();
            workers = [start(dir.path(), 0), start(dir.path(), 1)];
        }
    }
    println!("{kills} kills, {misses} misses when {checked} pages were asked for");
    // A find looks again when a file is gone, so that hardly anything is missed, even without grace.
    assert!(misses * 1000 <= checked, "{misses} misses of {checked}");
}

/// The process is stopped before each call that changes something, and killed there.
#[test]
fn killed_in_each_call_nothing_acknowledged_is_lost() {
    let step = match std::env::var_os("SDE_LONG_TESTS") {
        Some(_) => 1,
        None => 7,
    };
    let mut calls = 0;
    for call in (1..).step_by(step) {
        let dir = tempdir().unwrap();
        let dir = dir.path().join("store");
        let settings = [("from", 0), ("to", 60), ("stop_at_call", call)];
        let mut worker = Worker::start("together", &dir, &settings);
        let mut acknowledged = BTreeSet::new();
        let mut ended = false;
        while let Some(line) = worker.next() {
            acknowledged.extend(done(&line));
            ended = line == "end";
            if ended || line == "stopped" {
                break;
            }
        }
        worker.kill();
        let misses = check(&dir, &acknowledged, &format!("killed in call {call}"));
        assert_eq!(misses, 0, "killed in call {call}: nobody is compacting");
        if ended {
            break;
        }
        calls = call;
    }
    assert!(calls > 100, "{calls}");
    println!("killed in calls 1 to {calls}");
}

/// Where one result after the other is made durable there are zeros after the last: frames that come in their place are
/// found, though the file is no longer than before, and what is left of them is cut off.
#[test]
fn frames_in_place_of_zeros_are_found_and_the_rest_of_them_is_cut_off() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let reader = StoreOptions::new().read_only().open(dir.path()).unwrap();
    let file = || {
        let mut names = std::fs::read_dir(dir.path().join("entries")).unwrap();
        std::fs::read(names.next().unwrap().unwrap().path()).unwrap()
    };
    let mut lengths = BTreeSet::new();
    for number in 0..20_u64 {
        let given = sde::inputs! { number: number };
        let made = sde.request(&page, &given).run().unwrap();
        lengths.insert(file().len());
        reader.refresh().unwrap();
        assert!(reader.find(&made.key).unwrap().is_some(), "{number}");
    }
    assert!(lengths.len() < 20, "{lengths:?}");
    assert!(file().ends_with(&[0; 100]));
    drop(sde);
    assert!(!file().ends_with(&[0; 100]));
    assert!(file().len() < *lengths.last().unwrap());
}
