//! Files that go while they are looked for: a compaction has put what was in them elsewhere.
//!
//! A program listed a directory, a compaction wrote a new segment and removed the old one, and the
//! program looked at the old one, which was gone, and knew nothing of the new. What it held
//! was computed again.

use std::time::Duration;

use sde::SavePolicy;
use sde::archiver::Archiver;
use sde_archives::{Retention, StoreOptions};

use crate::engine::{self, all_load, dir, engine, page};
use crate::kit::{LOOKING, Sim, made};

fn options(sim: &Sim) -> StoreOptions {
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

fn compact(sim: &Sim) {
    let store = options(sim).open(dir()).unwrap();
    // What the first replaces, the second removes.
    let first = store.compact(&Retention::new()).unwrap();
    let second = store.compact(&Retention::new()).unwrap();
    assert!(first.removed + second.removed > 0, "{first:?} {second:?}");
}

#[test]
fn compacted_at_each_call_of_who_opens_it() {
    let mut calls = 0;
    for at in 1.. {
        let sim = filled();
        let reader = sim.process();
        // Later on it is the time of grace that keeps what somebody reads.
        let opens = || options(&reader).read_only().open(dir()).unwrap();
        let (comes, store) = reader.stopped(LOOKING, at, opens, || compact(&sim));
        all_load(store, 0..3);
        if !comes {
            break;
        }
        calls = at;
    }
    assert!(calls > 20, "{calls}");
}

/// Found by the explorer: a compaction removed the file after the frame was read and before its long value was. The value
/// was taken for damaged, and computed again, although another segment had it.
#[test]
fn compacted_at_each_call_of_who_finds_a_long_value() {
    let long = (0..).find(|number| made::numbers(*number, 1, 0).len() > 8192);
    let long = long.unwrap();
    for at in 1.. {
        let sim = Sim::new();
        for number in [long, long + 1] {
            let store = options(&sim).open(dir()).unwrap();
            store.save(&made::entries([number])).unwrap();
        }
        let reader = sim.process();
        let store = options(&reader).read_only().open(dir()).unwrap();
        let finds = || store.find(&made::key(long)).unwrap().unwrap();
        let (comes, found) = reader.stopped(LOOKING, at, finds, || compact(&sim));
        let mut results = found.results.iter();
        assert!(results.all(|one| one.payload.is_some()), "call {at}");
        if !comes {
            assert!(at > 3, "{at}");
            break;
        }
    }
}
