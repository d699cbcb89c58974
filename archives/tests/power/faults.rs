//! Each call fails once: the save says so or goes another way, and what was acknowledged is there.
//!
//! The medium notes whoever writes to a file, or syncs it, after an error: after a sync that
//! failed the next one may report success without having written anything.

use std::path::Path;
use std::sync::Arc;

use sde::{Archiver, Selection};
use sde_archives::Options;

use crate::count;
use crate::kit::{Call, Error, HOME, Order, Random, Sim, Then, made};
use crate::script::Script;

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
                let mut script = run(seed, Some(Order { calls, at, then }));
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

/// The next save after an error goes to another file.
#[test]
fn a_failed_write_or_sync_is_an_error_and_the_next_save_begins_a_new_file() {
    for call in [&[Call::Write], &[Call::Sync], &[Call::SyncDir]] {
        for at in 1..=6 {
            let sim = Sim::new();
            let dir = Path::new(HOME).join("store");
            let store = Options::new()
                .vfs(Arc::new(sim.clone()))
                .open(&dir)
                .unwrap();
            let save = |number| {
                let mut batch = made::batch(Selection::Checkpoint);
                batch.scratch.push(made::scratch(number, 1));
                store.save(&batch)
            };
            save(0).unwrap();
            let segments = || {
                sim.files()
                    .iter()
                    .filter(|path| path.extension().is_some_and(|e| e == "sde"))
                    .count()
            };
            let before = segments();
            sim.order(Order {
                calls: call,
                at,
                then: Then::Fail(Error::Io),
            });
            // Names are synced when a file is begun, so those syncs do not come in each save.
            let failed = (1..=at).find(|number| save(*number).is_err());
            let expected = (call[0] != Call::SyncDir).then_some(at);
            assert_eq!(failed, expected, "{call:?}");
            save(at).unwrap();
            assert_eq!(
                segments(),
                before + usize::from(failed.is_some()),
                "{call:?}"
            );
            assert_eq!(sim.misdeeds(), [""; 0]);
        }
    }
}
