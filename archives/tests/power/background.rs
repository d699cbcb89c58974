//! What is stuck in the medium holds up no call: hits and computations go on while a save is, saves while a look at the directory is or
//! a compaction.

use std::sync::mpsc;
use std::time::Duration;

use sde::SavePolicy;
use sde::archiver::Archiver;
use sde::key::Digest;
use sde_archives::{DirStore, Retention};

use crate::engine::{all_load, dir, engine, expected, open, options, page, read_only};
use crate::kit::{CHANGING, Call, LOOKING, Sim, made};
use crate::watchdog::Watchdog;

/// What takes so long hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// Saves ten results and begins a save of others, which stops in this call. Meanwhile `job` is done.
/// Gives whether the call came.
fn stopped_in(at: u64, job: impl FnOnce(&Sim, &sde::Sde, &DirStore)) -> bool {
    let sim = Sim::new();
    let store = open(&sim).unwrap();
    let sde = engine(store.clone(), SavePolicy::OnRequest);
    for number in 0..10 {
        page.call(&sde, number).unwrap();
    }
    let (comes, saved) = sim.stopped(
        CHANGING,
        at,
        || sde.checkpoint(),
        || job(&sim, &sde, &store),
    );
    saved.unwrap();
    sde.checkpoint().unwrap();
    let computed = sde.stats().total.computed;
    all_load(read_only(&sim.power_loss(at)), 0..computed);
    std::mem::forget(sde);
    comes
}

/// And what the engine asks a store for meanwhile.
///
/// Found by reading: to look for what others wrote took the lock of the manifests, which a commit holds while it syncs.
fn hits_and_computations(_: &Sim, sde: &sde::Sde, store: &DirStore) {
    let key = made::key(1);
    store.catch_up(Duration::MAX);
    assert!(store.find(&key).unwrap().is_none());
    assert!(store.find_scratch(&key).unwrap().is_none());
    assert!(!store.content(&Digest::from_bytes([1; 32]), None).unwrap());
    store.announce("app", &key);
    assert!(store.announced_by(&key).is_none());
    store.marks().unwrap();
    for number in 0..20 {
        assert_eq!(*page.call(sde, number).unwrap(), expected(number));
    }
    assert_eq!(sde.stats().total.computed, 20);
}

#[test]
fn stopped_in_each_call_of_a_checkpoint() {
    let _dog = Watchdog::new("a call beside a checkpoint", LIMIT);
    let mut calls = 0;
    for at in 1.. {
        if !stopped_in(at, hits_and_computations) {
            break;
        }
        calls = at;
    }
    assert!(calls > 10, "{calls}");
}

/// A miss looks from time to time for what other processes saved. It must not wait then for a
/// save that is stuck.
#[test]
fn a_miss_does_not_wait_to_look_again() {
    for at in [5, 12, 14, 16] {
        stopped_in(at, |sim, sde, _| {
            // It is time for a miss to look again.
            sim.pass_time(Duration::from_secs(2));
            for number in 10..13 {
                assert_eq!(*page.call(sde, number).unwrap(), expected(number));
            }
        });
    }
}

/// Found by reading: what was saved was noted in a list whose lock another thread held while it listed the directory and read files.
#[test]
fn a_save_does_not_wait_for_a_look_at_the_directory() {
    let _dog = Watchdog::new("a save beside a look", LIMIT);
    let mut calls = 0;
    for at in 1.. {
        let sim = Sim::new();
        let process = sim.process();
        let store = open(&process).unwrap();
        let sde = engine(store.clone(), SavePolicy::EveryResult);
        page.call(&sde, 0).unwrap();
        let other = engine(open(&sim).unwrap(), SavePolicy::EveryResult);
        page.call(&other, 1).unwrap();
        let saves = || {
            store.catch_up(Duration::MAX);
            for number in 2..5 {
                page.call(&sde, number).unwrap();
            }
        };
        let (comes, looked) = process.stopped(LOOKING, at, || store.refresh(), saves);
        looked.unwrap();
        page.call(&sde, 1).unwrap();
        assert_eq!(sde.stats().total.computed, if comes { 4 } else { 1 });
        let saved = if comes { 5 } else { 2 };
        all_load(read_only(&sim.power_loss(at)), 0..saved);
        std::mem::forget((sde, other));
        if !comes {
            break;
        }
        calls = at;
    }
    assert!(calls > 5, "{calls}");
}

/// Found by reading: the save of a result ran the compaction that it made due, of the whole store.
#[test]
fn a_save_does_not_wait_for_a_compaction() {
    let _dog = Watchdog::new("a save beside a compaction", LIMIT);
    let sim = Sim::new();
    let limit = Retention::new().results().capacity(1 << 15);
    let options = options(&sim).segment_size(1 << 12).retention(limit);
    let store = options.open(dir()).unwrap();
    let (tell, told) = mpsc::channel();
    let run = move || {
        for number in 0..200 {
            store.save(&made::entries([number])).unwrap();
        }
        tell.send(()).unwrap();
        // It waits for what the saves left to a thread.
        drop(store);
    };
    // No save makes a manifest.
    let (comes, ()) = sim.stopped(&[Call::Link], 1, run, || told.recv().unwrap());
    assert!(comes);
    let entries = sim.files().into_iter();
    let entries = entries.filter(|path| path.starts_with(dir().join("entries")));
    let bytes: usize = entries.map(|path| sim.content(path).len()).sum();
    assert!(bytes < 1 << 16, "{bytes}");
}
