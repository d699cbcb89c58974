//! Entries of one store, copied to another.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sde::{Policy, SavePolicy, Sde, inputs};
use sde_archives::{Copied, DirStore, Retention};
use tempfile::{TempDir, tempdir};

use super::also::{key_of, on};
use super::apps::{Table, engine, expected_page, fresh, page};
use super::compact::{loads, segments};
use super::output_files::Place;

fn copy(from: &Path, to: &Path) -> Copied {
    let from = DirStore::open_read_only(from).unwrap();
    let to = DirStore::open(to).unwrap();
    to.copy_from(&from, |_| true).unwrap()
}

/// A folder for stores.
fn two() -> (TempDir, std::path::PathBuf, std::path::PathBuf) {
    let dir = tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
    (dir, one, other)
}

fn saved(dir: &Path, numbers: std::ops::Range<u64>) {
    let (sde, _) = engine(dir, SavePolicy::OnRequest);
    for number in numbers {
        page.call(&sde, number).unwrap();
    }
    sde.finish().unwrap();
}

#[test]
fn entries_are_copied_once_and_nothing_else() {
    let (_dir, one, other) = two();
    saved(&one, 0..5);
    saved(&other, 3..8);
    let (sde, _) = engine(&one, SavePolicy::EveryResult);
    sde.run(&Table, &inputs! { n: 50_u64 }).unwrap();
    drop(sde);
    let done = copy(&one, &other);
    // Two of the pages are of another computation there, and the table has an intermediate.
    assert_eq!((done.entries, done.there, done.conflicts), (7, 0, 2));
    assert!(done.made.is_some_and(|(first, last)| first < last));
    loads(DirStore::open(&other).unwrap(), 0..8);
    let (sde, _) = engine(&other, SavePolicy::OnRequest);
    let names = ["sum", "squares"];
    sde.request(&Table, &inputs! { n: 50_u64 })
        .names(&names)
        .run()
        .unwrap();
    assert_eq!(sde.stats().total.computed, 0);
    drop(sde);
    let before = segments(&other);
    let again = copy(&one, &other);
    assert_eq!((again.entries, again.there, again.conflicts), (0, 7, 0));
    assert_eq!(again.made, None);
    assert_eq!(segments(&other), before);
    // The one it was copied from is as it was.
    loads(DirStore::open(&one).unwrap(), 0..5);
}

/// What a sender asks another store before it sends.
#[test]
fn a_store_tells_which_copies_it_has() {
    let (_dir, one, other) = two();
    saved(&one, 0..2);
    saved(&other, 1..2);
    let from = DirStore::open_read_only(&one).unwrap();
    let offered = || {
        let offer =
            |one: &sde_archives::Copyable<'_>| (*one.key, one.run, one.class, one.results.to_vec());
        from.copyable(|one| Some(offer(one))).unwrap()
    };
    let has = || {
        let to = DirStore::open(&other).unwrap();
        let all = offered();
        let has = all
            .iter()
            .map(|(key, run, class, results)| to.has_copy(key, *run, *class, results));
        has.collect::<Vec<_>>()
    };
    // The computation of a key that it has is another.
    assert_eq!(has(), [false, false]);
    copy(&one, &other);
    assert_eq!(has(), [true, true]);
    let to = DirStore::open(&other).unwrap();
    let (key, run, class, _) = offered().remove(0);
    assert!(!to.has_copy(&key, run, class, &["none".into()]));
    // What is damaged counts as missing.
    for (path, length) in segments(&other) {
        std::fs::write(&path, vec![0; length as usize]).unwrap();
    }
    assert_eq!(has(), [false, false]);
}

#[test]
fn only_what_is_chosen_is_copied() {
    let (_dir, one, other) = two();
    saved(&one, 0..3);
    let (sde, _) = engine(&one, SavePolicy::EveryResult);
    let table = sde.request(&Table, &inputs! { n: 5_u64 }).run().unwrap();
    drop(sde);
    let (from, to) = (
        DirStore::open_read_only(&one).unwrap(),
        DirStore::open(&other).unwrap(),
    );
    let by_app = to.copy_from(&from, |entry| entry.app == "Table").unwrap();
    assert_eq!(by_app.entries, 2);
    let later = |at| move |entry: &sde_archives::Copyable<'_>| entry.made_at > at;
    let made_at = from.look(&table.key).unwrap().unwrap().record.made_at;
    assert_eq!(to.copy_from(&from, later(made_at)).unwrap().entries, 0);
    let by_key = |entry: &sde_archives::Copyable<'_>| *entry.key == table.key;
    assert_eq!(to.copy_from(&from, by_key).unwrap().there, 2);
}

/// Whichever of two stores is copied to the other, the computation that was made last counts in both.
#[test]
fn of_a_key_that_both_have_the_latest_counts() {
    let (_dir, one, other) = two();
    saved(&one, 0..1);
    saved(&other, 0..1);
    let (sde, _) = engine(&one, SavePolicy::EveryResult);
    let given = inputs! { number: 0_u64 };
    let request = sde.request(&page, &given).policy(Policy::Refresh);
    let latest = request.run().unwrap().made_by;
    drop(sde);
    copy(&one, &other);
    copy(&other, &one);
    for dir in [&one, &other] {
        let store = DirStore::open(dir).unwrap();
        store.compact(&Retention::new()).unwrap();
        let (sde, _) = engine(dir, SavePolicy::OnRequest);
        assert_eq!(sde.request(&page, &given).run().unwrap().made_by, latest);
    }
}

/// Also where nothing else is wanted, and once.
#[test]
fn invalidations_come_along() {
    let (_dir, one, other) = two();
    saved(&one, 0..1);
    copy(&one, &other);
    let (sde, _) = engine(&one, SavePolicy::EveryResult);
    let key = sde.request(&page, &inputs! { number: 0_u64 }).run();
    sde.invalidate(&key.unwrap().key, "for the test").unwrap();
    drop(sde);
    let (from, to) = (
        DirStore::open_read_only(&one).unwrap(),
        DirStore::open(&other).unwrap(),
    );
    assert_eq!(to.copy_from(&from, |_| false).unwrap(), Copied::default());
    drop(to);
    let (sde, _) = engine(&other, SavePolicy::OnRequest);
    page.call(&sde, 0).unwrap();
    assert_eq!(sde.stats().total.computed, 1);
    drop(sde);
    let before = segments(&other);
    copy(&one, &other);
    assert_eq!(segments(&other).len(), before.len());
}

#[test]
fn what_is_damaged_is_left_out_and_told() {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    sde.run(&Table, &inputs! { n: 20_000_u64 }).unwrap();
    page.call(&sde, 1).unwrap();
    sde.checkpoint().unwrap();
    drop(sde);
    let path = segments(dir.path()).into_keys().next().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let other = tempdir().unwrap();
    let to = other.path().join("other");
    let done = copy(dir.path(), &to);
    assert_eq!((done.entries, done.damaged), (2, 1));
    loads(DirStore::open(&to).unwrap(), 1..2);
}

#[test]
fn a_store_is_not_copied_to_itself() {
    let (dir, _sde) = fresh(SavePolicy::OnRequest);
    let [from, to] = [(); 2].map(|()| DirStore::open(dir.path()).unwrap());
    assert!(to.copy_from(&from, |_| true).is_err());
    // Nor into itself, where whoever removes it removes the copy too.
    let inside = DirStore::open(dir.path().join("entries/inside")).unwrap();
    assert!(inside.copy_from(&from, |_| true).is_err());
}

/// Both are written and compacted while each is copied to the other again and again.
#[test]
fn two_stores_that_are_written_are_merged() {
    let (_dir, one, other) = two();
    let (one, other) = (&one, &other);
    let each: u64 = 60;
    let ended = &AtomicBool::new(false);
    let write = |dir: &Path, from: u64| {
        let store = || DirStore::open(dir).unwrap();
        for number in from..from + each {
            let builder = Sde::builder().store(store()).save(SavePolicy::OnRequest);
            let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
            assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
            sde.finish().unwrap();
            if number % 16 == 0 {
                store().compact(&Retention::new()).unwrap();
            }
        }
    };
    drop([one, other].map(|dir| DirStore::open(dir).unwrap()));
    std::thread::scope(|scope| {
        let copies = [(one, other), (other, one)].map(|(from, to)| {
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    copy(from, to);
                }
            })
        });
        let writers =
            [(one, 0), (other, 1000)].map(|(dir, from)| scope.spawn(move || write(dir, from)));
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        ended.store(true, Ordering::Relaxed);
        copies.into_iter().for_each(|copies| copies.join().unwrap());
    });
    copy(one, other);
    copy(other, one);
    for dir in [one, other] {
        loads(DirStore::open(dir).unwrap(), 0..each);
        loads(DirStore::open(dir).unwrap(), 1000..1000 + each);
    }
}

/// Its content is copied with it, and once.
#[test]
fn an_entry_is_copied_with_what_its_file_holds() {
    let (one, other) = (Place::new(), Place::new());
    one.call("a", "text");
    let copy = || {
        let from = DirStore::open_read_only(one.store()).unwrap();
        let to = DirStore::open(other.store()).unwrap();
        to.copy_from(&from, |_| true).unwrap()
    };
    let copied = copy();
    assert_eq!((copied.entries, copied.missing), (1, 0));
    let before = other.bytes();
    assert_eq!(copy().there, 1);
    assert_eq!(other.bytes(), before);
    std::fs::remove_dir_all(one.store()).unwrap();
    std::fs::rename(other.store(), one.store()).unwrap();
    std::fs::remove_file(one.file("a")).unwrap();
    assert_eq!(one.call("a", "text"), 0);
}

/// A member of a group can put another folder in the place of one, or a link, at any time.
#[cfg(unix)]
#[test]
fn a_folder_that_is_swapped_while_it_is_copied_gives_nothing_of_another() {
    for (is_link, is_source) in [(false, true), (true, true), (false, false), (true, false)] {
        let (dir, one, other) = two();
        let wrong = dir.path().join("wrong");
        saved(&one, 0..3);
        saved(&other, 3..4);
        saved(&wrong, 10..13);
        for store in [&one, &other] {
            use std::os::unix::fs::MetadataExt;
            let group = store.metadata().unwrap().gid();
            DirStore::share_with_group(store, group).unwrap();
        }
        let before = segments(&wrong);
        let swapped = AtomicBool::new(false);
        let swap = || {
            let store = if is_source { &one } else { &other };
            let (entries, aside) = (store.join("entries"), dir.path().join("aside"));
            std::fs::rename(&entries, aside).unwrap();
            match is_link {
                true => std::os::unix::fs::symlink(wrong.join("entries"), entries).unwrap(),
                false => std::fs::create_dir(entries).unwrap(),
            }
        };
        let from = DirStore::open_read_only(&one).unwrap();
        let to = DirStore::open(&other).unwrap();
        let copied = to.copy_from(&from, |_| {
            if !swapped.swap(true, Ordering::Relaxed) {
                swap();
            }
            true
        });
        let entries = copied.as_ref().map_or(0, |copied| copied.entries);
        assert_eq!(copied.is_err(), is_link, "{is_source} {copied:?}");
        assert_eq!(entries == 3, !is_link && !is_source, "{copied:?}");
        drop(to);
        assert_eq!(segments(&wrong), before, "{is_link} {is_source}");
        if is_source {
            let to = on(DirStore::open(&other).unwrap());
            for number in 10..13 {
                let key = key_of(&to, number);
                assert!(
                    DirStore::open(&other)
                        .unwrap()
                        .look(&key)
                        .unwrap()
                        .is_none()
                );
            }
        }
    }
}
