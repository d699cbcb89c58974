//! What has left memory and a rank holds all the same.

use sde::{MemoryBudget, Sde, inputs};
use sde_tests::ranks::{Ranks, Threads};

#[sde::app(name = "ranks.held.field")]
fn field(number: u64) -> Vec<u8> {
    vec![number as u8; 10 << 10]
}

/// Results that have left memory while the call holds them are not given to others.
#[test]
fn each_is_computed_once_though_not_all_fit() {
    let computed = Ranks::of(&Threads, 2).run_ranks(|rank| {
        let builder = Sde::builder().memory_budget(MemoryBudget::bytes(100 << 10));
        let sde = rank.join(builder).build().unwrap();
        let list: Vec<_> = (0..40_u64)
            .map(|number| inputs! { number: number })
            .collect();
        let results = sde.par_map(&field, &list);
        assert!(results.iter().all(Result::is_ok));
        sde.stats().total.computed
    });
    assert_eq!(computed.iter().sum::<u64>(), 40, "{computed:?}");
}

#[test]
fn each_is_computed_once_over_a_split() {
    let computed = Ranks::of(&Threads, 2).run_ranks(|rank| {
        let own = rank.number() as u64;
        let builder = Sde::builder().memory_budget(MemoryBudget::bytes(100 << 10));
        let sde = rank.join(builder).build().unwrap();
        let mut held = Vec::new();
        sde.split_for(own as u32, 0, |part| {
            for n in 0..20 {
                held.push(field.call(part, 100 * own + n)?);
            }
            Ok(())
        })
        .unwrap();
        for n in 0..20 {
            field.call(&sde, n).unwrap();
            field.call(&sde, 100 + n).unwrap();
        }
        sde.stats().total.computed
    });
    assert_eq!(computed.iter().sum::<u64>(), 40, "{computed:?}");
}
