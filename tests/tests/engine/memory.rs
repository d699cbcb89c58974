//! What a limit frees, with a store and without one.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sde::store::DirStore;
use sde::{Event, EvictionOrder, MemoryBudget, MemorySize, SavePolicy, Sde};

/// How many values are in memory.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Held by a test that looks at `LIVE`.
static ALONE: Mutex<()> = Mutex::new(());

const SIZE: usize = 100_000;

/// What entries take besides their values, about.
const ENTRIES: usize = SIZE / 2;

/// A value that counts itself, if it is one that a run has made: a store makes one to learn what the type looks like.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<u8>")]
struct Block(Vec<u8>);

impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Self {
        LIVE.fetch_add(usize::from(bytes.len() == SIZE), Relaxed);
        Self(bytes)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        LIVE.fetch_sub(usize::from(self.0.len() == SIZE), Relaxed);
    }
}

impl MemorySize for Block {
    fn memory_size(&self) -> usize {
        self.0.len()
    }
}

#[sde::app(sized)]
fn block(n: u8) -> Block {
    Block::from(vec![n; SIZE])
}

#[sde::app(sized, tags(intermediate))]
fn passing_block(n: u8) -> Block {
    Block::from(vec![n; SIZE])
}

/// Found by using it: what a limit or a cleaning dropped was held by the lists of what is to be saved. The list of the
/// archive was emptied by `archive` only, so that results that were on the disk already stayed: 3.9 GB, with a limit of 200 MB.
#[test]
fn a_limit_frees_memory_whatever_is_saved_when() {
    const FIT: usize = 8;
    let policies = [
        None,
        Some(SavePolicy::Never),
        Some(SavePolicy::OnRequest),
        Some(SavePolicy::EveryResult),
        Some(SavePolicy::Interval(Duration::from_secs(1000))),
        Some(SavePolicy::InBackground),
    ];
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for policy in policies {
        let folder = tempfile::tempdir().unwrap();
        let builder = || {
            let limited = Sde::builder()
                .memory_budget_of("block", MemoryBudget::bytes(FIT * SIZE + ENTRIES))
                .memory_budget_of("passing_block", MemoryBudget::bytes(FIT * SIZE + ENTRIES));
            match policy {
                None => limited,
                Some(policy) => {
                    let store = DirStore::open(folder.path().join("store")).unwrap();
                    limited.store(store).save(policy)
                }
            }
        };
        let sde = builder().build().unwrap();
        for n in 0..20 {
            block.call(&sde, n).unwrap();
            passing_block.call(&sde, n).unwrap();
            let live = LIVE.load(Relaxed);
            // A checkpoint holds what it saves.
            let held = if policy == Some(SavePolicy::InBackground) {
                2 * FIT
            } else {
                0
            };
            assert!(live <= 2 * FIT + 2 + held, "{live} with {policy:?}");
        }
        sde.finish().unwrap();
        drop(sde);
        // A checkpoint in the background may hold the engine a little longer.
        while policy == Some(SavePolicy::InBackground) && LIVE.load(Relaxed) > 0 {
            std::thread::yield_now();
        }
        assert_eq!(LIVE.load(Relaxed), 0, "{policy:?}");
        // What was dropped before it was to be saved was saved.
        if !matches!(policy, None | Some(SavePolicy::Never)) {
            let sde = builder().build().unwrap();
            for n in 0..20 {
                assert_eq!(block.call(&sde, n).unwrap().0[7], n);
                assert_eq!(passing_block.call(&sde, n).unwrap().0[7], n);
            }
            assert_eq!(sde.stats().total.computed, 0, "{policy:?}");
        }
    }
}

#[test]
fn cleaning_frees_what_is_saved() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let store = DirStore::open(folder.path().join("store")).unwrap();
    let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
    let sde = builder.build().unwrap();
    block.call(&sde, 1).unwrap();
    sde.clear_app("block").unwrap();
    assert_eq!(LIVE.load(Relaxed), 0);
}

/// Found by using it: the values of a whole save were held until its end, 357 MB where a limit was 200 MB.
#[test]
fn a_save_lets_go_what_it_has_written() {
    const ALL: usize = 100;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let store = DirStore::open(folder.path().join("store")).unwrap();
    let parts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&parts);
    let note = move |event: &Event| {
        if let Event::Progress { done, .. } = event {
            noted.lock().unwrap().push((*done, LIVE.load(Relaxed)));
        }
    };
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    let sde = builder.observer(note).build().unwrap();
    for n in 0..ALL as u8 {
        passing_block.call(&sde, n).unwrap();
    }
    sde.clear_app("passing_block").unwrap();
    let got = LIVE.load(Relaxed);
    assert_eq!(got, ALL, "what is not saved is held until it is");
    sde.checkpoint().unwrap();
    let parts = parts.lock().unwrap().clone();
    assert!(
        parts.len() > 1 && parts[0].0 < ALL,
        "in one part: {parts:?}"
    );
    for (done, live) in &parts {
        assert_eq!(done + live, ALL, "{parts:?}");
    }
}

/// What a thread found lately is found without a digest; that keeps nothing alive that a limit evicts, and what is
/// evicted of one app takes nothing from another.
#[test]
fn recent_hits_keep_nothing_and_outlast_evictions_elsewhere() {
    #[sde::app]
    fn other(n: u8) -> u8 {
        n
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let budget = MemoryBudget::bytes(4 * SIZE + ENTRIES);
    let budget = budget.order(EvictionOrder::LeastRecentlyUsed);
    let builder = Sde::builder().memory_budget_of("block", budget);
    let sde = builder.build().unwrap();
    let hits = |app: &str| {
        let stats = sde.stats().apps[app];
        (stats.recent_hits, stats.map_hits)
    };
    assert_eq!(sde.stats().recent_bytes, 0);
    for _ in 0..3 {
        other.call(&sde, 1).unwrap();
        block.call(&sde, 1).unwrap();
    }
    assert_eq!((hits("other"), hits("block")), ((1, 1), (1, 1)));
    assert!(sde.stats().recent_bytes > 0);
    for n in 2..10 {
        block.call(&sde, n).unwrap();
    }
    assert!(LIVE.load(Relaxed) <= 4);
    block.call(&sde, 1).unwrap();
    assert_eq!(hits("block"), (1, 1), "it was evicted");
    other.call(&sde, 1).unwrap();
    assert_eq!(hits("other"), (2, 1));
    // What is used at the first level is used.
    for n in 20..40 {
        block.call(&sde, 1).unwrap();
        block.call(&sde, n).unwrap();
    }
    assert_eq!(hits("block"), (20, 2));
}

/// Found by a hostile program: each time that there was no room all entries were looked at, also those that had nothing any
/// more: 20,000 keys of 1 KiB took 5.2 s for the last 2,000 and 0.08 s for the first.
#[test]
fn each_value_is_asked_for_its_size_once() {
    thread_local! {
        static ASKED: Cell<usize> = const { Cell::new(0) };
    }
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Asked(u32);
    impl MemorySize for Asked {
        fn memory_size(&self) -> usize {
            ASKED.set(ASKED.get() + 1);
            // Found by a hostile program: one that panicked had all later runs of its app panic.
            assert_ne!(self.0, 100, "it has no size");
            1000
        }
    }
    #[sde::app(sized)]
    fn asked(n: u32) -> Asked {
        Asked(n)
    }
    const RUNS: u32 = 2_000;
    let builder = Sde::builder().memory_budget_of("asked", MemoryBudget::bytes(50_000));
    let sde = builder.build().unwrap();
    for n in 0..RUNS {
        asked.call(&sde, n).unwrap();
    }
    assert_eq!(ASKED.get(), RUNS as usize);
    assert!(sde.stats().total.evicted > 1_900);
}
