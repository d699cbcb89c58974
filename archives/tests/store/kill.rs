//! Killed at any moment: nothing acknowledged is lost, and a restart goes on.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use sde::{AppSource, Event, EventLog, Policy, SavePolicy, Sde, Source, inputs};
use sde_archives::DirStore;
use tempfile::tempdir;

use super::apps::{engine, expected_page, orbit, page, plain_orbit};
use super::child::{self, Worker};
use super::says::says;

/// A worker's job: computes pages and tells of each when it is durable.
pub fn pages(dir: &Path) {
    let (sde, _) = engine(dir, SavePolicy::EveryResult);
    child::tell(format_args!("ready"));
    if child::setting("wait").is_some() {
        child::wait_for_parent();
    }
    let from = child::setting("from").unwrap_or(0);
    for number in from..child::setting("to").unwrap_or(u64::MAX) {
        page.call(&sde, number).unwrap();
        child::tell(format_args!("done {number}"));
    }
}

static WAITING: AtomicBool = AtomicBool::new(false);

/// A page that is done when another call waits for it.
#[sde::app]
fn awaited_page(number: u64) -> Vec<u64> {
    while !WAITING.swap(false, Ordering::Acquire) {
        std::thread::yield_now();
    }
    expected_page(number)
}

/// A worker's job: each page is asked for twice at once, and the call that waited for the other tells of it.
pub fn awaited_pages(dir: &Path) {
    let observer = |event: &Event| {
        if matches!(event, Event::Waiting { .. }) {
            WAITING.store(true, Ordering::Release);
        }
    };
    let builder = Sde::builder()
        .store(DirStore::open(dir).unwrap())
        .save(SavePolicy::OnRequest);
    let builder = builder.save(SavePolicy::EveryResult).observer(observer);
    let sde = builder.build().unwrap();
    child::tell(format_args!("ready"));
    for number in child::setting("from").unwrap_or(0).. {
        let ask = || {
            let inputs = inputs! { number: number };
            let made = sde.request(&awaited_page, &inputs).run().unwrap();
            if made.source == Source::Waited {
                child::tell(format_args!("done {number}"));
            }
        };
        std::thread::scope(|scope| [scope.spawn(ask), scope.spawn(ask)].map(|_| ()));
    }
}

/// A worker's job: the same, with a checkpoint and the end of a program.
pub fn saved_pages(dir: &Path) {
    let (sde, _) = engine(dir, SavePolicy::EveryResult);
    for number in 0..child::setting("to").unwrap() {
        page.call(&sde, number).unwrap();
        child::tell(format_args!("done {number}"));
        if number == 1 {
            sde.checkpoint().unwrap();
        }
    }
    sde.finish().unwrap();
    drop(sde);
    child::tell(format_args!("ended"));
}

/// A worker's job: an iterative app that saves its state at each step.
pub fn one_orbit(dir: &Path) {
    let (sde, log) = engine(dir, SavePolicy::EveryResult);
    let end = orbit
        .call(&sde, 0.3, child::setting("steps").unwrap())
        .unwrap();
    child::tell(format_args!(
        "end {:016x} {:?}",
        end.to_bits(),
        log.sources("orbit")
    ));
}

/// A worker's job: saves until files may not grow any more, and goes on.
pub fn fill(dir: &Path) {
    let log = EventLog::new();
    let builder = Sde::builder()
        .store(DirStore::open(dir).unwrap())
        .save(SavePolicy::OnRequest);
    let sde = builder.observer(log.clone()).build().unwrap();
    for number in 0..child::setting("to").unwrap() {
        page.call(&sde, number).unwrap();
        match sde.checkpoint() {
            Ok(()) => child::tell(format_args!("saved {number}")),
            Err(error) => child::tell(format_args!("failed {number}: {error:#}")),
        }
    }
}

fn acknowledged(told: &[String]) -> impl Iterator<Item = u64> {
    told.iter()
        .filter_map(|line| line.strip_prefix("done ")?.parse().ok())
}

#[test]
fn nothing_acknowledged_is_lost_when_the_writer_is_killed() {
    killed_while_it_saves("pages", &page);
}

/// Those who waited for a run were woken before its result was on the disk.
#[test]
fn nothing_is_lost_that_was_given_to_one_who_waited() {
    killed_while_it_saves("awaited pages", &awaited_page);
}

/// Kills a worker that tells of what it was given, and looks for that in the store.
fn killed_while_it_saves(job: &str, app: &impl AppSource) {
    let dir = tempdir().unwrap();
    let mut from = 0;
    for round in 0..8 {
        let mut worker = Worker::start(job, dir.path(), &[("from", from)]);
        worker.wait_for("ready");
        // It goes on while it is killed, so the kill falls anywhere.
        let told: Vec<_> = (0..1 + 7 * round).map_while(|_| worker.next()).collect();
        let rest = worker.kill();
        let last = acknowledged(&told)
            .chain(acknowledged(&rest))
            .max()
            .unwrap();

        let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
        for number in 0..=last {
            let inputs = inputs! { number: number };
            let remembered = sde.request(app, &inputs).policy(Policy::OnlyIfRemembered);
            let found = remembered.run().unwrap().results;
            let found = found.get::<Vec<u64>>("result").unwrap();
            assert_eq!(*found, expected_page(number));
        }
        std::mem::forget(sde);
        // What was being saved when the kill came may be there or not.
        from = last + 1;
    }
}

#[test]
fn an_iteration_killed_at_each_state_goes_on_and_ends_in_the_same_bits() {
    let dir = tempdir().unwrap();
    let steps = 12;
    for stop in 1..steps {
        let settings = [("steps", steps), ("stop_at_state", stop)];
        let mut worker = Worker::start("orbit", dir.path(), &settings);
        assert_eq!(worker.next().unwrap(), format!("from {}", stop - 1));
        worker.wait_for(&format!("state {stop}"));
        worker.kill();
    }
    let mut worker = Worker::start("orbit", dir.path(), &[("steps", steps)]);
    assert_eq!(worker.next().unwrap(), format!("from {}", steps - 1));
    let end = plain_orbit(0.3, steps).to_bits();
    let last = worker.rest().pop().unwrap();
    assert_eq!(last, format!("end {end:016x} {:?}", [Source::Computed]));
    let mut worker = Worker::start("orbit", dir.path(), &[("steps", steps)]);
    let last = worker.rest().pop().unwrap();
    assert_eq!(last, format!("end {end:016x} {:?}", [Source::Loaded]));
}

/// A limit on the size of files stands for a full disk: a write is cut short in the
/// middle and then fails.
#[test]
fn a_failed_write_is_told_of_and_the_next_save_begins_a_new_file() {
    let dir = tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -f 16; trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap());
    let pages = 60;
    let told = Worker::by(shell, "fill", dir.path(), &[("to", pages)]).rest();
    assert_eq!(told.len() as u64, pages, "{told:?}");
    let failed: Vec<_> = told
        .iter()
        .filter(|line| line.starts_with("failed"))
        .collect();
    assert!(failed.len() > 2, "{told:?}");
    says(&failed[0], "the computation goes on");
    // What failed is saved by the next save, to another file: no two in a row fail.
    for pair in told.windows(2) {
        assert!(
            pair.iter().any(|line| line.starts_with("saved")),
            "{pair:?}"
        );
    }
    let files = std::fs::read_dir(dir.path().join("entries")).unwrap();
    assert_eq!(files.count(), failed.len() + 1);

    let last_saved = told.last().unwrap().starts_with("saved");
    let durable = pages - u64::from(!last_saved);
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    for number in 0..durable {
        assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
    }
    assert_eq!(sde.stats().total.computed, 0);
}
