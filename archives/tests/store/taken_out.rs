//! Chosen keys are taken out with all that is of them, and nothing else is.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use sde::archiver::Archiver;
use sde::record::failure_key;
use sde::{AppError, Key, Policy, SavePolicy, Sde, inputs};
use sde_archives::{Compacted, DirStore, StoreOptions};
use tempfile::tempdir;

use super::apps::{engine, page, state};

thread_local! {
    /// Whether the app fails now, and what it adds to its input.
    static FAILS: Cell<bool> = const { Cell::new(false) };
}

#[sde::app]
fn moody(x: u64) -> Result<u64, AppError> {
    match FAILS.get() {
        true => Err(AppError::message("not today")),
        false => Ok(2 * x),
    }
}

/// Nothing that it opens is short, so no segment is replaced for that.
fn opened(dir: &Path) -> DirStore {
    let options = StoreOptions::new().grace(Duration::ZERO);
    options.segment_size(1 << 9).open(dir).unwrap()
}

/// What a process of its own does, whose saves are in one segment.
fn process<T>(dir: &Path, job: impl FnOnce(&Sde) -> T) -> T {
    let (sde, _) = engine(dir, SavePolicy::EveryResult);
    job(&sde)
}

fn remove(dir: &Path, keys: &[Key]) -> Compacted {
    let keys: HashSet<&Key> = keys.iter().collect();
    opened(dir).remove(|one| keys.contains(one.key)).unwrap()
}

fn key_of(sde: &Sde, x: u64) -> Key {
    let inputs = inputs! { x: x };
    let request = sde.request(&moody, &inputs);
    request.policy(Policy::Refresh).run().unwrap().key
}

fn pages(sde: &Sde, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| drop(page.call(sde, number).unwrap()));
}

fn has(dir: &Path, key: &Key) -> bool {
    let store = DirStore::open_read_only(dir).unwrap();
    store.find(key).unwrap().is_some()
}

/// There are two computations of the key, a failure before them and a state, in four segments that are not worth replacing.
#[test]
fn a_key_goes_with_earlier_computations_failures_and_states() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    FAILS.set(true);
    process(dir, |sde| {
        pages(sde, 0..20);
        moody.call(sde, 1).unwrap_err();
    });
    FAILS.set(false);
    let other = process(dir, |sde| key_of(sde, 2));
    let key = process(dir, |sde| {
        pages(sde, 20..40);
        key_of(sde, 1)
    });
    process(dir, |sde| {
        pages(sde, 40..60);
        key_of(sde, 1)
    });
    opened(dir).save(&state(key, 7_u64)).unwrap();
    assert!(has(dir, &key) && has(dir, &failure_key(&key)));
    let done = remove(dir, &[key]);
    assert_eq!((done.taken_out, done.left), (1, 0), "{done:?}");
    assert!(!has(dir, &key) && !has(dir, &failure_key(&key)));
    let store = DirStore::open_read_only(dir).unwrap();
    assert!(store.find_scratch(&key).unwrap().is_none());
    assert!(has(dir, &other));
    process(dir, |sde| {
        pages(sde, 0..60);
        moody.call(sde, 2).unwrap();
        assert_eq!(sde.stats().total.computed, 0);
        moody.call(sde, 1).unwrap();
        assert_eq!(sde.stats().total.computed, 1);
    });
    assert!(has(dir, &key));
}

/// What lies in a file that is being written can't go, so nothing of its key does: what went would have an earlier
/// computation count.
#[test]
fn what_somebody_writes_stays_whole_and_goes_later() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    let key = process(dir, |sde| key_of(sde, 1));
    let (writer, _) = engine(dir, SavePolicy::EveryResult);
    assert_eq!(key_of(&writer, 1), key);
    let done = remove(dir, &[key]);
    assert_eq!((done.taken_out, done.left), (0, 1));
    assert!(has(dir, &key));
    drop(writer);
    let done = remove(dir, &[key]);
    assert_eq!((done.taken_out, done.left), (1, 0));
    assert!(!has(dir, &key));
}

/// All of it lies in a file that is being written, and it is told of all the same.
#[test]
fn what_is_only_in_a_file_that_is_being_written_is_told_of() {
    let dir = tempdir().unwrap();
    let (writer, _) = engine(dir.path(), SavePolicy::EveryResult);
    let keys = [1, 2].map(|x| key_of(&writer, x));
    assert_eq!(remove(dir.path(), &keys[..1]).left, 1);
    drop(writer);
    assert_eq!(remove(dir.path(), &keys).taken_out, 2);
}

/// A failure that another process has just saved would be given in place of a run.
#[test]
fn what_has_a_failure_in_a_file_that_is_being_written_stays() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    let key = process(dir, |sde| key_of(sde, 1));
    let (writer, _) = engine(dir, SavePolicy::EveryResult);
    FAILS.set(true);
    let inputs = inputs! { x: 1_u64 };
    let again = writer.request(&moody, &inputs).policy(Policy::Refresh);
    again.run().unwrap_err();
    FAILS.set(false);
    assert!(has(dir, &failure_key(&key)));
    assert_eq!(remove(dir, &[key]).left, 1);
    assert!(has(dir, &key));
    drop(writer);
    assert_eq!(remove(dir, &[key]).taken_out, 1);
    assert!(!has(dir, &key) && !has(dir, &failure_key(&key)));
}

#[test]
fn a_dry_run_tells_the_same_and_changes_nothing() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    let key = process(dir, |sde| {
        pages(sde, 0..3);
        key_of(sde, 1)
    });
    let before = super::compact::segments(dir);
    let asked = DirStore::open_read_only(dir).unwrap();
    let would = asked.would_remove(|one| {
        let entry = one.entry.unwrap();
        assert!(!one.stays && entry.record.key == *one.key);
        one.app == "moody"
    });
    let would = would.unwrap();
    assert_eq!((would.taken_out, would.removed), (1, 0));
    assert!(would.dropped > 100 && would.dropped < 3000, "{would:?}");
    assert_eq!(super::compact::segments(dir), before);
    assert!(has(dir, &key));
    let done = opened(dir).remove(|one| one.app == "moody").unwrap();
    assert_eq!(
        (done.taken_out, done.dropped),
        (would.taken_out, would.dropped)
    );
    assert!(!has(dir, &key));
}

/// A segment that the process itself writes was no source, and was not being written either. It is long enough not to
/// be sealed after the one entry, whose length depends on how long the app took.
#[test]
fn a_key_that_this_process_writes_is_told_as_left() {
    let dir = tempdir().unwrap();
    let store = StoreOptions::new().open(dir.path()).unwrap();
    let builder = Sde::builder().store(store.clone());
    let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
    let key = key_of(&sde, 1);
    let would = store.would_remove(|one| *one.key == key).unwrap();
    assert_eq!((would.taken_out, would.left), (0, 1));
}

/// An entry that is taken out lets go of what its output file held, once no other needs that.
#[cfg(unix)]
#[test]
fn contents_go_with_the_last_entry_that_is_taken_out() {
    let place = super::output_files::Place::new();
    for name in ["one", "two"] {
        place.call(name, &"shared ".repeat(1000));
    }
    let store = || {
        StoreOptions::new()
            .grace(Duration::ZERO)
            .open(place.store())
    };
    for (left, contents) in [(1, 1), (0, 0)] {
        let first = std::cell::OnceCell::new();
        let done = store()
            .unwrap()
            .remove(|one| first.get_or_init(|| *one.key) == one.key);
        assert_eq!(done.unwrap().taken_out, 1, "{left} are to be left");
        assert_eq!(place.contents(), contents);
    }
}
