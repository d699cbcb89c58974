//! A store keeps the limits that it was opened with.

use std::path::Path;
use std::time::Duration;

use sde::archiver::Archiver;
use sde::{Event, EventLog, Key, SavePolicy, Sde, inputs};
use sde_archives::{DirStore, Removal, Retention, StoreOptions};
use tempfile::tempdir;

use super::apps::{Table, expected_page, page};
use super::child::{self, Worker};
use super::compact::{bytes, loads, segments};
use super::log::warnings;
use super::watchdog::Watchdog;

/// What takes so long hangs.
const LIMIT: Duration = Duration::from_secs(300);

const CAPACITY: u64 = 256 << 10;

/// Ten times as many pages as there is room for.
const PAGES: u64 = 2400;

fn open(dir: &Path, retention: Retention) -> DirStore {
    let options = StoreOptions::new().segment_size(16 << 10).without_uses();
    options.retention(retention).open(dir).unwrap()
}

fn results() -> Retention {
    Retention::new().results().capacity(CAPACITY)
}

fn on(store: &DirStore) -> Sde {
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    builder.save(SavePolicy::OnRequest).build().unwrap()
}

fn save(sde: &Sde, number: u64) -> Key {
    sde.request(&page, &inputs! { number: number })
        .run()
        .unwrap()
        .key
}

/// Which pages a store has of so many.
fn left(dir: &Path, pages: u64) -> Vec<u64> {
    let sde = on(&DirStore::open(dir).unwrap());
    let is_there = |number: &u64| {
        let computed = sde.stats().total.computed;
        assert_eq!(*page.call(&sde, *number).unwrap(), expected_page(*number));
        sde.stats().total.computed == computed
    };
    let left = (0..pages).filter(is_there).collect();
    std::mem::forget(sde);
    left
}

/// Saves all pages, and uses the first three all the while.
fn fill(dir: &Path, retention: Retention) -> Vec<u64> {
    let store = open(dir, retention);
    let sde = on(&store);
    let used = [0, 1, 2].map(|number| save(&sde, number));
    let (mut most, mut warned) = (0, Vec::new());
    for number in 3..PAGES {
        save(&sde, number);
        if number % 20 == 0 {
            for key in &used {
                store.find(key).unwrap();
            }
            warned.extend(warnings(|| sde.checkpoint().unwrap()).1);
            most = most.max(bytes(dir));
        }
    }
    assert_eq!(warned, [""; 0]);
    sde.finish().unwrap();
    drop((sde, store));
    assert!(most < CAPACITY + CAPACITY / 8, "{most}");
    assert!(bytes(dir) > CAPACITY / 2, "{}", bytes(dir));
    left(dir, PAGES)
}

#[test]
fn the_most_recently_used_stay_while_ten_times_as_much_is_saved() {
    let dir = tempdir().unwrap();
    let left = fill(dir.path(), results());
    assert_eq!(left[..3], [0, 1, 2], "{left:?}");
    let latest: Vec<u64> = (PAGES - left.len() as u64 + 3..PAGES).collect();
    assert_eq!(left[3..], latest);
}

/// Found by use: a use was noted where the store is asked. Results that were asked for a thousand times, from memory, left the
/// store first.
#[test]
fn what_is_used_from_memory_all_the_time_stays() {
    let dir = tempdir().unwrap();
    let sde = on(&open(dir.path(), results()));
    for number in 0..PAGES / 4 {
        for used in 0..3 {
            save(&sde, used);
        }
        save(&sde, number);
        if number % 20 == 0 {
            sde.checkpoint().unwrap();
        }
    }
    sde.finish().unwrap();
    drop(sde);
    let left = left(dir.path(), 3);
    assert!(
        left == [0, 1, 2],
        "of the results that are used all the time, these stay: {left:?}"
    );
}

/// It commits at its end only, and may run for a month.
#[test]
fn a_program_that_saves_each_result_keeps_its_limits_all_the_time() {
    let dir = tempdir().unwrap();
    let store = open(dir.path(), results());
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
    let most = (0..PAGES).map(|number| {
        save(&sde, number);
        // It waits for what the save left to a thread.
        store.finish();
        bytes(dir.path())
    });
    // An eighth more, and what it is writing.
    let most = most.max().unwrap();
    assert!(most < CAPACITY + CAPACITY / 8 + (64 << 10), "{most}");
}

/// Found by hostile use: a thread that looked whether there is too much held the list of segments while it asked how much is
/// being written; another held what it was writing, and asked for the list. Six of six programs hung.
#[test]
fn two_threads_that_save_do_not_wait_for_each_other() {
    let _dog = Watchdog::new("a store with a capacity and two threads", LIMIT);
    let dir = tempdir().unwrap();
    let builder = Sde::builder()
        .store(open(dir.path(), results()))
        .save(SavePolicy::OnRequest);
    let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
    std::thread::scope(|scope| {
        for first in [0, PAGES] {
            let sde = &sde;
            scope.spawn(move || {
                for number in first..first + PAGES / 2 {
                    save(sde, number);
                }
            });
        }
    });
}

#[test]
fn a_compaction_and_a_thread_that_saves_do_not_wait_for_each_other() {
    let _dog = Watchdog::new("a compaction and a thread that saves", LIMIT);
    let dir = tempdir().unwrap();
    let store = open(dir.path(), Retention::new());
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
    std::thread::scope(|scope| {
        let saving = scope.spawn(|| {
            for number in 0..400 {
                save(&sde, number);
            }
        });
        while !saving.is_finished() {
            store.compact(&Retention::new()).unwrap();
        }
    });
}

#[test]
fn the_last_in_stay_however_the_first_are_used() {
    let dir = tempdir().unwrap();
    let left = fill(dir.path(), results().order(Removal::FirstIn));
    let latest: Vec<u64> = (PAGES - left.len() as u64..PAGES).collect();
    assert_eq!(left, latest);
}

#[test]
fn a_limit_of_one_app_is_for_that_app() {
    let dir = tempdir().unwrap();
    let of_page = Retention::new().results().capacity(32 << 10);
    let store = open(dir.path(), Retention::new().app("page", of_page));
    let sde = on(&store);
    for n in 0..40_u64 {
        sde.run(&Table, &inputs! { n: n }).unwrap();
    }
    for number in 0..400 {
        save(&sde, number);
        if number % 20 == 0 {
            sde.checkpoint().unwrap();
        }
    }
    sde.finish().unwrap();
    drop((sde, store));
    let pages = left(dir.path(), 400).len();
    assert!((10..60).contains(&pages), "{pages}");
    let sde = on(&DirStore::open(dir.path()).unwrap());
    for n in 0..40_u64 {
        sde.run(&Table, &inputs! { n: n }).unwrap();
    }
    assert_eq!(sde.stats().total.computed, 0);
    std::mem::forget(sde);
}

#[test]
fn results_stay_unless_it_is_said() {
    let dir = tempdir().unwrap();
    let store = open(dir.path(), Retention::new().capacity(16 << 10));
    let sde = on(&store);
    for number in 0..200 {
        save(&sde, number);
        sde.run(&Table, &inputs! { n: 100 + number }).unwrap();
        if number % 20 == 0 {
            sde.checkpoint().unwrap();
        }
    }
    sde.finish().unwrap();
    drop((sde, store));
    loads(DirStore::open(dir.path()).unwrap(), 0..200);
    let sde = on(&DirStore::open(dir.path()).unwrap());
    let mut computed = Vec::new();
    for results in [&["sum"], &["squares"]] {
        for n in 100..300_u64 {
            sde.request(&Table, &inputs! { n: n })
                .names(results)
                .run()
                .unwrap();
        }
        computed.push(sde.stats().total.computed);
    }
    assert_eq!(computed[0], 0);
    assert!(computed[1] > 150, "{computed:?}");
    std::mem::forget(sde);
}

/// They count as saved: nothing is tried again, and nothing is warned of.
#[test]
fn entries_of_other_sizes_are_not_saved() {
    for limits in [
        Retention::new().min_entry(1 << 20),
        Retention::new().max_entry(100),
    ] {
        let dir = tempdir().unwrap();
        let store = open(dir.path(), limits.results());
        let log = EventLog::new();
        let builder = Sde::builder()
            .store(store)
            .save(SavePolicy::OnRequest)
            .observer(log.clone());
        let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
        save(&sde, 1);
        let there = segments(dir.path());
        sde.checkpoint().unwrap();
        sde.finish().unwrap();
        drop(sde);
        let warned = log.events();
        let warned = warned
            .iter()
            .any(|event| matches!(event, Event::Warning { .. }));
        assert!(!warned);
        let got = (segments(dir.path()), left(dir.path(), 2));
        assert_eq!(got, (there, Vec::new()));
    }
    // They are results, and nothing was said of those.
    let dir = tempdir().unwrap();
    save(&on(&open(dir.path(), Retention::new().max_entry(100))), 1);
    assert_eq!(left(dir.path(), 2), [1]);
}

/// A worker's job: saves pages within the limits that the environment says.
pub fn work(dir: &Path) {
    let store = DirStore::open(dir).unwrap();
    let sde = on(&store);
    let from = child::setting("from").unwrap();
    for number in from..from + PAGES / 4 {
        save(&sde, number);
        if number % 20 == 19 {
            sde.checkpoint().unwrap();
        }
    }
    sde.finish().unwrap();
    child::tell(format_args!("last {}", from + PAGES / 4 - 1));
}

#[test]
fn two_processes_keep_the_capacity_that_the_environment_says() {
    let dir = tempdir().unwrap();
    let start = |from| {
        let limits = [
            ("SDE_STORE_CAPACITY", CAPACITY),
            ("SDE_STORE_LIMIT_RESULTS", 1),
        ];
        let settings = [&limits[..], &[("from", from)]].concat();
        Worker::start("capacity", dir.path(), &settings)
    };
    let workers = [start(0), start(PAGES / 4)];
    for mut worker in workers {
        assert_eq!(worker.rest().len(), 1);
    }
    // Each may have a segment open that the other leaves alone.
    assert!(
        bytes(dir.path()) < CAPACITY * 3 / 2,
        "{}",
        bytes(dir.path())
    );
    let left = left(dir.path(), PAGES / 2);
    assert!(left.len() > 60, "{left:?}");
}

#[test]
fn a_thousand_tasks_do_not_leave_a_thousand_files() {
    let dir = tempdir().unwrap();
    for number in 0..200 {
        let options = StoreOptions::new().grace(Duration::ZERO);
        let sde = on(&options.open(dir.path()).unwrap());
        save(&sde, number);
        sde.finish().unwrap();
    }
    let files = segments(dir.path()).len();
    assert!(files < 64, "{files}");
    loads(DirStore::open(dir.path()).unwrap(), 0..200);
}

/// Found by use: 300 short runs that only loaded left 309 files, which stayed for the time of grace. Each tells what it did, so it
/// writes a file; those that hold nothing else need no grace.
#[test]
fn a_hundred_tasks_that_only_load_leave_few_files() {
    let dir = tempdir().unwrap();
    for _ in 0..=100 {
        let sde = on(&DirStore::open(dir.path()).unwrap());
        save(&sde, 0);
        sde.finish().unwrap();
    }
    loads(DirStore::open(dir.path()).unwrap(), 0..1);
    let files = segments(dir.path()).len();
    assert!(
        files <= 40,
        "{files} files after a hundred runs that only load"
    );
}

/// It says nothing of how long the segments of the others are.
#[test]
fn a_limit_of_one_app_makes_no_more_files() {
    let dir = tempdir().unwrap();
    let limit = Retention::new().capacity(1 << 20);
    let store = StoreOptions::new().retention(Retention::new().results().app("other", limit));
    let builder = Sde::builder()
        .store(store.open(dir.path()).unwrap())
        .save(SavePolicy::OnRequest);
    let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
    for n in 0..20_u64 {
        sde.run(&Table, &inputs! { n: 20_000 + n }).unwrap();
    }
    sde.finish().unwrap();
    let files = std::fs::read_dir(dir.path().join("entries")).unwrap();
    assert_eq!(files.count(), 1);
}
