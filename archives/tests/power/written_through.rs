//! What is written for other processes to find before it is durable.

use std::time::Duration;

use sde::archiver::{Archiver, Batch, Selection};
use sde_archives::{DirStore, Retention};

use crate::engine::{dir, open, options, read_only};
use crate::kit::{Call, Error, Order, Sim, Then, made};
use crate::room::{left, pages};

fn batch(number: u64) -> Batch {
    made::entries([number])
}

fn has(store: &DirStore, number: u64) -> bool {
    store.find(&made::key(number)).unwrap().is_some()
}

#[test]
fn another_process_finds_it_and_the_save_that_follows_writes_nothing() {
    let sim = Sim::new();
    let (store, other) = (open(&sim).unwrap(), open(&sim).unwrap());
    store.write_through(&batch(1)).unwrap();
    other.catch_up(Duration::MAX);
    assert!(has(&store, 1) && has(&other, 1));
    let before = sim.bytes();
    store.save(&batch(1)).unwrap();
    assert_eq!(sim.bytes(), before);
    // It was made durable all the same.
    for seed in 0..20 {
        assert!(has(&read_only(&sim.power_loss(seed)), 1));
    }
    store.commit(Selection::Archive).unwrap();
    assert!(has(&read_only(&sim.power_loss(0)), 1));
}

#[test]
fn what_was_lost_with_its_segment_is_written_again() {
    for calls in [&[Call::Write], &[Call::Sync]] {
        let sim = Sim::new();
        let store = open(&sim).unwrap();
        store.write_through(&batch(1)).unwrap();
        sim.order(Order::of(calls, 1, Then::Fail(Error::Full)));
        // The segment is abandoned with what was written to it before.
        match calls {
            [Call::Write] => store.write_through(&batch(2)).unwrap_err(),
            _ => store.save(&batch(1)).map(drop).unwrap_err(),
        };
        sim.no_orders();
        for number in [1, 2] {
            store.save(&batch(number)).unwrap();
        }
        assert_eq!(sim.misdeeds(), [""; 0]);
        for seed in 0..20 {
            let left = read_only(&sim.power_loss(seed));
            assert!(has(&left, 1) && has(&left, 2), "{calls:?}");
        }
    }
}

/// Found by an attack: a save that rested on what was written through, and lost, made room again and again.
#[test]
fn a_save_that_rests_on_what_is_lost_gives_up_no_more_than_another() {
    let sim = Sim::new();
    pages(&sim, 0..16);
    let limit = Retention::new().results().capacity(1 << 30);
    let store = options(&sim).retention(limit).open(dir()).unwrap();
    store.write_through(&made::entries([100])).unwrap();
    sim.room(Some(sim.bytes()));
    let error = store.save(&made::entries([100, 101])).unwrap_err();
    assert!(format!("{error:#}").contains("save again"), "{error}");
    store.save(&made::entries([100, 101])).unwrap();
    let left = left(&sim.after_kill(), 0..16);
    assert!(left.len() > 12, "{left:?}");
    std::mem::forget(store);
}
