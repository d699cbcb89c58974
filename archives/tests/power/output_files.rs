//! Output files in a store that is ended in each of its calls. The files themselves are on the real disk.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sde::archiver::{Archiver, SavedEntry, Selection};
use sde::{OutputFile, SavePolicy, Tags};
use sde_archives::vfs::Vfs;
use sde_archives::{Retention, StoreOptions};

use crate::engine::{engine, open};
use crate::kit::{CHANGING, Call, Error, Order, Sim, Then, made};

#[sde::app]
pub fn written(to: &Path, number: u64) -> io::Result<OutputFile> {
    fs::write(to, text(number))?;
    OutputFile::new(to)
}

/// Two of three are alike, and take several sectors.
pub fn text(number: u64) -> String {
    format!("file {}", number / 2).repeat(300)
}

/// Saves three files, one after the other; gives how many were acknowledged.
fn save(sim: &Sim, dir: &Path) -> u64 {
    let Ok(store) = open(sim) else { return 0 };
    let sde = engine(store, SavePolicy::OnRequest);
    let mut acknowledged = 0;
    for number in 0..3 {
        let path = dir.join(number.to_string());
        written.call(&sde, &path, number).unwrap();
        match sde.checkpoint() {
            Ok(()) => acknowledged = number + 1,
            Err(_) => break,
        }
    }
    std::mem::forget(sde);
    acknowledged
}

#[test]
fn ended_in_each_call_no_file_is_wrong_and_none_lost_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::new();
    assert_eq!(save(&sim, dir.path()), 3);
    for at in 1..=sim.count(CHANGING) {
        let sim = Sim::new();
        sim.seed(at);
        let then = Then::PowerOff;
        sim.order(Order::of(CHANGING, at, then));
        let acknowledged = save(&sim, dir.path());
        let losses = (0..3).map(|seed| sim.power_loss(seed));
        for left in [sim.after_kill()].into_iter().chain(losses) {
            let Ok(store) = open(&left) else {
                assert_eq!(acknowledged, 0);
                continue;
            };
            let sde = engine(store, SavePolicy::OnRequest);
            for number in 0..3 {
                let path = dir.path().join(number.to_string());
                let _ = fs::remove_file(&path);
                written.call(&sde, &path, number).unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text(number));
                if number < acknowledged {
                    assert_eq!(sde.stats().total.computed, 0, "ended in call {at}");
                }
            }
            std::mem::forget(sde);
        }
    }
}

/// What the one has written and not synced, since that failed, the other does not rely on.
#[test]
fn a_content_that_another_could_not_sync_is_written_again() {
    for seed in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let sim = Sim::new();
        let first = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
        written.call(&first, &dir.path().join("0"), 0).unwrap();
        sim.order(Order::of(&[Call::Sync], 1, Then::Fail(Error::Io)));
        first.checkpoint().unwrap_err();
        sim.no_orders();
        let other = sim.process();
        let second = engine(open(&other).unwrap(), SavePolicy::EveryResult);
        let path = dir.path().join("1");
        // It holds what the other does.
        written.call(&second, &path, 1).unwrap();
        let left = sim.power_loss(seed);
        fs::remove_file(&path).unwrap();
        let sde = engine(open(&left).unwrap(), SavePolicy::OnRequest);
        written.call(&sde, &path, 1).unwrap();
        assert_eq!(sde.stats().total.computed, 0, "{seed}");
        let _ = [first, second, sde].map(std::mem::forget);
    }
}

/// Found by an attack: a copy that could not be read kept another from being looked for.
#[test]
fn a_content_is_found_where_one_of_two_copies_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let sim = Sim::new();
    // Neither knows of what the other has saved.
    for sde in [(); 2].map(|()| engine(open(&sim.process()).unwrap(), SavePolicy::OnRequest)) {
        written.call(&sde, &path, 0).unwrap();
        sde.checkpoint().unwrap();
    }
    let digest = OutputFile::new(&path).unwrap().digest();
    let store = open(&sim).unwrap();
    let mut failures = 0;
    for at in 1.. {
        let mut file = fs::File::create(dir.path().join("copy")).unwrap();
        let before = sim.count(&[Call::Open, Call::Read]);
        sim.order(Order::of(
            &[Call::Open, Call::Read],
            at,
            Then::Fail(Error::Io),
        ));
        assert!(store.content(&digest, Some(&mut file)).unwrap(), "{at}");
        let came = sim.count(&[Call::Open, Call::Read]) - before >= at;
        sim.no_orders();
        let copy = fs::read_to_string(dir.path().join("copy")).unwrap();
        assert_eq!(copy, text(0));
        sim.order(Order::of(
            &[Call::Open, Call::Read],
            1,
            Then::Fail(Error::Io),
        ));
        assert!(store.content(&digest, None).unwrap(), "{at}");
        sim.no_orders();
        if !came {
            break;
        }
        failures += 1;
    }
    assert!(failures > 1, "{failures}");
}

/// A store of a process that has saved three files and ended.
fn saved(dir: &Path) -> Sim {
    let sim = Sim::new();
    let sde = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
    for number in 0..3 {
        written
            .call(&sde, &dir.join(number.to_string()), number)
            .unwrap();
    }
    sde.checkpoint().unwrap();
    drop(sde);
    sim
}

/// A process saves two files that hold the same as one in the store; gives whether that was acknowledged.
fn save_alike(sim: &Sim, dir: &Path) -> bool {
    let Ok(store) = open(sim) else { return false };
    let sde = engine(store, SavePolicy::OnRequest);
    for number in 0..2 {
        written
            .call(&sde, &dir.join(format!("other {number}")), number)
            .unwrap();
    }
    let saved = sde.checkpoint().is_ok();
    std::mem::forget(sde);
    saved
}

/// Whether a store has both, with what they hold.
fn has_alike(sim: &Sim, dir: &Path) -> bool {
    let sde = engine(open(sim).unwrap(), SavePolicy::OnRequest);
    for number in 0..2 {
        let path = dir.join(format!("other {number}"));
        let _ = fs::remove_file(&path);
        written.call(&sde, &path, number).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text(number));
    }
    let computed = sde.stats().total.computed;
    std::mem::forget(sde);
    computed == 0
}

/// A save refers to a content that a compaction drops meanwhile, since nobody else needs it.
#[test]
fn a_content_that_a_compaction_drops_meanwhile_is_written_again() {
    let mut calls = 0;
    for at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let sim = saved(dir.path());
        let other = sim.process();
        let saves = || save_alike(&other, dir.path());
        let drops = || drop_all(&sim.process());
        let (comes, saved) = other.stopped(CHANGING, at, saves, drops);
        assert!(saved);
        for left in [sim.after_kill(), sim.power_loss(at)] {
            assert!(has_alike(&left, dir.path()), "stopped in call {at}");
        }
        if !comes {
            break;
        }
        calls = at;
    }
    assert!(calls > 5, "{calls}");
}

/// The same the other way round: the compaction has looked at all segments before the save, and says after it what is replaced.
#[test]
fn a_compaction_keeps_a_content_that_a_save_refers_to_meanwhile() {
    for at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let sim = saved(dir.path());
        let other = sim.process();
        let drops = || drop_all(&other);
        let saves = || assert!(save_alike(&sim, dir.path()));
        let (comes, ()) = other.stopped(CHANGING, at, drops, saves);
        if !comes {
            break;
        }
        for left in [sim.after_kill(), sim.power_loss(at)] {
            assert!(has_alike(&left, dir.path()), "stopped in call {at}");
        }
    }
}

/// Removes all that no process writes to.
fn drop_all(sim: &Sim) {
    let options = StoreOptions::new().vfs(Arc::new(sim.clone()));
    let store = options.grace(Duration::ZERO).open(crate::engine::dir());
    let store = store.unwrap();
    let nothing = Retention::new().results().max_age(Duration::ZERO);
    for _ in 0..2 {
        store.compact(&nothing).unwrap();
    }
}

/// It has an index, as one has whose writer synced it. Nobody has synced the copy.
#[test]
fn a_content_in_a_file_that_somebody_has_copied_is_durable_with_what_refers_to_it() {
    for seed in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let sim = saved(dir.path());
        let mut files = sim.files().into_iter();
        let is_segment = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "sde");
        let segment = files.find(is_segment).unwrap();
        let bytes = sim.content(&segment);
        sim.take_away(&segment);
        let mut copy = sim.create(&segment.with_file_name("copy.sde")).unwrap();
        copy.write_at(&[&bytes], 0).unwrap();
        drop(copy);
        assert!(save_alike(&sim, dir.path()));
        assert!(has_alike(&sim.power_loss(seed), dir.path()), "{seed}");
    }
}

/// It was there, and not durable yet, when another save was encoded.
#[test]
fn a_content_that_is_lost_with_its_segment_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, text(0)).unwrap();
    let file = OutputFile::new(&path).unwrap();
    let batch = |number| {
        let mut batch = sde::archiver::Batch::new(Selection::Checkpoint);
        let result = (made::VALUE, Tags::NONE, made::value(file.clone()));
        let record = made::record(number, 1);
        batch
            .entries
            .push(SavedEntry::new(record, Selection::Checkpoint, [result]));
        batch
    };
    for seed in 0..20 {
        let sim = Sim::new();
        let store = open(&sim).unwrap();
        store.write_through(&batch(1)).unwrap();
        let second = batch(2);
        let saves = store.encode(&second).unwrap().unwrap();
        sim.order(Order::of(&[Call::Sync], 1, Then::Fail(Error::Io)));
        store.save(&batch(1)).unwrap_err();
        sim.no_orders();
        saves().unwrap();
        let left = open(&sim.power_loss(seed)).unwrap();
        assert!(left.find(&made::key(2)).unwrap().is_some());
        let mut copy = tempfile::tempfile().unwrap();
        let is_there = left.content(&file.digest(), Some(&mut copy)).unwrap();
        assert!(is_there, "{seed}");
        std::mem::forget((store, left));
    }
}

#[test]
fn contents_make_room_on_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::new();
    let limit = Retention::new().results().capacity(1 << 30);
    for number in [0, 2, 4, 6] {
        let options = StoreOptions::new().vfs(Arc::new(sim.clone()));
        let store = options.retention(limit.clone()).open(crate::engine::dir());
        let sde = engine(store.unwrap(), SavePolicy::OnRequest);
        written
            .call(&sde, &dir.path().join("file"), number)
            .unwrap();
        if number == 6 {
            sim.room(Some(sim.bytes() + 512));
        }
        sde.checkpoint().unwrap();
    }
    assert_eq!(sim.misdeeds(), [""; 0]);
}
