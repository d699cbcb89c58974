//! A state that was acknowledged is gone on from, whatever became of the file that it was in.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sde::archiver::{Archiver, Codec};
use sde::{Key, Storable};
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::tempdir;

fn key() -> Key {
    Key::from_bytes([5; 32])
}

fn save<T: Storable>(store: &DirStore, state: T) {
    store.save(&super::apps::state(key(), state)).unwrap();
}

fn found<T: Storable + Clone>(store: &DirStore) -> Option<T> {
    let payload = store.find_scratch(&key()).unwrap()?;
    let value = payload.decode(&Codec::of::<T>()).unwrap();
    Some((*value.downcast::<T>().unwrap()).clone())
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir.join("scratch")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

/// It was taken for never saved, and the run began from nothing.
#[test]
fn a_state_that_a_compaction_moved_is_found() {
    let dir = tempdir().unwrap();
    for number in 0..2_u64 {
        save(&DirStore::open(dir.path()).unwrap(), number);
    }
    let reader = DirStore::open(dir.path()).unwrap();
    assert_eq!(found(&reader), Some(1_u64));
    let at_once = StoreOptions::new().grace(Duration::ZERO).open(dir.path());
    let done = at_once.unwrap().compact(&Retention::new()).unwrap();
    assert_eq!((done.replaced, done.removed), (2, 2));
    assert_eq!(found(&reader), Some(1_u64));
}

/// A run that goes on counts what the runs before took.
#[test]
fn a_state_has_the_time_that_its_run_had_taken() {
    let dir = tempdir().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    let time = |store: &DirStore| store.find_scratch(&key()).unwrap().unwrap().took();
    let mut batch = super::apps::state(key(), 1_u64);
    batch.scratch[0].took = Duration::from_secs(3600);
    store.save(&batch).unwrap();
    assert_eq!(time(&store), Duration::from_secs(3600));
    drop(store);
    let again = DirStore::open(dir.path()).unwrap();
    assert_eq!(time(&again), Duration::from_secs(3600));
    // As earlier releases wrote all of them.
    save(&again, 2_u64);
    assert_eq!(time(&again), Duration::ZERO);
}

/// Above 16 MiB nobody looked before it was decoded, and then it was too late for another.
#[test]
fn of_a_long_state_that_is_damaged_the_one_before_is_given() {
    let dir = tempdir().unwrap();
    let length = (17 << 20) / 8;
    let store = DirStore::open(dir.path()).unwrap();
    save(&store, vec![1.5_f64; length]);
    let before = segments(dir.path());
    save(&store, vec![2.5_f64; length]);
    std::mem::forget(store);
    let mut path = segments(dir.path());
    path.retain(|path| !before.contains(path));
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path[0])
        .unwrap();
    let end = file.metadata().unwrap().len();
    file.write_all_at(&[0xaa; 8], end - (1 << 20)).unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    let state: Vec<f64> = found(&store).unwrap();
    assert_eq!((state.len(), state[0]), (length, 1.5));
}

/// It was noted as damaged, and hidden from those who know its type.
#[test]
fn asking_for_another_type_damages_nothing() {
    let dir = tempdir().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    save(&store, 0.5_f64);
    save(&store, 1.5_f64);
    let payload = store.find_scratch(&key()).unwrap().unwrap();
    let error = payload.decode(&Codec::of::<String>()).unwrap_err();
    assert!(format!("{error:#}").contains("f64"), "{error}");
    assert_eq!(found(&store), Some(1.5_f64));
}
