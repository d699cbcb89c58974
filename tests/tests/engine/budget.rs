//! What a memory budget counts, and what leaves.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sde::store::DirStore;
use sde::{
    App, AppError, AppInfo, Event, EvictionOrder, Fingerprint, Handle, Inputs, MemoryArchiver,
    MemoryBudget, Policy, ResultMap, ResultSpec, SavePolicy, Sde, Tag, Value, inputs,
};
use sde_tests::{Lie, Lying, Watch};

const KIB: usize = 1 << 10;

#[sde::app(name = "budget.field")]
fn field(number: u64, kib: usize) -> Vec<u8> {
    vec![number as u8; kib * KIB]
}

/// Says that it took so long, and gives as much.
#[sde::app(name = "budget.dear")]
fn dear(sde: &Handle, number: u64, seconds: u64, kib: usize) -> Vec<u8> {
    sde.took(Duration::from_secs(seconds));
    vec![number as u8; kib * KIB]
}

fn is_there(sde: &Sde, number: u64, kib: usize) -> bool {
    let peek = sde.peek(&field, &inputs! { number: number, kib: kib });
    matches!(peek.unwrap(), sde::Peek::Hit { .. })
}

fn refresh(sde: &Sde, number: u64) {
    let inputs = inputs! { number: number, kib: 10_usize };
    let request = sde.request(&field, &inputs).policy(Policy::Refresh);
    request.run().unwrap();
}

fn with(budget: MemoryBudget) -> Sde {
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
    let builder = Sde::builder().memory_budget(1000 * KIB);
    let sde = builder.memory_budget_of("own", 300 * KIB).build().unwrap();
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

/// By default, as programs have it.
#[test]
fn only_what_is_in_the_store_leaves_unasked() {
    let budget = MemoryBudget::bytes(500 * KIB).only_saved();
    let folder = tempfile::tempdir().unwrap();
    let watch = Watch::new();
    let sde = Sde::builder()
        .store(DirStore::open(folder.path()).unwrap())
        .memory_budget(budget.order(EvictionOrder::LeastRecentlyUsed))
        .observer(watch.clone())
        .build()
        .unwrap();
    for number in 0..20 {
        field.call(&sde, number, 100).unwrap();
        let used = sde.stats().memory.unwrap();
        assert!(used.bytes <= used.limit, "{used:?}");
    }
    // With its record: it is in the store.
    assert!(sde.records().len() <= 5, "{}", sde.records().len());
    assert_eq!(field.call(&sde, 0, 100).unwrap().len(), 100 * KIB);
    let stats = sde.stats().total;
    assert_eq!((stats.computed, stats.loads), (20, 1));
    assert_eq!(watch.warnings(), Vec::<String>::new());
}

/// One result that is saved, and one that never is.
#[derive(Fingerprint)]
struct Two;

impl App for Two {
    fn info(&self) -> AppInfo {
        let large = ResultSpec::new::<Vec<u8>>("large").tagged(Tag::Expendable);
        AppInfo::new("budget.Two", "1")
            .result(ResultSpec::new::<u64>("small"))
            .result(large)
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let number = *inputs.get::<u64>("number")?;
        Ok(ResultMap::new()
            .with("small", number)
            .with("large", vec![number as u8; 100 * KIB]))
    }
}

fn two(sde: &Sde, number: u64, result: &'static str) -> sde::Result<ResultMap> {
    sde.run_for(&Two, &inputs! { number: number }, &[result])
}

/// Found by using it: a store never has what is expendable, so an entry with one such result never left. 800 runs with 4 MB each
/// were 3.2 GB under a budget of 200 MB.
#[test]
fn what_is_expendable_leaves_whatever_the_store_has_of_its_entry() {
    let budget = || MemoryBudget::bytes(500 * KIB).only_saved();
    let folder = tempfile::tempdir().unwrap();
    let policies = [None, Some(SavePolicy::OnRequest), Some(SavePolicy::Never)];
    for policy in policies {
        let mut builder = Sde::builder().memory_budget(budget());
        if let Some(policy) = policy {
            let store = DirStore::open(folder.path().join(format!("{policy:?}"))).unwrap();
            builder = builder.store(store).save(policy);
        }
        let watch = Watch::new();
        let sde = builder.observer(watch.clone()).build().unwrap();
        let large = |number| two(&sde, number, "large")?.get::<Vec<u8>>("large");
        let held = large(0).unwrap();
        for number in 1..20 {
            large(number).unwrap();
            let used = sde.stats().memory.unwrap();
            assert!(used.bytes <= used.limit, "{used:?} with {policy:?}");
        }
        // What is to be saved is remembered, here or in the store.
        for number in 0..20 {
            let small = two(&sde, number, "small").unwrap();
            assert_eq!(*small.get::<u64>("small").unwrap(), number);
        }
        assert_eq!(sde.stats().total.computed, 20, "{policy:?}");
        // What the program holds did not leave.
        assert!(Value::ptr_eq(&large(0).unwrap(), &held));
        assert!((0..20).all(|number| large(number).unwrap()[7] == number as u8));
        assert!(sde.stats().total.computed > 30, "{:?}", sde.stats().total);
        assert_eq!(watch.warnings(), Vec::<String>::new());
    }
}

/// Found by a hostile program: the record of a run whose results are kept nowhere stayed for ever; 400,000 of them grew by 873 MB
/// under a budget of 8 MB.
#[test]
fn records_of_what_is_kept_nowhere_leave() {
    #[sde::app(tags(no_cache))]
    fn passing(number: u64) -> u64 {
        number
    }
    let folder = tempfile::tempdir().unwrap();
    let stores = [None, Some(DirStore::open(folder.path()).unwrap())];
    for budget in [MemoryBudget::bytes(256 * KIB), MemoryBudget::bytes(256 * KIB).only_saved()] {
        for store in &stores {
            let mut builder = Sde::builder().memory_budget(budget.clone());
            if let Some(store) = store {
                builder = builder.store(store.clone());
            }
            let sde = builder.build().unwrap();
            let held = passing.call(&sde, 0).unwrap();
            for number in 1..2_000 {
                passing.call(&sde, number).unwrap();
                let used = sde.stats().memory.unwrap();
                assert!(used.bytes <= used.limit, "{used:?}");
            }
            // What the program holds is found.
            assert!(Value::ptr_eq(&passing.call(&sde, 0).unwrap(), &held));
            assert_eq!(sde.stats().total.computed, 2_000);
        }
    }
}

#[test]
fn what_is_to_be_saved_and_is_not_stays_unless_the_budget_is_in_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |budget: MemoryBudget, policy: SavePolicy| {
        let watch = Watch::new();
        let store = DirStore::open(folder.path().join(format!("{policy:?}"))).unwrap();
        let builder = Sde::builder().store(store).save(policy);
        let builder = builder.memory_budget(budget).observer(watch.clone());
        let sde = builder.build().unwrap();
        for number in 0..10 {
            field.call(&sde, number, 100).unwrap();
        }
        (sde.stats().total.evicted > 0, watch.warnings())
    };
    let bytes = || MemoryBudget::bytes(500 * KIB);
    assert_eq!(run(bytes().only_saved(), SavePolicy::OnRequest), (true, vec![]));
    let (evicted, warnings) = run(bytes().only_saved(), SavePolicy::Never);
    assert!(!evicted);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("what is to be saved stays"), "{warnings:?}");
    assert_eq!(run(bytes(), SavePolicy::OnRequest), (true, vec![]));
    assert_eq!(run(bytes(), SavePolicy::Never), (true, vec![]));
}

/// Found by a hostile program: a failure that would come again counted for nothing, and 10^6 of them were 497 MB under 8 MiB.
#[test]
fn failures_that_are_remembered_count_and_leave() {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    #[sde::app(name = "budget.fails")]
    fn fails(number: u64) -> Result<u64, AppError> {
        TRIED.fetch_add(1, Ordering::Relaxed);
        let why = format!("{number} has no root: {}", "x".repeat(KIB));
        Err(AppError::message(why).permanent())
    }
    let sde = with(MemoryBudget::bytes(256 * KIB).only_saved());
    let first = fails.call(&sde, 0).unwrap_err();
    for number in 1..2_000 {
        fails.call(&sde, number).unwrap_err();
        let used = sde.stats().memory.unwrap();
        assert!(used.bytes <= used.limit, "{used:?}");
    }
    assert!(sde.stats().memory.unwrap().bytes > 200 * KIB);
    let tried = || TRIED.load(Ordering::Relaxed);
    assert_eq!(tried(), 2_000);
    // What the program holds did not leave; what left is tried again.
    assert!(fails.call(&sde, 0).unwrap_err().is_same(&first));
    assert_eq!(tried(), 2_000);
    let again = (1..2_000).map(|number| fails.call(&sde, number).unwrap_err().to_string());
    assert!(again.zip(1..).all(|(error, number): (_, u64)| error.contains(&format!("{number} has"))));
    assert!(tried() > 3_500);
    sde.clean_cache("budget.fails", []).unwrap();
    assert_eq!(sde.stats().memory.unwrap().bytes, 0);
}

#[test]
fn without_a_store_what_is_to_be_saved_stays_and_a_warning_says_so() {
    let watch = Watch::new();
    let budget = MemoryBudget::bytes(300 * KIB).only_saved();
    let builder = Sde::builder().memory_budget(budget).observer(watch.clone());
    let sde = builder.build().unwrap();
    for number in 0..10 {
        field.call(&sde, number, 100).unwrap();
    }
    assert!((0..10).all(|number| is_there(&sde, number, 100)));
    let warnings = watch.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("without a store only what is `expendable` leaves"),
        "{warnings:?}"
    );
    let used = sde.stats().memory.unwrap();
    assert!(used.kept_bytes > 900 * KIB, "{used:?}");
}

/// What was in the store and is not any more is the only copy.
#[test]
fn what_a_store_has_lost_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = DirStore::open(&path).unwrap();
    let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
    let budget = MemoryBudget::bytes(450 * KIB).only_saved();
    let sde = builder.memory_budget(budget).build().unwrap();
    for number in 0..4 {
        field.call(&sde, number, 100).unwrap();
    }
    std::fs::remove_dir_all(&path).unwrap();
    for number in (4..10).chain(0..4) {
        field.call(&sde, number, 100).unwrap();
    }
    assert_eq!(sde.stats().total.computed, 10);
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
        .memory_budget(1000 * KIB)
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
    assert!(sde.records().len() <= 1, "the last is its caller's");
    let cited = sde.citations_used();
    assert_eq!(cited.keys().collect::<Vec<_>>(), ["euler", "heun"]);
}

/// What the program holds is its own: it neither leaves nor fills the budget, once nothing else is left to leave.
#[test]
fn what_the_program_holds_fills_no_budget() {
    let sde = with(MemoryBudget::bytes(500 * KIB).order(EvictionOrder::LeastRecentlyUsed));
    let held: Vec<_> = (0..20).map(|n| field.call(&sde, n, 100).unwrap()).collect();
    let used = sde.stats().memory.unwrap();
    assert!(
        used.in_use_bytes > 1500 * KIB && used.bytes <= used.limit,
        "{used:?}"
    );
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
    assert!(
        used.in_use_bytes == 0 && used.bytes <= used.limit,
        "{used:?}"
    );
}

/// Whatever threads do at once, what is counted is what is there.
#[test]
fn sums_are_exact_after_any_stress() {
    let folder = tempfile::tempdir().unwrap();
    let stores = [None, Some(DirStore::open(folder.path()).unwrap())];
    for store in stores {
        let mut builder = Sde::builder().memory_budget(MemoryBudget::bytes(300 * KIB));
        if let Some(store) = store {
            builder = builder.store(store);
        }
        let sde = builder.build().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let sde = &sde;
                scope.spawn(move || {
                    for round in 0..150_u64 {
                        let number = (thread * 7 + round * 13) % 40;
                        match (thread + round) % 5 {
                            0 if round % 30 == 0 => sde.clean_cache("budget.field", []).unwrap(),
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
        sde.load(sde::MemoryArchiver::new()).unwrap();
        let used = sde.stats().memory.unwrap();
        let left = (used.bytes, used.entries, used.kept_bytes, used.in_use_bytes);
        assert_eq!(left, (0, 0, 0, 0));
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
    let first = Sde::builder().store(store.clone()).build().unwrap();
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

/// As when a disk is full for a while.
#[test]
fn what_stayed_for_want_of_a_store_leaves_when_there_is_one() {
    let store = Lying::new();
    store.tell(Lie::SaveFails);
    let budget = MemoryBudget::bytes(500 * KIB).only_saved();
    let watch = Watch::new();
    let builder = Sde::builder().store(store.clone()).memory_budget(budget);
    let sde = builder.observer(watch.clone()).build().unwrap();
    for number in 0..30 {
        field.call(&sde, number, 100).unwrap();
    }
    let about_saving = |text: &String| text.contains("could not be saved");
    assert_eq!(watch.warnings().into_iter().filter(about_saving).count(), 1);
    assert!(sde.stats().memory.unwrap().kept_bytes > 2500 * KIB);
    store.tell(Lie::None);
    for number in 100..200 {
        field.call(&sde, number, 100).unwrap();
    }
    let used = sde.stats().memory.unwrap();
    assert!(used.bytes < 600 * KIB, "{used:?}");
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
    // What is held, and the last value that came and the one before it.
    assert!(used.in_use_bytes < (2400 + 2 * 950 + 100) * KIB, "{used:?}");
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
    assert!(
        used.in_use_bytes < 300 * KIB && used.bytes <= used.limit,
        "{used:?}"
    );
}

/// What was too much and stayed is not forgotten.
#[test]
fn what_stays_is_saved_when_that_is_asked_for() {
    let store = MemoryArchiver::new();
    let builder = Sde::builder().store(store.clone()).save(SavePolicy::Never);
    let budget = MemoryBudget::bytes(200 * KIB).only_saved();
    let sde = builder.memory_budget(budget).build().unwrap();
    for number in 0..10 {
        field.call(&sde, number, 100).unwrap();
    }
    sde.checkpoint().unwrap();
    drop(sde);
    let sde = Sde::builder().store(store).build().unwrap();
    for number in 0..10 {
        field.call(&sde, number, 100).unwrap();
    }
    assert_eq!(sde.stats().total.computed, 0);
}
