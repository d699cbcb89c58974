//! Values of an app that may take only so much memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sde::{
    App, AppError, AppInfo, Event, EventLog, EvictionOrder, Fingerprint, Handle, Inputs,
    MemoryBudget, MemorySize, ResultMap, ResultSpec, Sde, inputs,
};
use sde_tests::{Lie, Lying};

#[sde::app]
fn zeros(length: usize) -> Vec<f64> {
    vec![0.0; length]
}

/// What one entry takes besides its values, about.
const ENTRY: usize = 1_650;

fn limited(bytes: usize) -> (Sde, EventLog) {
    let log = EventLog::new();
    let builder = Sde::builder().observer(log.clone());
    let budget = MemoryBudget::bytes(bytes).order(EvictionOrder::LeastRecentlyUsed);
    let sde = builder.memory_budget_of("zeros", budget).build();
    (sde.unwrap(), log)
}

/// Whether a run is remembered; asking does not count as a use.
fn is_there(sde: &Sde, length: usize) -> bool {
    let peek = sde.peek(&zeros, &inputs! { length: length });
    matches!(peek.unwrap(), sde::Peek::Hit { .. })
}

fn evicted(log: &EventLog) -> usize {
    let events = log.events();
    let evicted = |event: &&Event| matches!(event, Event::Evicted { .. });
    events.iter().filter(evicted).count()
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    // Ten of them fit, and the records of a few more.
    let (sde, log) = limited(10 * (8_040 + ENTRY) + ENTRY);
    for length in 1_000..1_010 {
        zeros.call(&sde, length).unwrap();
    }
    assert_eq!(evicted(&log), 0);
    zeros.call(&sde, 1_000).unwrap();
    zeros.call(&sde, 1_003).unwrap();
    zeros.call(&sde, 1_010).unwrap();
    zeros.call(&sde, 1_011).unwrap();
    let gone: Vec<_> = (1_000..1_012).filter(|n| !is_there(&sde, *n)).collect();
    assert_eq!(gone, [1_001, 1_002]);
    let stats = sde.stats().total;
    assert_eq!((evicted(&log), stats.evicted), (2, 2));
    assert_eq!(stats.evicted_bytes, 8 * (1_001 + 1_002) + 2 * 24);
    assert!(stats.evicted_time > Duration::ZERO);
    // The record of what went stays, and the result comes again.
    assert_eq!(sde_tests::records(&sde).len(), 12);
    assert_eq!(zeros.call(&sde, 1_001).unwrap().len(), 1_001);
    assert_eq!(sde.stats().total.computed, 13);
}

/// Dropping it would free nothing.
#[test]
fn what_somebody_holds_stays() {
    let (sde, _) = limited(3 * (8_040 + ENTRY) + 30 * ENTRY);
    let map = sde.run(&zeros, &inputs! { length: 1_000_usize }).unwrap();
    let value = zeros.call(&sde, 1_001).unwrap();
    for length in 1_002..1_020 {
        zeros.call(&sde, length).unwrap();
    }
    assert!(is_there(&sde, 1_000) && is_there(&sde, 1_001));
    drop((map, value));
    for length in 1_020..1_040 {
        zeros.call(&sde, length).unwrap();
    }
    assert!(!is_there(&sde, 1_000) && !is_there(&sde, 1_001));
}

/// A fixed fault: an entry whose value the program held when its turn came was told of and counted then, and a second
/// time when its record left.
#[test]
fn what_was_held_when_its_value_left_is_told_of_once() {
    let log = EventLog::new();
    let builder = Sde::builder().observer(log.clone());
    let budget = MemoryBudget::bytes(3 * (8_040 + ENTRY)).forget_records();
    let sde = builder.memory_budget(budget.order(EvictionOrder::LeastRecentlyUsed));
    let sde = sde.build().unwrap();
    let value = zeros.call(&sde, 1_000).unwrap();
    for length in 1_001..1_020 {
        zeros.call(&sde, length).unwrap();
    }
    drop(value);
    for length in 1_020..1_060 {
        zeros.call(&sde, length).unwrap();
    }
    assert!(!is_there(&sde, 1_000) && sde_tests::records(&sde).len() < 10);
    let told = log.events().into_iter().filter_map(|event| match event {
        Event::Evicted { key, .. } => Some(key),
        _ => None,
    });
    let mut told: Vec<_> = told.collect();
    assert_eq!(told.len() as u64, sde.stats().total.evicted);
    told.sort();
    assert!(told.windows(2).all(|two| two[0] != two[1]), "{told:?}");
}

#[test]
fn apps_without_a_limit_keep_everything() {
    let (sde, log) = limited(0);
    #[sde::app]
    fn ones(length: usize) -> Vec<f64> {
        vec![1.0; length]
    }
    for length in 0..100 {
        ones.call(&sde, length).unwrap();
    }
    for length in 0..100 {
        ones.call(&sde, length).unwrap();
    }
    assert_eq!((sde.stats().total.computed, evicted(&log)), (100, 0));
}

/// What was let go is no reason to try again what can't be done.
#[test]
fn a_failure_is_remembered_when_room_is_made() {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    #[sde::app]
    fn square_root(of: f64) -> Result<f64, AppError> {
        TRIED.fetch_add(1, Ordering::Relaxed);
        match of < 0.0 {
            true => Err(AppError::message("it is negative").permanent()),
            false => Ok(of.sqrt()),
        }
    }
    let (sde, log) = limited(0);
    square_root.call(&sde, -1.0).unwrap_err();
    zeros.call(&sde, 1_000).unwrap();
    zeros.call(&sde, 1_001).unwrap();
    assert_ne!(evicted(&log), 0);
    square_root.call(&sde, -1.0).unwrap_err();
    assert_eq!(TRIED.load(Ordering::Relaxed), 1);
    // It is tried again when it was cleaned.
    sde.clear_app("square_root").unwrap();
    square_root.call(&sde, -1.0).unwrap_err();
    assert_eq!(TRIED.load(Ordering::Relaxed), 2);
}

/// How many of them there are.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Something that takes a device's memory.
struct Texture(usize);

impl MemorySize for Texture {
    fn memory_size(&self) -> usize {
        self.0
    }
}

impl Drop for Texture {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Fingerprint)]
struct Draw;

impl App for Draw {
    fn info(&self) -> AppInfo {
        AppInfo::new("Draw", "1")
            .result(ResultSpec::unsaved::<Texture>("texture").sized::<Texture>())
    }
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let size = *inputs.get::<usize>("size")?;
        // There is room for four.
        if LIVE.load(Ordering::Relaxed) == 4 {
            assert_eq!(sde.evict("Draw", 200), 200);
            assert_eq!(LIVE.load(Ordering::Relaxed), 2);
        }
        LIVE.fetch_add(1, Ordering::Relaxed);
        Ok(ResultMap::new().with("texture", Texture(size)))
    }
}

#[test]
fn an_app_makes_room_where_there_is_none_left() {
    let builder = Sde::builder().memory_budget_of("Draw", MemoryBudget::bytes(1_000));
    let sde = builder.build().unwrap();
    for replica in 0..20_u64 {
        let inputs = inputs! { size: 100_usize, replica: replica };
        sde.request(&Draw, &inputs)
            .names(&["texture"])
            .run()
            .unwrap();
    }
    assert!(LIVE.load(Ordering::Relaxed) <= 4);
}

/// What is held is known exactly whatever threads do at once.
#[test]
fn threads_that_come_and_go_keep_within_the_limit() {
    let (sde, _) = limited(200_000);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let sde = &sde;
            scope.spawn(move || {
                for round in 0..200_usize {
                    let length = 1_000 + (thread * 7 + round * 13) % 50;
                    assert_eq!(zeros.call(sde, length).unwrap().len(), length);
                }
            });
        }
    });
    // One more, when nobody holds anything, brings it within the limit.
    zeros.call(&sde, 2_000).unwrap();
    let used = sde.stats().memory_of["zeros"];
    assert!(used.bytes <= used.limit, "{used:?}");
    let held: usize = (1_000..1_050)
        .filter(|n| is_there(&sde, *n))
        .map(|n| 8 * n)
        .sum();
    assert!(held <= 200_000, "{held}");
}

/// Known when it has run, and not before.
#[derive(Fingerprint)]
struct ByTrait;

impl App for ByTrait {
    fn info(&self) -> AppInfo {
        AppInfo::new("eviction.ByTrait", "1").result(ResultSpec::new::<u8>("y"))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("y", 1_u8))
    }
}

/// Found by using it: the name of an app was misspelt where its memory was limited, and nothing said that the limit was
/// none.
#[test]
fn a_limit_for_no_app_is_warned_of() {
    let log = EventLog::new();
    let sde = Sde::builder().observer(log.clone());
    let sde = sde
        .memory_budget_of("zeross", MemoryBudget::bytes(1))
        .memory_budget_of("zeros", MemoryBudget::bytes(1));
    let sde = sde
        .memory_budget_of("eviction.ByTrait", MemoryBudget::bytes(1))
        .build()
        .unwrap();
    sde.run(&ByTrait, &inputs! {}).unwrap();
    let other = sde.clone();
    drop(sde);
    let warnings = || {
        let message = |event| match event {
            Event::Warning { message, .. } => Some(message),
            _ => None,
        };
        log.events()
            .into_iter()
            .filter_map(message)
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings(), Vec::<String>::new(), "it may be shown yet");
    drop(other);
    let warnings = warnings();
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(warning.contains("memory budget of \"zeross\""), "{warning}");
    assert!(warning.contains("did you mean: zeros"), "{warning}");
}

/// Found by leaving out a guard that no test missed: what was about to leave when the store panicked was on no list any more,
/// and stayed for ever.
#[test]
fn what_a_store_panicked_at_leaves_later() {
    let store = Lying::new();
    let budget =
        MemoryBudget::bytes(10 * (8_040 + ENTRY) + ENTRY).order(EvictionOrder::LeastRecentlyUsed);
    let builder = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest);
    let sde = builder.memory_budget_of("zeros", budget).build().unwrap();
    for length in 1_000..1_010 {
        zeros.call(&sde, length).unwrap();
    }
    // It is asked for what is saved when that is about to leave.
    sde.checkpoint().unwrap();
    sde.archive().unwrap();
    store.tell(Lie::Panics);
    // More than one has to leave at once.
    let much = AssertUnwindSafe(|| zeros.call(&sde, 4_000).is_ok());
    assert!(catch_unwind(much).is_err());
    store.tell(Lie::None);
    for length in 1_010..1_040 {
        zeros.call(&sde, length).unwrap();
    }
    let used = sde.stats().memory_of["zeros"];
    assert!(used.bytes <= used.limit, "{used:?}");
}
