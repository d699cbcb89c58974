//! A save that is stuck in the medium holds up nobody: hits and computations go on.

use std::time::Duration;

use sde::SavePolicy;

use crate::engine::{all_load, engine, expected, open, page, read_only};
use crate::kit::{CHANGING, Sim};

/// Saves ten results and begins a save of others, which stops in this call. Meanwhile `job` is done.
/// Gives whether the call came.
fn stopped_in(at: u64, job: impl FnOnce(&Sim, &sde::Sde)) -> bool {
    let sim = Sim::new();
    let sde = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
    for number in 0..10 {
        page.call(&sde, number).unwrap();
    }
    let (comes, saved) = sim.stopped(CHANGING, at, || sde.checkpoint(), || job(&sim, &sde));
    saved.unwrap();
    sde.checkpoint().unwrap();
    let computed = sde.stats().total.computed;
    all_load(read_only(&sim.power_loss(at)), 0..computed);
    std::mem::forget(sde);
    comes
}

fn hits_and_computations(_: &Sim, sde: &sde::Sde) {
    for number in 0..20 {
        assert_eq!(*page.call(sde, number).unwrap(), expected(number));
    }
    assert_eq!(sde.stats().total.computed, 20);
}

#[test]
fn stopped_in_each_call_of_a_checkpoint() {
    let mut calls = 0;
    for at in 1.. {
        if !stopped_in(at, hits_and_computations) {
            break;
        }
        calls = at;
    }
    assert!(calls > 10, "{calls}");
}

/// A miss looks from time to time for what other processes saved. It must not wait then for a
/// save that is stuck.
#[test]
fn a_miss_does_not_wait_to_look_again() {
    for at in [5, 12, 14, 16] {
        stopped_in(at, |sim, sde| {
            // It is time for a miss to look again.
            sim.pass_time(Duration::from_secs(2));
            for number in 10..13 {
                assert_eq!(*page.call(sde, number).unwrap(), expected(number));
            }
        });
    }
}
