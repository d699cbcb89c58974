//! Several writers in one directory.

use std::path::Path;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use sde::archiver::Archiver;
use sde::{Key, SavePolicy, Source};
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::tempdir;
use tracing::Level;

use super::apps::{engine, expected_page, page, records, state};
use super::child::{Worker, tell};
use super::log::{listen, listening};
use super::odd_disk::OddDisk;
use super::watchdog::Watchdog;

#[test]
fn what_another_saved_is_found_after_a_refresh() {
    let dir = tempdir().unwrap();
    let reader = DirStore::open(dir.path()).unwrap();
    let (writer, _) = engine(dir.path(), SavePolicy::EveryResult);
    for round in 0..3 {
        page.call(&writer, round).unwrap();
        let key = records(&writer).last().unwrap().key;
        reader.refresh().unwrap();
        assert!(reader.find(&key).unwrap().is_some(), "round {round}");
    }
    let sde = sde::Sde::builder()
        .store(reader)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let outcome = sde.request(&page, &sde::inputs! { number: 2_u64 }).run();
    assert_eq!(outcome.unwrap().source, Source::Loaded);
}

/// Two processes that compute some of the same runs at the same time.
#[test]
fn two_processes_write_at_once() {
    let dir = tempdir().unwrap();
    let ranges = [(0, 60), (30, 90)];
    let mut workers = ranges.map(|(from, to)| {
        Worker::start(
            "pages",
            dir.path(),
            &[("from", from), ("to", to), ("wait", 1)],
        )
    });
    workers
        .iter_mut()
        .for_each(|worker| worker.wait_for("ready"));
    for worker in &mut workers {
        // Closing its input sets it going.
        worker.stdin = None;
    }
    for (worker, (from, to)) in workers.iter_mut().zip(ranges) {
        let told = worker.rest();
        let expected = (from..to).map(|number| format!("done {number}"));
        assert!(
            expected.clone().all(|done| told.contains(&done)),
            "{told:?}"
        );
    }
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    for number in 0..90 {
        assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
    }
    assert_eq!(sde.stats().total.computed, 0);
}

/// Saving, finding and refreshing from many threads.
#[test]
fn threads_save_and_find_at_once() {
    let dir = tempdir().unwrap();
    let threads = 4;
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let (dir, start) = (dir.path(), &start);
            scope.spawn(move || {
                // Every other thread shares neither engine nor store.
                let (sde, _) = engine(dir, SavePolicy::EveryResult);
                let store = DirStore::open(dir).unwrap();
                start.wait();
                for number in 0..30 {
                    let number = number * (1 + thread % 2);
                    assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
                    store.refresh().unwrap();
                    let key = records(&sde).last().unwrap().key;
                    assert!(store.find(&key).unwrap().is_some());
                }
            });
        }
    });
}

/// Of many threads that save at once one writes for all, and each is told what came of it.
#[test]
fn every_thread_learns_that_it_was_saved() {
    let dir = tempdir().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    let threads = 6;
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                start.wait();
                for number in 0..150_u8 {
                    let mut key = [number; 32];
                    key[0] = thread as u8;
                    store.save(&state(Key::from_bytes(key), 0.5)).unwrap();
                }
            });
        }
    });
}

/// Found by reading: a warning was told with a lock held. A subscriber of `tracing` that hands what it hears to a thread which saves
/// it, and waits, hung.
#[test]
fn what_hears_of_a_warning_may_use_the_store() {
    let _dog = Watchdog::new("a subscriber that uses the store", Duration::from_secs(120));
    let dir = tempdir().unwrap();
    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    sde.checkpoint().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    for name in ["manifests/odd.manifest", "entries/odd.sde"] {
        std::fs::write(dir.path().join(name), [7; 100]).unwrap();
        let (tell, told) = mpsc::channel();
        let used = store.clone();
        let hears = move |_| {
            let uses = || {
                used.refresh().unwrap();
                used.find(&Key::from_bytes([1; 32])).unwrap();
            };
            thread::scope(|scope| scope.spawn(uses).join().unwrap());
            tell.send(()).unwrap();
        };
        listening(Level::WARN, hears, || store.refresh().unwrap());
        assert_eq!(told.iter().count(), 1);
    }
}

/// Is warned by the thread of a store, and ends the store there.
pub fn end_when_warned(dir: &Path) {
    drop(DirStore::open(dir).unwrap());
    let no_manifests = OddDisk::that_first(|| Err(std::io::ErrorKind::PermissionDenied.into()));
    let limit = Retention::new().capacity(1);
    let options = StoreOptions::new().retention(limit).segment_size(1 << 12);
    let store = options.vfs(Arc::new(no_manifests)).open(dir).unwrap();
    let last = Mutex::new(Some(store.clone()));
    let (ended, has_ended) = mpsc::channel();
    listen(Level::WARN, move |_| {
        let is_its_own = thread::current().name() == Some("sde-upkeep");
        let last = is_its_own.then(|| last.lock().unwrap().take());
        if let Some(store) = last.flatten() {
            store.finish();
            drop(store);
            ended.send(()).unwrap();
        }
    });
    for number in 0..200 {
        store
            .save(&state(Key::from_bytes([number; 32]), 0.5))
            .unwrap();
    }
    drop(store);
    has_ended.recv().unwrap();
    tell(format_args!("ended"));
}

/// Found by reading: the thread waited for itself, and whoever had dropped the store or finished it for the thread.
#[test]
fn what_hears_of_a_warning_may_end_the_store() {
    let _dog = Watchdog::new("a subscriber that ends the store", Duration::from_secs(120));
    let dir = tempdir().unwrap();
    let told = Worker::start("warned", &dir.path().join("store"), &[]).rest();
    assert_eq!(told, ["ended"]);
}
