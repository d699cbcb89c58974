//! Compaction: less on the disk, and nothing that counts is lost.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sde::archiver::{ArchiveError, Archiver};
use sde::{Inputs, Policy, ResultMap, SavePolicy, Sde, inputs};
use sde_archives::inspect::{Inspection, Item, Listed};
use sde_archives::vfs::{Disk, Vfs};
use sde_archives::{Class, DirStore, Removal, Retention, StoreOptions};
use tempfile::tempdir;

use super::apps::{Table, engine, expected_page, fresh, orbit, page, plain_orbit, state};
use super::odd_disk::OddDisk;

/// All segments of a store, with their lengths.
pub fn segments(dir: &Path) -> BTreeMap<PathBuf, u64> {
    let folders = ["entries", "scratch"].map(|folder| dir.join(folder));
    let files = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten();
    files
        .map(|file| file.unwrap())
        .map(|file| (file.path(), file.metadata().unwrap().len()))
        .collect()
}

fn manifests(dir: &Path) -> Vec<OsString> {
    let names = std::fs::read_dir(dir.join("manifests"))
        .into_iter()
        .flatten();
    let mut names: Vec<_> = names.map(|name| name.unwrap().file_name()).collect();
    names.sort();
    names
}

pub fn bytes(dir: &Path) -> u64 {
    segments(dir).values().sum()
}

/// Nobody is given time to read what was replaced.
fn at_once(dir: &Path) -> DirStore {
    StoreOptions::new().grace(Duration::ZERO).open(dir).unwrap()
}

/// Computes pages as a process of its own would, and ends it.
fn compute(dir: &Path, numbers: impl IntoIterator<Item = u64>) {
    let (sde, _) = engine(dir, SavePolicy::EveryResult);
    for number in numbers {
        page.call(&sde, number).unwrap();
    }
}

/// All pages of these numbers are loaded, and are right.
pub fn loads(store: DirStore, numbers: impl IntoIterator<Item = u64>) {
    let sde = Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    for number in numbers {
        assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
    }
    assert_eq!(sde.stats().total.computed, 0);
    std::mem::forget(sde);
}

/// Between the listing of the files and the reading of them: `sde ls` left out what was in those that were removed.
/// What there is of a run, with this result computed again if it is gone.
fn with_result(sde: &Sde, inputs: &Inputs, name: &str) -> ResultMap {
    let request = sde.request(&Table, inputs);
    request.names(&[name]).run().unwrap().results
}

#[test]
fn who_looks_into_a_store_meanwhile_looks_again() {
    let dir = tempdir().unwrap();
    (0..3).for_each(|number| compute(dir.path(), [number]));
    let mut looks = 0;
    let read = Inspection::open(dir.path()).unwrap().read(|snapshot| {
        looks += 1;
        if looks == 1 {
            let done = at_once(dir.path()).compact(&Retention::new()).unwrap();
            assert_eq!(done.removed, 3);
        }
        let mut entries = 0;
        snapshot.walk(Some(&Listed::is_entry), |_, _| entries += 1);
        Ok::<_, ArchiveError>(entries)
    });
    let (snapshot, entries) = read.unwrap();
    assert_eq!((looks, entries.unwrap(), snapshot.is_whole()), (2, 3, true));
}

#[test]
fn what_is_small_comes_together_and_what_was_replaced_goes() {
    let dir = tempdir().unwrap();
    for number in 0..5 {
        compute(dir.path(), [2 * number, 2 * number + 1]);
    }
    assert_eq!(segments(dir.path()).len(), 5);
    let before = bytes(dir.path());
    let done = at_once(dir.path()).compact(&Retention::new()).unwrap();
    assert_eq!((done.replaced, done.written, done.removed), (5, 1, 5));
    assert_eq!(segments(dir.path()).len(), 1);
    assert!(bytes(dir.path()) < before);
    loads(DirStore::open(dir.path()).unwrap(), 0..10);
    // There is nothing left to do.
    let done = at_once(dir.path()).compact(&Retention::new()).unwrap();
    assert_eq!((done.replaced, done.written, done.removed), (0, 0, 0));
}

#[test]
fn a_computation_that_another_followed_goes() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let n = inputs! { n: 400_u64 };
    for _ in 0..4 {
        let fresh = sde.request(&Table, &n).policy(Policy::Refresh).run();
        fresh.unwrap();
    }
    drop(sde);
    let before = bytes(dir.path());
    let done = at_once(dir.path()).compact(&Retention::new()).unwrap();
    assert!(done.bytes_after * 3 < done.bytes_before, "{done:?}");
    assert!(bytes(dir.path()) * 3 < before);
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let found = sde.run(&Table, &n).unwrap();
    assert_eq!(found.get::<Vec<f64>>("squares").unwrap()[400], 160_000.0);
    assert_eq!(sde.stats().total.computed, 0);
}

#[test]
fn the_scratch_of_a_run_that_has_ended_goes() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    orbit.call(&sde, 0.3, 40).unwrap();
    drop(sde);
    let states = |dir: &Path| {
        let files = segments(dir).into_iter();
        let of_scratch = files.filter(|(path, _)| path.parent().unwrap().ends_with("scratch"));
        of_scratch.map(|(_, length)| length).sum::<u64>()
    };
    assert!(states(dir.path()) > 40 * 96);
    // The segment with the entry is not worth replacing.
    let done = at_once(dir.path()).compact(&Retention::new()).unwrap();
    assert_eq!((done.replaced, done.removed), (1, 1));
    assert_eq!(states(dir.path()), 0);
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    assert_eq!(*orbit.call(&sde, 0.3, 40).unwrap(), plain_orbit(0.3, 40));
    assert_eq!(sde.stats().total.computed, 0);
}

#[test]
fn the_scratch_of_a_run_that_has_not_ended_stays() {
    let dir = tempdir().unwrap();
    let key = sde::Key::from_bytes([7; 32]);
    let store = at_once(dir.path());
    for number in 0..30_u64 {
        store.save(&state(key, number)).unwrap();
    }
    let done = store.compact(&Retention::new()).unwrap();
    assert_eq!(done.replaced, 1);
    drop(store);
    let found = DirStore::open(dir.path()).unwrap().find_scratch(&key);
    let value = found
        .unwrap()
        .unwrap()
        .decode(&sde::archiver::Codec::of::<u64>());
    assert_eq!(*value.unwrap().downcast::<u64>().unwrap(), 29);
}

#[test]
fn a_replaced_segment_stays_for_the_time_of_grace() {
    let dir = tempdir().unwrap();
    compute(dir.path(), 0..3);
    compute(dir.path(), 3..6);
    let reader = DirStore::open(dir.path()).unwrap();
    let patient = DirStore::open(dir.path()).unwrap();
    let done = patient.compact(&Retention::new()).unwrap();
    assert_eq!((done.replaced, done.written, done.removed), (2, 1, 0));
    assert_eq!(segments(dir.path()).len(), 3);
    // For whoever opens the store now they are not there any more.
    loads(DirStore::open(dir.path()).unwrap(), 0..6);
    let done = at_once(dir.path()).compact(&Retention::new()).unwrap();
    assert_eq!((done.replaced, done.removed), (0, 2));
    assert_eq!(segments(dir.path()).len(), 1);
    // What its index names is gone; it looks again and finds all of it.
    loads(reader, 0..6);
}

/// Somebody has a map whose values were not read when the file that they were found in goes.
#[test]
fn what_was_given_out_unread_is_found_where_it_is_now() {
    let dir = tempdir().unwrap();
    compute(dir.path(), 0..3);
    compute(dir.path(), 3..6);
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let n = inputs! { number: 2_u64 };
    let map = sde.run(&page, &n).unwrap();
    at_once(dir.path()).compact(&Retention::new()).unwrap();
    let done = at_once(dir.path()).compact(&Retention::new()).unwrap();
    assert_eq!((done.replaced, segments(dir.path()).len()), (0, 1));
    let value = map.get::<Vec<u64>>("result").unwrap();
    assert_eq!(*value, expected_page(2));
    assert_eq!(sde.stats().total.computed, 0);
}

#[test]
fn what_somebody_writes_is_left_alone() {
    let dir = tempdir().unwrap();
    let (writer, _) = engine(dir.path(), SavePolicy::EveryResult);
    page.call(&writer, 1).unwrap();
    let done = at_once(dir.path()).compact(&Retention::new()).unwrap();
    assert_eq!((done.replaced, done.removed), (0, 0));
    page.call(&writer, 2).unwrap();
    std::mem::forget(writer);
    loads(DirStore::open(dir.path()).unwrap(), 1..3);
}

#[test]
fn two_at_once_lose_nothing() {
    let dir = tempdir().unwrap();
    for number in 0..8 {
        compute(dir.path(), [number]);
    }
    // Without locks both do all of it.
    for medium in [
        Arc::new(Disk) as Arc<dyn Vfs>,
        Arc::new(OddDisk::without_locks()),
    ] {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let options = StoreOptions::new()
                    .grace(Duration::ZERO)
                    .vfs(medium.clone());
                let store = options.open(dir.path()).unwrap();
                scope.spawn(move || store.compact(&Retention::new()).unwrap());
            }
        });
        loads(DirStore::open(dir.path()).unwrap(), 0..8);
        compute(dir.path(), 8..10);
    }
}

#[test]
fn a_writer_taken_for_dead_loses_nothing() {
    let dir = tempdir().unwrap();
    let (writer, _) = engine(dir.path(), SavePolicy::EveryResult);
    page.call(&writer, 1).unwrap();
    let store = |grace| {
        let options = StoreOptions::new()
            .grace(grace)
            .vfs(Arc::new(OddDisk::without_locks()));
        options.open(dir.path()).unwrap()
    };
    // Its segment is closed and stays: it notices, and begins another.
    let done = store(Duration::from_secs(600))
        .compact(&Retention::new())
        .unwrap();
    assert_eq!((done.replaced, done.removed), (0, 0));
    page.call(&writer, 2).unwrap();
    page.call(&writer, 3).unwrap();
    writer.checkpoint().unwrap();
    loads(DirStore::open(dir.path()).unwrap(), 1..4);
    // Then both are replaced at once.
    let done = store(Duration::ZERO).compact(&Retention::new()).unwrap();
    assert!(done.removed > 1, "{done:?}");
    page.call(&writer, 4).unwrap();
    page.call(&writer, 5).unwrap();
    writer.checkpoint().unwrap();
    loads(DirStore::open(dir.path()).unwrap(), 1..6);
    std::mem::forget(writer);
}

#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let dir = tempdir().unwrap();
    compute(dir.path(), 0..3);
    compute(dir.path(), 3..6);
    let (before, committed) = (segments(dir.path()), manifests(dir.path()));
    let store = at_once(dir.path());
    let told = store
        .would_compact(&Retention::new().capacity(0).results())
        .unwrap();
    assert_eq!((told.replaced, told.given_up, told.bytes_after), (2, 6, 0));
    assert_eq!(segments(dir.path()), before);
    assert_eq!(manifests(dir.path()), committed);
    loads(store, 0..6);
}

#[test]
fn limits_are_for_intermediates_and_results_stay_unless_it_is_said() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let n = inputs! { n: 50_u64 };
    sde.run(&Table, &n).unwrap();
    drop(sde);
    let nothing = Retention::new().capacity(0);
    let done = at_once(dir.path()).compact(&nothing).unwrap();
    assert_eq!(done.given_up, 1);
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let sum = with_result(&sde, &n, "sum");
    assert_eq!(*sum.get::<f64>("sum").unwrap(), 42_925.0);
    assert_eq!(sde.stats().total.computed, 0);
    sde.request(&Table, &n).names(&["squares"]).run().unwrap();
    assert_eq!(sde.stats().total.computed, 1);
    drop(sde);
    let done = at_once(dir.path()).compact(&nothing.results()).unwrap();
    assert_eq!((done.given_up, done.bytes_after), (1, 0));
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    sde.request(&Table, &n).names(&["sum"]).run().unwrap();
    assert_eq!(sde.stats().total.computed, 1);
}

/// Which pages are left of ten, after two of the oldest were used, and room is for half.
fn left_of_ten(order: Removal) -> Vec<u64> {
    let dir = tempdir().unwrap();
    compute(dir.path(), 0..10);
    let store = StoreOptions::new().open(dir.path()).unwrap();
    loads(store.clone(), [0, 2]);
    store.commit(sde::archiver::Selection::Checkpoint).unwrap();
    drop(store);
    let half = bytes(dir.path()) / 2;
    let room = Retention::new().results().capacity(half).order(order);
    at_once(dir.path()).compact(&room).unwrap();
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let is_there = |number: &u64| {
        let computed = sde.stats().total.computed;
        page.call(&sde, *number).unwrap();
        sde.stats().total.computed == computed
    };
    (0..10).filter(is_there).collect()
}

#[test]
fn what_was_used_longest_ago_or_saved_first_goes_first() {
    let used = left_of_ten(Removal::LeastRecentlyUsed);
    assert_eq!(used[..2], [0, 2], "{used:?}");
    assert_eq!(used.last(), Some(&9));
    assert!((4..=5).contains(&used.len()), "{used:?}");
    let first_in = left_of_ten(Removal::FirstIn);
    assert_eq!(
        first_in,
        (10 - first_in.len() as u64..10).collect::<Vec<_>>()
    );
    assert!((4..=5).contains(&first_in.len()), "{first_in:?}");
}

#[test]
fn what_is_too_old_goes() {
    let dir = tempdir().unwrap();
    compute(dir.path(), 0..3);
    let old = Retention::new()
        .results()
        .max_age(Duration::from_secs(3600));
    assert_eq!(at_once(dir.path()).compact(&old).unwrap().given_up, 0);
    let old = Retention::new().results().max_age(Duration::ZERO);
    let done = at_once(dir.path()).compact(&old).unwrap();
    assert_eq!((done.given_up, done.bytes_after), (3, 0));
}

#[test]
fn marks_stay() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let key = sde
        .request(&Table, &inputs! { n: 3_u64 })
        .run()
        .unwrap()
        .key;
    sde.invalidate(&key, "for the test").unwrap();
    sde.checkpoint().unwrap();
    drop(sde);
    compute(dir.path(), 0..2);
    let found = at_once(dir.path()).compact(&Retention::new()).unwrap();
    assert!(found.replaced > 0);
    let marks = DirStore::open(dir.path()).unwrap().marks().unwrap();
    assert_eq!(marks.len(), 1);
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    sde.run(&Table, &inputs! { n: 3_u64 }).unwrap();
    assert_eq!(sde.stats().total.computed, 1);
}

#[test]
fn an_archive_of_its_own_has_results_and_nothing_else() {
    let dir = tempdir().unwrap();
    let there = dir.path().join("published");
    let (sde, _) = engine(&dir.path().join("store"), SavePolicy::EveryResult);
    let n = inputs! { n: 5_u64 };
    sde.run(&Table, &n).unwrap();
    page.call(&sde, 7).unwrap();
    sde.archive_to(&there).unwrap();
    let twice = format!("{:#}", sde.archive_to(&there).unwrap_err());
    assert!(twice.contains("there is a store already"), "{twice}");
    std::mem::forget(sde);
    let segments = Inspection::open(&there).unwrap().segments().unwrap();
    for segment in segments {
        let each = |item| match item {
            Item::Entry(entry) => assert_eq!(entry.class, Class::Result),
            item => assert!(!matches!(item, Item::Scratch(_))),
        };
        segment.walk(each).unwrap();
    }
    let (sde, _) = engine(&there, SavePolicy::OnRequest);
    assert_eq!(*page.call(&sde, 7).unwrap(), expected_page(7));
    let sum = with_result(&sde, &n, "sum");
    assert_eq!(*sum.get::<f64>("sum").unwrap(), 55.0);
    assert_eq!(sde.stats().total.computed, 0);
    sde.request(&Table, &n).names(&["squares"]).run().unwrap();
    assert_eq!(sde.stats().total.computed, 1);
}

#[test]
fn an_archive_is_not_put_among_other_things() {
    let dir = tempdir().unwrap();
    let (sde, _) = engine(&dir.path().join("store"), SavePolicy::EveryResult);
    page.call(&sde, 7).unwrap();
    let there = dir.path().join("thesis");
    std::fs::create_dir(&there).unwrap();
    std::fs::write(there.join("chapter 1"), "words").unwrap();
    let refused = format!("{:#}", sde.archive_to(&there).unwrap_err());
    assert!(refused.contains("other things"), "{refused}");
    assert_eq!(std::fs::read_dir(&there).unwrap().count(), 1);
    assert!(sde.archive_to("").is_err());
}

/// What a writer leaves that is killed before its first save; one that lives may be about to write.
#[test]
fn segments_that_were_hardly_begun_go() {
    let dir = tempdir().unwrap();
    compute(dir.path(), 0..2);
    let begun = |name: &str| {
        let path = dir.path().join("entries").join(name);
        let file = File::create(&path).unwrap();
        let hour = Duration::from_secs(3600);
        file.set_modified(SystemTime::now() - hour).unwrap();
        (path, file)
    };
    let (left, _) = begun("00000000-00000000000000000000000000000000.sde");
    let (held, lock) = begun("00000001-00000000000000000000000000000001.sde");
    lock.try_lock().unwrap();
    let new = held.with_file_name("00000002-00000000000000000000000000000002.sde");
    File::create(&new).unwrap();
    at_once(dir.path()).compact(&Retention::new()).unwrap();
    let are_there = [&left, &held, &new].map(|path| path.exists());
    assert_eq!(are_there, [false, true, true]);
    loads(DirStore::open(dir.path()).unwrap(), 0..2);
}

/// Found by hostile use: of two files of one id, as a program that keeps folders alike makes them, one was read, and where
/// that was damaged what the other held was lost.
#[test]
fn what_is_damaged_in_one_of_two_copies_of_a_segment_is_taken_from_the_other() {
    for _ in 0..8 {
        let dir = tempdir().unwrap();
        compute(dir.path(), 0..4);
        let segment = segments(dir.path()).into_keys().next().unwrap();
        let mut bytes = std::fs::read(&segment).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(segment.with_extension("copy.sde"), bytes).unwrap();
        let store = DirStore::open(dir.path()).unwrap();
        store.compact(&Retention::new()).unwrap();
        drop(store);
        loads(DirStore::open(dir.path()).unwrap(), 0..4);
    }
}
