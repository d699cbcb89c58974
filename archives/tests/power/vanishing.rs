//! Files that go while they are looked for: a compaction has put what was in them elsewhere.
//!
//! A program listed a directory, a compaction wrote a new segment and removed the old one, and the
//! program looked at the old one, which was gone, and knew nothing of the new. What it held
//! was computed again.

use std::time::Duration;

use sde::SavePolicy;
use sde_archives::{Options, Retention};

use crate::engine::{self, all_load, dir, engine, page};
use crate::kit::{LOOKING, Sim};

fn options(sim: &Sim) -> Options {
    engine::options(sim).grace(Duration::ZERO)
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
        // Later on it is the time of grace that keeps what somebody reads.
        let opens = || options(&reader).read_only().open(dir()).unwrap();
        let compacts = || {
            let store = options(&sim).open(dir()).unwrap();
            // What the first replaces, the second removes.
            let first = store.compact(&Retention::new()).unwrap();
            let second = store.compact(&Retention::new()).unwrap();
            assert!(first.removed + second.removed > 0, "{first:?} {second:?}");
        };
        let (comes, store) = reader.stopped(LOOKING, at, opens, compacts);
        all_load(store, 0..3);
        if !comes {
            break;
        }
        calls = at;
    }
    assert!(calls > 20, "{calls}");
}
