//! What others remove, and what they leave behind.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sde::SavePolicy;
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::tempdir;

use super::apps::{engine, fresh, page};
use super::compact::loads;

fn all_load(dir: &Path, most: u64) {
    loads(DirStore::open(dir).unwrap(), 0..most);
}

/// The new store had what was computed after it was made, and `finish` said that all was well.
#[test]
fn a_store_that_was_removed_meanwhile_is_made_again_with_all_results() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("store");
    let (sde, _) = engine(&store, SavePolicy::EveryResult);
    for number in 0..3 {
        page.call(&sde, number).unwrap();
    }
    std::fs::remove_dir_all(&store).unwrap();
    // This one could not be saved, and a new store is made.
    page.call(&sde, 3).unwrap();
    page.call(&sde, 4).unwrap();
    sde.finish().unwrap();
    std::mem::forget(sde);
    all_load(&store, 5);
}

/// What is not in memory any more is lost, so it is an error; all else is there at once.
#[test]
fn a_store_that_was_removed_last_of_all_is_an_error_once() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("store");
    for archived in [false, true] {
        let (sde, _) = engine(&store, SavePolicy::EveryResult);
        for number in 0..3 {
            page.call(&sde, number).unwrap();
        }
        if archived {
            // By now nothing is new.
            sde.checkpoint().unwrap();
            sde.archive().unwrap();
        }
        std::fs::remove_dir_all(&store).unwrap();
        let error = format!("{:#}", sde.finish().unwrap_err());
        assert!(error.contains("removed while it was in use"), "{error}");
        all_load(&store, 3);
        sde.finish().unwrap();
        drop(sde);
        all_load(&store, 3);
        std::fs::remove_dir_all(&store).unwrap();
    }
}

/// Without it all that is saved from then on would never be found.
#[test]
fn a_format_that_was_removed_is_written_again() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 0).unwrap();
    std::fs::remove_file(dir.path().join("FORMAT")).unwrap();
    page.call(&sde, 1).unwrap();
    sde.checkpoint().unwrap();
    std::mem::forget(sde);
    all_load(dir.path(), 2);
}

/// A crash leaves files that have not got their names yet; they piled up.
#[test]
fn what_nobody_finished_is_removed_after_a_while() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    sde.finish().unwrap();
    drop(sde);
    let old = [
        "0123.unfinished",
        "manifests/checkpoint-1-2.manifest.3.unfinished",
    ];
    let new = [
        "4567.unfinished",
        "manifests/checkpoint-1-3.manifest.4.unfinished",
    ];
    for name in old.iter().chain(&new) {
        std::fs::write(dir.path().join(name), "SDE st").unwrap();
    }
    for name in old {
        let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let file = File::options().write(true).open(dir.path().join(name));
        file.unwrap().set_modified(an_hour_ago).unwrap();
    }
    let there = |name: &&str| dir.path().join(name).exists();
    let store = DirStore::open(dir.path()).unwrap();
    store.would_compact(&Retention::new()).unwrap();
    assert!(old.iter().chain(&new).all(&there));
    store.compact(&Retention::new()).unwrap();
    assert_eq!(old.iter().filter(|name| there(name)).count(), 0);
    // Somebody may be writing these just now, whatever the grace of this process is.
    let at_once = StoreOptions::new().grace(Duration::ZERO).open(dir.path());
    at_once.unwrap().compact(&Retention::new()).unwrap();
    assert!(new.iter().all(there));
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    page.call(&sde, 1).unwrap();
    assert_eq!(sde.stats().total.computed, 0);
}
