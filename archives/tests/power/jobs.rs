//! Jobs of a few entries each, at one store: who looks into it or publishes it beside them, and clocks that differ.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sde::archiver::{Archiver, Selection};
use sde_archives::inspect::{Inspection, Item};
use sde_archives::vfs::Vfs;
use sde_archives::{DirStore, Retention};

use crate::engine::{dir, options};
use crate::kit::{CHANGING, Call, HOME, LOOKING, Order, Sim, Then, made};

const HOUR: Duration = Duration::from_secs(3600);

fn open(sim: &Sim) -> DirStore {
    options(sim).open(dir()).unwrap()
}

/// A process that takes a minute, looks for an entry, saves it and ends.
fn job(sim: &Sim, number: u64) {
    job_on(sim, open(sim), number);
}

fn job_on(sim: &Sim, store: DirStore, number: u64) {
    sim.pass_time(Duration::from_secs(60));
    let mut batch = sde::archiver::Batch::new(Selection::Checkpoint);
    let mut record = made::record(number, 1);
    record.made_at = sim.now();
    let entry = made::entry_of(record, number, 1, batch.selection);
    batch.entries.push(entry);
    assert!(store.find(&made::key(number)).unwrap().is_none());
    store.save(&batch).unwrap();
    store.commit(Selection::Archive).unwrap();
    store.finish();
}

/// Found by hostile use: to open a store of 10^5 short segments took 128 s. Job arrays make as many: each job looks at
/// what all before it have left. Those that end merge what is short, and what was replaced goes after the time of grace.
#[test]
fn a_job_array_makes_as_many_calls_as_it_has_jobs() {
    let calls = |jobs: u64| {
        let sim = Sim::new();
        (0..jobs).for_each(|number| job(&sim, number));
        sim.count(LOOKING)
    };
    let ratio = calls(300) as f64 / calls(150) as f64;
    assert!(
        ratio < 3.0,
        "for twice as many jobs it is {ratio:.1} times the calls"
    );
}

/// Found by reading, and by a job array whose tasks were given 4 GB: what a program merges when it ends it first reads, all of it,
/// into memory.
#[test]
fn a_merge_of_more_segments_takes_no_more_memory() {
    let read_before_written = |jobs: u64| {
        let sim = Sim::new();
        for number in 0..jobs {
            let store = open(&sim);
            store.save(&made::entries([number])).unwrap();
        }
        let store = open(&sim);
        let before = sim.bytes_read();
        let mut read = 0;
        let look = || read = sim.bytes_read() - before;
        let (comes, ()) = sim.stopped(&[Call::Create], 1, || store.finish(), look);
        assert!(comes);
        read
    };
    let ratio = read_before_written(320) as f64 / read_before_written(80) as f64;
    assert!(
        ratio < 2.0,
        "for four times as many segments {ratio:.1} times the bytes are read before any is written"
    );
}

/// Jobs that are compacted, and how many files that were replaced are removed an hour later; `ahead` is
/// how far the clock of another program was ahead that has saved something.
fn removed_an_hour_later(ahead: Duration) -> usize {
    let sim = Sim::new();
    let other = sim.process();
    other.pass_time(ahead);
    job(&other, 0);
    (1..4).for_each(|number| job(&sim, number));
    let store = open(&sim);
    let first = store.compact(&Retention::new()).unwrap();
    assert_eq!((first.removed, first.replaced > 2), (0, true));
    sim.pass_time(HOUR);
    store.compact(&Retention::new()).unwrap().removed
}

#[test]
fn what_was_replaced_is_removed_an_hour_later() {
    assert!(removed_an_hour_later(Duration::ZERO) > 2);
}

/// Found by hostile use: one program whose clock was ahead stopped the removal of replaced files until
/// that time had come, since the time of grace is counted in stamps, which are later than all before.
#[test]
fn what_was_replaced_is_removed_although_a_clock_was_ahead() {
    let removed = removed_an_hour_later(24 * 365 * HOUR);
    assert!(removed > 2, "{removed} files are removed");
}

/// Found by hostile use: `--max-age` spared all that was saved after a program whose clock was ahead.
#[test]
fn what_is_old_goes_although_a_clock_was_ahead() {
    let sim = Sim::new();
    let other = sim.process();
    other.pass_time(24 * 365 * HOUR);
    job(&other, 0);
    (1..4).for_each(|number| job(&sim, number));
    sim.pass_time(48 * HOUR);
    let old = Retention::new().results().max_age(24 * HOUR);
    let given_up = open(&sim).compact(&old).unwrap().given_up;
    assert!(given_up >= 3, "{given_up} of 3 entries are too old");
}

#[test]
fn what_is_too_old_goes_within_a_tenth_of_the_age() {
    let sim = Sim::new();
    (0..3).for_each(|number| job(&sim, number));
    let old = Retention::new().results().max_age(240 * HOUR);
    for (days, expected) in [(2, 0..4), (7, 0..5), (2, 3..6), (7, 4..7)] {
        sim.pass_time(days * 24 * HOUR);
        let store = options(&sim).retention(old.clone()).open(dir()).unwrap();
        job_on(&sim, store, expected.end - 1);
        let store = options(&sim).read_only().open(dir()).unwrap();
        let is_there = |number: &u64| store.find(&made::key(*number)).unwrap().is_some();
        let left: Vec<u64> = (0..7).filter(is_there).collect();
        assert_eq!(left, expected.collect::<Vec<_>>());
    }
}

/// Compacts a store so that nothing is left where it was.
fn move_all(sim: &Sim) {
    let store = options(sim).grace(Duration::ZERO).open(dir()).unwrap();
    for _ in 0..2 {
        store.compact(&Retention::new()).unwrap();
    }
}

/// Found by hostile use: `ls`, `diff`, `export` and `verify` were wrong, with status 0, while a compaction
/// removed files: 10 of 34 entries.
#[test]
fn who_looks_into_a_store_is_told_of_what_a_compaction_moves() {
    let sim = Sim::new();
    (0..3).for_each(|number| job(&sim, number));
    let store = Inspection::open_on(Arc::new(sim.clone()), dir()).unwrap();
    let segments = store.segments().unwrap();
    move_all(&sim);
    let (mut keys, mut told) = (Vec::new(), false);
    for segment in segments {
        let walked = segment.walk(|item| match item {
            Item::Entry(entry) => keys.push(*entry.record.key.as_bytes()),
            Item::Damage(_) => told = true,
            _ => {}
        });
        told |= walked.is_err() || walked.is_ok_and(|walked| walked.gone);
    }
    keys.sort_unstable();
    keys.dedup();
    let found = keys.len();
    assert!(
        told || found == 3,
        "{found} of 3 entries are there, and no error"
    );
}

/// Found by hostile use: of 358 calls of `archive_to` beside a program that compacts 249 failed.
#[test]
fn an_archive_is_made_while_another_process_compacts() {
    for at in 1.. {
        let sim = Sim::new();
        (0..3).for_each(|number| job(&sim, number));
        let archiving = sim.process();
        let store = open(&archiving);
        let archive = || store.archive_to(&Path::new(HOME).join("published"));
        let (comes, archived) = archiving.stopped(LOOKING, at, archive, || move_all(&sim));
        archived.unwrap();
        if !comes {
            break;
        }
    }
}

/// Found by hostile use: the folder of an archive whose program was killed midway was refused as one with
/// other things in it; nothing said that it may be removed.
#[test]
fn an_archive_that_was_cut_short_is_made_again_or_it_is_said_what_to_do() {
    let there = Path::new(HOME).join("published");
    for at in 1.. {
        let sim = Sim::new();
        (0..3).for_each(|number| job(&sim, number));
        let killed = sim.process();
        let store = open(&killed);
        killed.order_process(Order::of(CHANGING, at, Then::PowerOff));
        if store.archive_to(&there).is_ok() {
            break;
        }
        drop(store);
        if let Err(error) = open(&sim).archive_to(&there) {
            let error = format!("{error:#}");
            let is_done = error.contains("there is a store already");
            assert!(is_done || error.contains("remove"), "call {at}: {error}");
        }
    }
}
