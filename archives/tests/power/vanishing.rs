//! Files that go while they are looked for: a compaction has put what was in them elsewhere.
//!
//! A program listed a directory, a compaction wrote a new segment and removed the old one, and the
//! program looked at the old one, which was gone, and knew nothing of the new. What it held
//! was computed again.

use std::sync::Arc;
use std::time::Duration;

use sde::SavePolicy;
use sde_archives::{Options, Retention};

use crate::engine::{all_load, dir, engine, page};
use crate::kit::{Call, Gate, Order, Sim, Then};

const LOOKING: &[Call] = &[Call::Look, Call::List, Call::Open, Call::Read, Call::Length];

fn options(sim: &Sim) -> Options {
    Options::new()
        .grace(Duration::ZERO)
        .vfs(Arc::new(sim.clone()))
}

/// Several processes save a page each.
fn filled() -> Sim {
    let sim = Sim::new();
    for number in 0..3 {
        let store = options(&sim).open(dir()).unwrap();
        let sde = engine(store, SavePolicy::OnRequest);
        page.call(&sde, number).unwrap();
        sde.checkpoint().unwrap();
    }
    sim
}

#[test]
fn compacted_at_each_call_of_who_opens_it() {
    let mut calls = 0;
    for at in 1.. {
        let sim = filled();
        let reader = sim.process();
        let gate = Gate::default();
        reader.order_process(Order {
            calls: LOOKING,
            at,
            then: Then::Stop(gate.clone()),
        });
        let comes = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let store = options(&reader).read_only().open(dir()).unwrap();
                // Later on it is the time of grace that keeps what somebody reads.
                reader.no_orders_for_process();
                gate.nobody_will_come();
                all_load(store, 0..3);
            });
            let comes = gate.wait_for_somebody();
            if comes {
                let store = options(&sim).open(dir()).unwrap();
                // What the first replaces, the second removes.
                let first = store.compact(&Retention::new()).unwrap();
                let second = store.compact(&Retention::new()).unwrap();
                assert!(first.removed + second.removed > 0, "{first:?} {second:?}");
                gate.open();
            }
            reading.join().unwrap();
            comes
        });
        if !comes {
            break;
        }
        calls = at;
    }
    assert!(calls > 20, "{calls}");
}
