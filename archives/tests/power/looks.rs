//! How often a store asks the medium.

use std::time::Duration;

use sde::{Archiver, SavePolicy};

use crate::engine::{engine, expected, open, page, read_only};
use crate::kit::{Call, Order, Sim, Then, made};

/// Found by hostile use: where a listing took more than a second, one miss listed the directory eight
/// times, since the time of a look was noted before it. The next miss did so again.
#[test]
fn a_miss_looks_once_however_long_that_takes() {
    let sim = Sim::new();
    let store = open(&sim).unwrap();
    let lists = || sim.count(&[Call::List]);
    let before = lists();
    store.refresh().unwrap();
    let one_look = lists() - before;
    sim.order(Order::of(
        &[Call::List],
        1,
        Then::Take(Duration::from_secs(2)),
    ));
    sim.pass_time(Duration::from_secs(2));
    for looks in [1, 0] {
        let before = lists();
        assert!(store.find(&made::key(1)).unwrap().is_none());
        assert_eq!(lists() - before, looks * one_look);
    }
}

/// Found by reading: each small value was read and hashed when its entry was found, and again when it was
/// asked for.
#[test]
fn a_small_value_is_read_once() {
    let sim = Sim::new();
    let saving = engine(open(&sim).unwrap(), SavePolicy::EveryResult);
    page.call(&saving, 7).unwrap();
    let sde = engine(read_only(&sim), SavePolicy::OnRequest);
    let opened = || sim.count(&[Call::Open]);
    let before = (opened(), sim.bytes_read());
    assert_eq!(*page.call(&sde, 7).unwrap(), expected(7));
    let segment = sim.bytes();
    assert_eq!(opened() - before.0, 1);
    assert!(sim.bytes_read() - before.1 < segment);
    std::mem::forget((saving, sde));
}
