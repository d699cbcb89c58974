//! How often a store asks the medium.

use std::time::Duration;

use sde::SavePolicy;
use sde::archiver::Archiver;

use crate::engine::{dir, engine, expected, open, options, page, read_only};
use crate::kit::{Call, Gate, Order, Sim, Then, made};
use crate::log::warnings;

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

/// Found by the explorer: its writer cut off what it had to spare after a reader had asked for its length, and all of it was
/// left out with a warning.
#[test]
fn a_segment_that_is_sealed_while_it_is_read_is_read() {
    for at in 1.. {
        let sim = Sim::new();
        let writer = open(&sim).unwrap();
        (0..20).for_each(|number| drop(writer.save(&made::entries([number])).unwrap()));
        let before = sim.count(&[Call::Read]);
        read_only(&sim);
        if sim.count(&[Call::Read]) - before < at {
            break;
        }
        let (reader, gate) = (sim.process(), Gate::default());
        reader.order_process(Order::of(&[Call::Read], at, Then::Stop(gate.clone())));
        let (store, warned) = std::thread::scope(|scope| {
            let opening = || warnings(|| options(&reader).read_only().open(dir()).unwrap());
            let opening = scope.spawn(opening);
            assert!(gate.wait_for_somebody());
            drop(writer);
            gate.open();
            opening.join().unwrap()
        });
        assert_eq!(warned, [""; 0], "read {at}");
        assert!((0..20).all(|number| store.find(&made::key(number)).unwrap().is_some()));
    }
}
