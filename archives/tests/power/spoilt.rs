//! A disk that writes something else than it was given.

use std::time::Duration;

use sde::archiver::{Archiver, Selection};
use sde::ranks::OneProcess;
use sde_archives::{Retention, StoreOptions};

use crate::count;
use crate::engine::{self, dir};
use crate::kit::{Call, Order, Random, Sim, Then, made};
use crate::truth::Truth;

const ENTRIES: u64 = 12;

fn options(sim: &Sim) -> StoreOptions {
    engine::options(sim).grace(Duration::ZERO)
}

/// Entries and states, each by a process of its own.
fn filled() -> (Sim, Truth) {
    let sim = Sim::new();
    let mut truth = Truth {
        // A manifest that was spoilt is passed over, and told of.
        losses_may_be_told_of: true,
        ..Truth::default()
    };
    // One has a state that is no part of its frame.
    let is_long = |number: &u64| made::numbers(*number, 1, 2).len() > 8192;
    let long = (2 * ENTRIES..).find(is_long).unwrap();
    for (number, state) in (0..ENTRIES).zip((ENTRIES + 1..2 * ENTRIES).chain([long])) {
        let mut batch = made::entries([number]);
        batch.scratch.push(made::scratch(state, 1));
        options(&sim).open(dir()).unwrap().save(&batch).unwrap();
        let versions = truth.entries.entry(number).or_default();
        (versions.tried, versions.acknowledged, versions.whole) = (1, 1, true);
        let versions = truth.scratch.entry(state).or_default();
        (versions.tried, versions.acknowledged) = (1, 1);
    }
    (sim, truth)
}

/// Does something while the medium spoils this bit of a write; nothing is lost by it. Gives whether the write came, and
/// whether the job failed.
fn spoil(sim: &Sim, truth: &Truth, at: u64, bit: usize, fails: impl Fn() -> bool) -> (bool, bool) {
    sim.order(Order::of(&[Call::Write], at, Then::Spoil(bit)));
    let before = sim.count(&[Call::Write]);
    let failed = fails();
    let came = sim.count(&[Call::Write]) - before >= at;
    sim.no_orders();
    let checked = truth.check(sim, &dir(), true);
    checked.unwrap_or_else(|why| panic!("write {at}, bit {bit}: {why}"));
    (came, failed)
}

/// Found by reading: of the copies only headers and metadata were read back, and the originals were
/// removed. A value that was not written well was lost.
#[test]
fn a_compaction_gives_up_nothing_for_a_copy_that_is_spoilt() {
    let (filled, truth) = filled();
    let mut random = Random::new(8);
    let mut spoilt = 0;
    for at in 1.. {
        let mut came = true;
        // In the header of a segment, and anywhere.
        let bits = (0..count(40, 2_000)).map(|_| random.number() as usize);
        for bit in [8 * 20].into_iter().chain(bits) {
            let sim = filled.after_kill();
            let store = options(&sim).open(dir()).unwrap();
            let compacts = || store.compact(&Retention::new()).is_err();
            let failed;
            (came, failed) = spoil(&sim, &truth, at, bit, compacts);
            spoilt += u64::from(failed);
        }
        if !came {
            break;
        }
    }
    assert!(spoilt > 50, "{spoilt}");
}

/// One bit of a rank's journal is flipped while the ranks copy their journals to the store.
#[test]
fn no_journal_goes_for_a_copy_that_is_spoilt() {
    let mut random = Random::new(9);
    let mut spoilt = 0;
    for at in 1.. {
        let mut came = true;
        for bit in (0..count(20, 500)).map(|_| random.number() as usize) {
            let sim = Sim::new();
            let store = options(&sim).open_together(dir(), &OneProcess).unwrap();
            let mut truth = Truth {
                losses_may_be_told_of: true,
                ..Truth::default()
            };
            for number in 0..ENTRIES {
                store.save(&made::entries([number])).unwrap();
                let versions = truth.entries.entry(number).or_default();
                (versions.tried, versions.acknowledged, versions.whole) = (1, 1, true);
            }
            let commit = || store.commit_together(Selection::Checkpoint, &OneProcess);
            let failed;
            (came, failed) = spoil(&sim, &truth, at, bit, || commit().is_err());
            spoilt += u64::from(failed);
        }
        if !came {
            break;
        }
    }
    assert!(spoilt > 5, "{spoilt}");
}
