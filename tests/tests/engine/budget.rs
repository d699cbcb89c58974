//! What a memory budget counts, and what leaves.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sde::archiver::{Archiver, MemoryArchiver};
use sde::record::Record;
use sde::store::DirStore;
use sde::{
    Event, EvictionOrder, Handle, MemoryBudget, Policy, SavePolicy, Sde, Tag, Value, inputs,
};
use sde_tests::Watch;

pub(super) const KIB: usize = 1 << 10;

#[sde::app(name = "budget.field")]
pub(super) fn field(number: u64, kib: usize) -> Vec<u8> {
    vec![number as u8; kib * KIB]
}

/// Says that it took so long, and gives as much.
#[sde::app(name = "budget.dear")]
fn dear(sde: &Handle, number: u64, seconds: u64, kib: usize) -> Vec<u8> {
    sde.took(Duration::from_secs(seconds));
    vec![number as u8; kib * KIB]
}

pub(super) fn is_there(sde: &Sde, number: u64, kib: usize) -> bool {
    let peek = sde.peek(&field, &inputs! { number: number, kib: kib });
    matches!(peek.unwrap(), sde::Peek::Hit { .. })
}

fn refresh(sde: &Sde, number: u64) {
    let inputs = inputs! { number: number, kib: 10_usize };
    let request = sde.request(&field, &inputs).policy(Policy::Refresh);
    request.run().unwrap();
}

pub(super) fn with(budget: MemoryBudget) -> Sde {
    Sde::builder().memory_budget(budget).build().unwrap()
}

#[test]
fn all_apps_share_a_budget_but_those_with_their_own() {
    #[sde::app]
    fn other(number: u64) -> Vec<u8> {
        vec![number as u8; 100 * KIB]
    }
    #[sde::app]
    fn own(number: u64) -> Vec<u8> {
        vec![number as u8; 100 * KIB]
    }
    let builder = Sde::builder().memory_budget(MemoryBudget::bytes(1000 * KIB));
    let sde = builder
        .memory_budget_of("own", MemoryBudget::bytes(300 * KIB))
        .build()
        .unwrap();
    for number in 0..20 {
        field.call(&sde, number, 100).unwrap();
        other.call(&sde, number).unwrap();
        own.call(&sde, number).unwrap();
        let stats = sde.stats();
        for used in [stats.memory.unwrap(), stats.memory_of["own"]] {
            assert!(used.bytes <= used.limit, "{used:?}");
        }
    }
    let stats = sde.stats();
    assert!(stats.memory.unwrap().bytes > 800 * KIB);
    assert!(stats.memory_of["own"].bytes > 150 * KIB);
    // The last was its caller's when it came.
    assert!((17..=18).contains(&stats.apps["own"].evicted));
}

/// What is dear for each byte stays, whenever it was used.
#[test]
fn what_is_cheapest_to_have_again_for_each_byte_leaves_first() {
    let sde = with(MemoryBudget::bytes(1200 * KIB));
    for number in 0..5 {
        dear.call(&sde, number, 20, 100).unwrap();
    }
    for number in 0..40 {
        field.call(&sde, number, 100).unwrap();
    }
    assert!(sde.stats().apps["budget.field"].evicted > 30);
    assert_eq!(sde.stats().apps["budget.dear"].evicted, 0);
}

/// The same order of use, seen by each order.
#[test]
fn orders_are_what_they_say() {
    let left = |order: EvictionOrder| {
        let sde = with(MemoryBudget::bytes(450 * KIB).order(order));
        for number in 0..4 {
            field.call(&sde, number, 100).unwrap();
        }
        field.call(&sde, 0, 100).unwrap();
        field.call(&sde, 4, 100).unwrap();
        (0..5)
            .filter(|number| !is_there(&sde, *number, 100))
            .collect::<Vec<_>>()
    };
    assert_eq!(left(EvictionOrder::LeastRecentlyUsed), [1]);
    assert_eq!(left(EvictionOrder::FirstIn), [0]);
}

#[test]
fn entries_and_age_are_limits_too() {
    let few = with(MemoryBudget::unlimited().entries(3));
    let young = with(MemoryBudget::unlimited().max_age(Duration::ZERO));
    for number in 0..10 {
        field.call(&few, number, 1).unwrap();
        field.call(&young, number, 1).unwrap();
    }
    let there = |sde: &Sde| (0..10).filter(|n| is_there(sde, *n, 1)).count();
    // And perhaps the last, which was its caller's when it came.
    assert!((3..=4).contains(&there(&few)), "{}", there(&few));
    assert!(
        there(&young) <= 1,
        "{:?} {:?}",
        (0..10)
            .filter(|n| is_there(&young, *n, 1))
            .collect::<Vec<_>>(),
        young.stats()
    );
}

#[test]
fn the_order_of_tags_comes_before_what_things_cost() {
    #[sde::app(tags(expendable))]
    fn expendable(sde: &Handle, number: u64) -> Vec<u8> {
        sde.took(Duration::from_secs(5));
        vec![number as u8; 100 * KIB]
    }
    #[sde::app(tags(intermediate))]
    fn intermediate(number: u64) -> Vec<u8> {
        vec![number as u8; 100 * KIB]
    }
    let evicted = |first: &[Tag]| {
        let sde = with(MemoryBudget::bytes(1300 * KIB).first(first.iter().copied()));
        for number in 0..4 {
            expendable.call(&sde, number).unwrap();
            intermediate.call(&sde, number).unwrap();
        }
        for number in 0..7 {
            dear.call(&sde, number, 10, 100).unwrap();
        }
        let apps = sde.stats().apps;
        ["expendable", "intermediate", "budget.dear"].map(|app| apps[app].evicted)
    };
    assert_eq!(evicted(&[]), [0, 3, 0]);
    assert_eq!(evicted(&[Tag::Expendable, Tag::Intermediate]), [3, 0, 0]);
}

/// A run that nothing else has costs what it took, one that called others what these take too once they are gone.
#[test]
fn what_rests_on_what_has_left_costs_more() {
    #[sde::app(name = "budget.sum")]
    fn sum(sde: &Handle, number: u64) -> Result<Vec<u8>, sde::Error> {
        let whole = dear.call(sde, number, 10, 850)?;
        sde.took(Duration::from_millis(500));
        Ok(whole[..10 * KIB].to_vec())
    }
    let watch = Watch::new();
    let builder = Sde::builder()
        .memory_budget(MemoryBudget::bytes(1000 * KIB))
        .observer(watch.clone());
    let sde = builder.build().unwrap();
    sum.call(&sde, 1).unwrap();
    let mut cost = BTreeMap::new();
    for number in 0..30 {
        dear.call(&sde, number + 2, 15, 100).unwrap();
    }
    for event in watch.events() {
        if let Event::Evicted { app, cost: of, .. } = event {
            cost.entry(app.to_string()).or_insert(of);
        }
    }
    // What took 12 µs a byte left first, what rests on it took 50 by itself and 1000 with that, the others 150.
    assert_eq!(cost["budget.dear"], Duration::from_secs(10));
    assert!(!cost.contains_key("budget.sum"), "{cost:?}");
}

/// Works are cited whose records are forgotten.
#[test]
fn what_left_is_cited() {
    #[sde::app(citation = "Euler (1768)")]
    fn euler(number: u64) -> Vec<u8> {
        vec![number as u8; 100 * KIB]
    }
    #[sde::app(citation = "Heun (1900)")]
    fn heun(sde: &Handle, number: u64) -> Result<u64, sde::Error> {
        Ok(euler.call(sde, number)?.len() as u64)
    }
    let sde = with(MemoryBudget::bytes(100).forget_records());
    heun.call(&sde, 1).unwrap();
    field.call(&sde, 1, 200).unwrap();
    assert!(
        sde_tests::records(&sde).len() <= 1,
        "the last is its caller's"
    );
    let cited = sde.citations_used();
    assert_eq!(cited.keys().collect::<Vec<_>>(), ["euler", "heun"]);
}

/// What the program holds is its own: it neither leaves nor fills the budget, once nothing else is left to leave.
#[test]
fn what_the_program_holds_fills_no_budget() {
    let sde = with(MemoryBudget::bytes(500 * KIB).order(EvictionOrder::LeastRecentlyUsed));
    let held: Vec<_> = (0..20).map(|n| field.call(&sde, n, 100).unwrap()).collect();
    let used = sde.stats().memory.unwrap();
    assert!(used.bytes <= used.limit, "{used:?}");
    for number in 100..103 {
        field.call(&sde, number, 100).unwrap();
    }
    assert!((100..103).all(|number| is_there(&sde, number, 100)));
    assert!((0..20).all(|number| is_there(&sde, number, 100)));
    drop(held);
    for number in 200..240 {
        field.call(&sde, number, 100).unwrap();
    }
    let used = sde.stats().memory.unwrap();
    assert!(used.bytes <= used.limit, "{used:?}");
}

/// Whatever threads do at once, what is counted is what is there.
#[test]
fn sums_are_exact_after_any_stress() {
    let folder = tempfile::tempdir().unwrap();
    let stores = [None, Some(DirStore::open(folder.path()).unwrap())];
    for store in stores {
        let mut builder = Sde::builder().memory_budget(MemoryBudget::bytes(300 * KIB));
        if let Some(store) = store {
            builder = builder.store(store).save(sde::SavePolicy::OnRequest);
        }
        let sde = builder.build().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let sde = &sde;
                scope.spawn(move || {
                    for round in 0..150_u64 {
                        let number = (thread * 7 + round * 13) % 40;
                        match (thread + round) % 5 {
                            0 if round % 30 == 0 => sde.clear_app("budget.field").unwrap(),
                            1 => refresh(sde, number),
                            2 if round % 10 == 0 => drop(sde.evict("budget.field", 50 * KIB)),
                            3 if round % 50 == 0 => drop(sde.checkpoint()),
                            _ => drop(field.call(sde, number, 10).unwrap()),
                        }
                    }
                });
            }
        });
        field.call(&sde, 1000, 10).unwrap();
        let used = sde.stats().memory.unwrap();
        assert!(used.bytes <= used.limit, "{used:?}");
        assert!(used.entries >= (0..40).filter(|n| is_there(&sde, *n, 10)).count());
        sde.load(sde::archiver::MemoryArchiver::new()).unwrap();
        let used = sde.stats().memory.unwrap();
        assert_eq!((used.bytes, used.entries, used.kept_bytes), (0, 0, 0));
    }
}

/// The store has what was replaced, and nothing the new one.
#[test]
fn what_was_refreshed_is_not_replaced_by_what_was_before_it() {
    static VERSION: AtomicU64 = AtomicU64::new(1);
    #[sde::app(name = "budget.versions")]
    fn versions(number: u64) -> Vec<u64> {
        vec![VERSION.load(Ordering::Relaxed) + 10 * number; 1000]
    }
    let store = MemoryArchiver::new();
    let first = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    versions.call(&first, 1).unwrap();
    first.finish().unwrap();
    VERSION.store(2, Ordering::Relaxed);
    let builder = Sde::builder().store(store).save(SavePolicy::Never);
    let budget = MemoryBudget::bytes(10 * KIB).forget_records();
    let sde = builder.memory_budget(budget).build().unwrap();
    let inputs = inputs! { number: 1_u64 };
    let request = sde.request(&versions, &inputs).policy(Policy::Refresh);
    request.run().unwrap();
    for number in 0..10 {
        field.call(&sde, number, 100).unwrap();
    }
    assert_eq!(versions.call(&sde, 1).unwrap()[0], 12);
}

/// What the store has of the key since is of another process, and may be other.
#[test]
fn what_another_process_refreshed_is_no_copy() {
    static VERSION: AtomicU64 = AtomicU64::new(0);
    #[sde::app(name = "budget.refreshed")]
    fn refreshed() -> Vec<u64> {
        vec![VERSION.fetch_add(1, Ordering::Relaxed); 1000]
    }
    let store = MemoryArchiver::new();
    let budget = MemoryBudget::bytes(10 * KIB)
        .only_saved()
        .order(EvictionOrder::LeastRecentlyUsed);
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    let sde = builder.memory_budget(budget).build().unwrap();
    assert_eq!(refreshed.call(&sde).unwrap()[0], 0);
    sde.checkpoint().unwrap();
    sde.archive().unwrap();
    let other = Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let inputs = inputs! {};
    let request = other.request(&refreshed, &inputs).policy(Policy::Refresh);
    request.run().unwrap();
    other.finish().unwrap();
    for number in 0..20 {
        field.call(&sde, number, 100).unwrap();
    }
    assert_eq!(refreshed.call(&sde).unwrap()[0], 0);
}

/// Many small values are held, and large ones come and go.
#[test]
fn what_is_held_hides_nothing_that_is_let_go() {
    let sde = with(MemoryBudget::bytes(1000 * KIB));
    let held: Vec<_> = (0..300).map(|n| field.call(&sde, n, 8).unwrap()).collect();
    for number in 1000..1100 {
        field.call(&sde, number, 950).unwrap();
    }
    let used = sde.stats().memory.unwrap();
    assert!(used.bytes <= used.limit, "{used:?}");
    drop(held);
}

/// A run that gives on what another gave. Nobody holds any of it.
#[test]
fn what_entries_share_leaves() {
    #[sde::app(name = "budget.given_on")]
    fn given_on(sde: &Handle, number: u64) -> Result<Value<Vec<u8>>, sde::Error> {
        field.call(sde, number, 100)
    }
    let sde = with(MemoryBudget::bytes(500 * KIB));
    for number in 0..50 {
        given_on.call(&sde, number).unwrap();
    }
    let used = sde.stats().memory.unwrap();
    assert!(used.bytes <= used.limit, "{used:?}");
}

/// A result of eight bytes took 1,350: most of it said how it was made, which the store says too.
#[test]
fn inputs_leave_memory_once_a_store_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = DirStore::open(folder.path()).unwrap();
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    let sde = builder
        .save(SavePolicy::OnRequest)
        .memory_budget(MemoryBudget::bytes(usize::MAX - 1));
    let sde = sde.build().unwrap();
    for number in 0..10 {
        field.call(&sde, number, 0).unwrap();
    }
    let bytes = || sde.stats().memory.unwrap().bytes;
    let (before, records) = (bytes(), sde_tests::records(&sde));
    assert_eq!(records[3].inputs[0].short, "3");
    sde.checkpoint().unwrap();
    assert!(bytes() + 10 * 200 < before, "{before}, then {}", bytes());
    let inputs = |records: &[Record]| {
        let inputs = records.iter().map(|record| record.inputs.to_vec());
        inputs.collect::<Vec<_>>()
    };
    assert_eq!(inputs(&sde_tests::records(&sde)), inputs(&records));
    // The store may prefer another computation of a key.
    let elsewhere = DirStore::open(folder.path()).unwrap();
    let other = Sde::builder()
        .store(elsewhere)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let given = sde::inputs! { number: 3_u64, kib: 0_usize };
    let request = other.request(&field, &given).policy(Policy::Refresh);
    request.run().unwrap();
    other.finish().unwrap();
    store.catch_up(Duration::MAX);
    assert_eq!(inputs(&sde_tests::records(&sde)), inputs(&records));
}
