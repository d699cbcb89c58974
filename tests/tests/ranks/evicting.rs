//! What ranks made together and could not evict at first.

use std::sync::Barrier;

use sde::{DistArray, Handle, MemoryBudget, Sde};
use sde_tests::ranks::{Ranks, Threads};
use sde_tests::{Lie, Lying};

const ROWS: usize = 8 << 10;

#[sde::app(name = "ranks.evicting.array", distributed)]
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
        let builder = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .memory_budget(budget);
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

/// The list of the parts was saved by another rank, and what one could not save was dropped.
#[test]
fn a_part_that_is_in_no_store_stays() {
    let store = Lying::new();
    let stores = [store.clone(), store.another()];
    stores[1].tell(Lie::SaveFails);
    Ranks::of(&Threads, 2).run_ranks(|rank| {
        let own = rank.number();
        let store = stores[own].clone();
        let budget = MemoryBudget::bytes(200 << 10).only_saved();
        let builder = Sde::builder()
            .store(store)
            .save(sde::SavePolicy::OnRequest)
            .memory_budget(budget);
        let sde = rank.join(builder).build().unwrap();
        for number in 0..20 {
            array.call(&sde, number).unwrap();
        }
        assert_eq!(sde.stats().total.evicted > 0, own == 0);
    });
}

#[sde::app(name = "ranks.evicting.field")]
fn field(number: usize) -> Vec<u8> {
    vec![number as u8; 10 << 10]
}

/// It grew as long as the program ran.
#[test]
fn what_others_sent_and_nobody_asks_for_has_its_part_of_the_budget() {
    const LIMIT: usize = 500 << 10;
    Ranks::of(&Threads, 2).run_ranks(|rank| {
        let own = rank.number();
        let builder = Sde::builder().memory_budget(MemoryBudget::bytes(LIMIT).forget_records());
        let sde = rank.join(builder).build().unwrap();
        for round in 0..20 {
            let mut numbers = (0..10).map(|n| 1000 * round + 100 * own + n);
            let compute =
                |part: &Handle| numbers.try_for_each(|number| field.call(part, number).map(drop));
            sde.split_for(own as u32, 0, compute).unwrap();
            let used = sde.stats().memory.unwrap();
            // What came last is there in any case.
            let most = LIMIT + LIMIT / 8 + (110 << 10);
            assert!(used.bytes + used.received_bytes < most, "{used:?}");
        }
    });
}
