//! Each call fails once: the save says so or goes another way, and what was acknowledged is there.
//!
//! The medium notes whoever writes to a file, or syncs it, after an error: after a sync that
//! failed the next one may report success without having written anything.

use std::path::Path;
use std::sync::Arc;

use sde::archiver::{Archiver, Selection};
use sde_archives::inspect::{Inspection, Item};
use sde_archives::{DirStore, StoreOptions};

use crate::count;
use crate::engine::dir;
use crate::kit::{Call, Error, Order, Random, Sim, Then, made};
use crate::script::Script;
use crate::truth::generation;

/// Kinds of calls, each to be counted on its own.
const KINDS: &[&[Call]] = &[
    &[Call::Write],
    &[Call::Sync],
    &[Call::SyncDir],
    &[Call::Close],
    &[Call::Link],
    &[Call::Unlink],
    &[Call::Create],
    &[Call::MakeDir],
    &[Call::Remove],
    &[Call::Look],
    &[Call::List],
    &[Call::Open],
    &[Call::Read],
    &[Call::Length],
    &[Call::Lock],
];

const STEPS: u64 = 25;

/// The same program, with an order from the beginning.
fn run(seed: u64, order: Option<Order>) -> Script {
    let sim = Sim::new();
    sim.seed(seed);
    order.into_iter().for_each(|order| sim.order(order));
    let mut script = Script::new(sim, seed).without_kills();
    script.run(STEPS);
    script
}

/// What was acknowledged is there: for the processes, after they were killed, after a power failure.
fn check(script: &mut Script, seed: u64, what: &str) {
    let misdeeds = script.sim.misdeeds();
    assert!(misdeeds.is_empty(), "{what}: {misdeeds:?}");
    script.sim.no_orders();
    // What others vouched for may be lost by a sync that fails after it.
    script.truth.losses_may_be_told_of = true;
    for left in [script.sim.after_kill(), script.sim.power_loss(seed)] {
        let checked = script.truth.check(&left, &script.dir, false);
        let checked = checked.and_then(|()| script.check_published(&left));
        checked.unwrap_or_else(|why| panic!("{what}: {why}"));
    }
}

fn each_call_fails(then: impl Fn(Error) -> Then) {
    let mut tried = 0;
    for seed in 0..count(1, 20) {
        for kind in KINDS {
            let calls = run(seed, None).sim.count(kind);
            // Far more reads than all else: the short test takes some of them.
            let step = count(1 + calls / 60, 1);
            for at in (1..=calls).step_by(step as usize) {
                let error = Random::new(at).pick(&[Error::Io, Error::Full]);
                let then = then(error);
                let what = format!("seed {seed}, call {at} of {kind:?}: {then:?}");
                let calls = kind;
                let mut script = run(seed, Some(Order::of(calls, at, then)));
                script.truth.was_full = error == Error::Full;
                check(&mut script, at, &what);
                tried += 1;
            }
        }
    }
    println!("{tried} calls failed");
}

#[test]
fn each_call_fails_once() {
    each_call_fails(Then::Fail);
}

/// As on a network: it happened, and an error came back.
#[test]
fn each_call_is_done_and_fails() {
    each_call_fails(Then::FailDone);
}

#[test]
fn from_each_call_on_all_fail() {
    each_call_fails(Then::FailOn);
}

/// Whether the medium fails or writes something else than it was given.
#[test]
fn a_commit_that_failed_is_made_by_the_next() {
    for then in [Then::Fail(Error::Io), Then::Spoil(8 * 100)] {
        let sim = Sim::new();
        let dir = dir();
        let options = StoreOptions::new().vfs(Arc::new(sim.clone()));
        let store = options.open(&dir).unwrap();
        store.save(&made::states([made::scratch(1, 1)])).unwrap();
        sim.order(Order::of(&[Call::Write], 1, then));
        store.commit(Selection::Checkpoint).unwrap_err();
        let failed = generation(&sim, &dir);
        store.commit(Selection::Checkpoint).unwrap();
        assert_eq!(generation(&sim, &dir), failed + 1);
    }
}

/// A second sync may report success without having written anything.
#[test]
fn a_file_of_another_process_that_could_not_be_synced_is_not_synced_again() {
    let sim = Sim::new();
    let dir = dir();
    let open = |process: &Sim| {
        let options = StoreOptions::new().vfs(Arc::new(process.clone()));
        options.open(&dir).unwrap()
    };
    let save = |store: &DirStore, number| {
        store
            .save(&made::states([made::scratch(number, 1)]))
            .unwrap();
    };
    let (process, other) = (sim.process(), open(&sim.process()));
    save(&other, 1);
    let store = open(&process);
    for number in 2..4 {
        save(&store, number);
        if number == 2 {
            process.order_process(Order::of(&[Call::Sync], 1, Then::Fail(Error::Io)));
        }
        store.commit(Selection::Checkpoint).unwrap();
    }
    assert_eq!(sim.misdeeds(), [""; 0]);
    std::mem::forget((store, other));
}

/// The uses that the store in this directory tells of.
fn uses(sim: &Sim, dir: &Path) -> usize {
    let mut told = 0;
    let store = Inspection::open_on(Arc::new(sim.clone()), dir).unwrap();
    for segment in store.segments().unwrap() {
        let each = |item| {
            if let Item::Uses { uses, .. } = item {
                told += uses.len();
            }
        };
        segment.walk(each).unwrap();
    }
    told
}

#[test]
fn uses_that_could_not_be_written_are_written_by_the_next_commit() {
    let sim = Sim::new();
    let dir = dir();
    let options = StoreOptions::new().vfs(Arc::new(sim.clone()));
    let store = options.open(&dir).unwrap();
    store.save(&made::entries([1])).unwrap();
    store.find(&made::key(1)).unwrap().unwrap();
    sim.order(Order::of(&[Call::Write], 1, Then::Fail(Error::Io)));
    store.commit(Selection::Checkpoint).unwrap_err();
    assert_eq!(uses(&sim, &dir), 0);
    store.commit(Selection::Checkpoint).unwrap();
    assert_eq!(uses(&sim, &dir), 1);
}

/// The next save after an error goes to another file.
#[test]
fn a_failed_write_or_sync_is_an_error_and_the_next_save_begins_a_new_file() {
    for call in [&[Call::Write], &[Call::Sync], &[Call::SyncDir]] {
        for at in 1..=6 {
            let sim = Sim::new();
            let dir = dir();
            let store = StoreOptions::new()
                .vfs(Arc::new(sim.clone()))
                .open(&dir)
                .unwrap();
            let save = |number| store.save(&made::states([made::scratch(number, 1)]));
            save(0).unwrap();
            let segments = || {
                sim.files()
                    .iter()
                    .filter(|path| path.extension().is_some_and(|e| e == "sde"))
                    .count()
            };
            let before = segments();
            sim.order(Order::of(call, at, Then::Fail(Error::Io)));
            // Names are synced when a file is begun, so those syncs do not come in each save.
            let failed = (1..=at).find(|number| save(*number).is_err());
            let expected = (call[0] != Call::SyncDir).then_some(at);
            assert_eq!(failed, expected, "{call:?}");
            save(at).unwrap();
            let got = segments();
            assert_eq!(got, before + usize::from(failed.is_some()), "{call:?}");
            assert_eq!(sim.misdeeds(), [""; 0]);
        }
    }
}
