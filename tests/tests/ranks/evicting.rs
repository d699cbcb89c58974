//! What ranks made together and could not evict at first.

use std::sync::Barrier;

use sde::{DistArray, Handle, MemoryBudget, Sde};
use sde_tests::ranks::{Ranks, Threads};
use sde_tests::{Lie, Lying};

const ROWS: usize = 8 << 10;

#[sde::app(name = "ranks.evicting.array", distributed, tags(distributed))]
fn array(sde: &Handle, number: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[ROWS], |at| (at[0] * number) as f64)
}

/// As when a disk is full for a while: what had stayed then stayed for ever, and was counted for nothing.
#[test]
fn what_could_not_be_saved_leaves_when_it_can() {
    const LIMIT: usize = 200 << 10;
    let (store, meet) = (Lying::new(), Barrier::new(2));
    store.tell(Lie::SaveFails);
    Ranks::of(&Threads, 2).run_ranks(|rank| {
        let budget = MemoryBudget::bytes(LIMIT).only_saved();
        let builder = Sde::builder().store(store.clone()).memory_budget(budget);
        let sde = rank.join(builder).build().unwrap();
        for number in 0..40 {
            array.call(&sde, number).unwrap();
        }
        let used = sde.stats().memory.unwrap();
        assert!(used.bytes > 40 * ROWS / 2 * 8, "{used:?}");
        if meet.wait().is_leader() {
            store.tell(Lie::None);
        }
        meet.wait();
        for number in 100..150 {
            array.call(&sde, number).unwrap();
        }
        let used = sde.stats().memory.unwrap();
        assert!(used.bytes < 3 * LIMIT / 2, "{used:?}");
    });
}
