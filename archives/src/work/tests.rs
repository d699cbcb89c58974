//! Announcements within one process, and of invented holders; those of live processes are tested in `tests/store`.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::SystemTime;

use super::*;

const FORMAT: &str = "FORMAT";

/// A wait of this length is taken for a hang.
const LIMIT: Duration = Duration::from_secs(60);

struct Place {
    _dir: tempfile::TempDir,
    store: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().to_owned();
        fs::write(store.join(FORMAT), "").unwrap();
        Self { _dir: dir, store }
    }

    fn work(&self) -> Work {
        Work::new(&self.store)
    }

    fn names(&self) -> usize {
        fs::read_dir(self.store.join(FOLDER)).map_or(0, Iterator::count)
    }

    /// Makes an announcement of a holder that is dead or on another machine, with a time.
    fn left(&self, key: &Key, machine: &str, at: SystemTime) {
        let path = self.store.join(FOLDER).join(key.to_string());
        fs::write(&path, format!("far\n7\n{machine}\n")).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(at)
            .unwrap();
    }
}

fn key(number: u8) -> Key {
    Key::from_bytes([number; 32])
}

fn is_mine(announced: &Announced) -> bool {
    matches!(announced, Announced::Mine(_))
}

fn this_machine() -> String {
    file::machine().to_owned()
}

#[test]
fn a_key_is_announced_by_one_until_it_is_given_up() {
    let place = Place::new();
    let (one, other) = (place.work(), place.work());
    assert_eq!(one.announced_by(&key(1)), None);
    assert_eq!(place.names(), 0);
    let held = one.announce("app", &key(1));
    assert!(is_mine(&held));
    assert!(is_mine(&one.announce("app", &key(2))));
    let holder = other.announced_by(&key(1)).unwrap();
    assert_eq!(holder.process, std::process::id());
    assert!(matches!(other.announce("app", &key(1)), Announced::Others(found) if found == holder));
    drop(held);
    assert_eq!(other.announced_by(&key(1)), None);
    assert!(is_mine(&other.announce("app", &key(1))));
    drop((one, other));
    assert_eq!(place.names(), 0);
}

/// Closing a file releases all locks that the process has on it.
#[test]
fn asking_for_ones_own_gives_no_lock_up() {
    let place = Place::new();
    let (one, other) = (place.work(), place.work());
    let _held = one.announce("app", &key(1));
    assert!(!is_mine(&other.announce("app", &key(1))));
    assert!(other.announced_by(&key(1)).is_some());
    let file = File::options()
        .read(true)
        .write(true)
        .open(one.path(&key(1)))
        .unwrap();
    let id = file::id(&file.metadata().unwrap());
    assert!(file::keep_if_own(file, id).is_none());
    let inode = format!(":{} ", id.1);
    let is_lock = |line: &str| line.contains(" POSIX ") && line.contains(&inode);
    // Other processes may unlock while that file is read, and a line may be skipped.
    let is_there = |_| {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(is_lock)
    };
    assert!((0..100).any(is_there));
}

#[test]
fn who_died_on_this_machine_is_followed_at_once() {
    let place = Place::new();
    let work = place.work();
    let _own = work.announce("app", &key(0));
    place.left(&key(1), &this_machine(), SystemTime::now());
    assert_eq!(work.announced_by(&key(1)), None);
    let held = work.announce("app", &key(1));
    assert!(is_mine(&held));
    assert!(work.announced_by(&key(1)).is_some());
}

#[test]
fn who_is_on_another_machine_has_a_lease() {
    let place = Place::new();
    let work = place.work();
    let _own = work.announce("app", &key(0));
    let now = SystemTime::now();
    place.left(&key(1), "another", now - LEASE / 2);
    place.left(&key(2), "another", now - 2 * LEASE);
    // The holder's clock was ahead.
    place.left(&key(3), "another", now + 100 * LEASE);
    let far = Holder::new("far", 7);
    assert_eq!(work.announced_by(&key(1)), Some(far));
    assert!(!is_mine(&work.announce("app", &key(1))));
    assert_eq!(work.announced_by(&key(2)), None);
    assert!(is_mine(&work.announce("app", &key(2))));
    assert_eq!(work.announced_by(&key(3)), None);
}

/// Watches a key; the channel receives when its announcement may be gone.
fn watched(work: &Work, of: u8) -> (Box<dyn Send + Sync>, mpsc::Receiver<()>) {
    let (tell, told) = mpsc::channel();
    let changed = Arc::new(move || _ = tell.send(()));
    (work.watch(&key(of), changed).unwrap(), told)
}

/// Found by reading: a waiter looked every 20 ms.
#[test]
fn who_waits_is_woken_when_the_announcement_goes() {
    let place = Place::new();
    let (one, other) = (place.work(), place.work());
    let [first, second] = [1, 2].map(|number| one.announce("app", &key(number)));
    let waits = [1, 2, 2].map(|number| watched(&other, number));
    drop(second);
    for (_, told) in &waits[1..] {
        told.recv_timeout(LIMIT).unwrap();
    }
    assert!(waits[0].1.try_recv().is_err());
    let (_later, told) = watched(&other, 1);
    drop(first);
    told.recv_timeout(LIMIT).unwrap();
    waits[0].1.recv_timeout(LIMIT).unwrap();
}

#[test]
fn what_was_taken_over_is_not_given_up_by_who_had_it() {
    let place = Place::new();
    let work = place.work();
    let held = work.announce("app", &key(1));
    fs::remove_file(work.path(&key(1))).unwrap();
    place.left(&key(1), "another", SystemTime::now());
    drop(held);
    assert_eq!(
        work.announced_by(&key(1)).map(|holder| holder.process),
        Some(7)
    );
}

/// A lease whose lock this machine does not show.
#[test]
fn who_is_elsewhere_is_seen_as_long_as_the_lease_is_renewed() {
    let place = Place::new();
    let dir = place.store.join(FOLDER);
    fs::create_dir(&dir).unwrap();
    let now = SystemTime::now();
    let lease = |text: &str, at| {
        let path = dir.join(format!("{}.lease", UniqueId::new()));
        fs::write(&path, text).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(at).unwrap();
    };
    lease("near\n1\nelsewhere\n", now);
    lease("late\n2\nelsewhere\n", now - 2 * LEASE);
    lease("ahead\n3\nelsewhere\n", now + 2 * LEASE);
    // The name of an app is cut off within a letter where it is read for the holder alone.
    let long = "\u{e9}".repeat(1024);
    lease(&format!("here\n4\n{}\nrun {long}\n", this_machine()), now);
    lease("", now);
    lease("", now - 2 * LEASE);
    fs::create_dir(dir.join(format!("{}.lease", UniqueId::new()))).unwrap();
    let alive = || {
        let all = processes(&place.store).unwrap().into_iter();
        let mut alive: Vec<_> = all.map(|one| (one.host, one.process, one.alive)).collect();
        alive.sort();
        alive
    };
    let named = |host: &str, process, is_alive| (host.to_owned(), process, is_alive);
    let expected = [
        named("", 0, false),
        named("", 0, true),
        named("ahead", 3, false),
        named("here", 4, false),
        named("late", 2, false),
        named("near", 1, true),
    ];
    assert_eq!(alive(), expected);
    assert_eq!(tell_to_stop(&place.store, None).unwrap().len(), 2);
    place.work().clean();
    assert!(
        !alive()
            .iter()
            .any(|(host, ..)| host == "here" || host == "late")
    );
}

#[test]
fn what_the_dead_left_is_removed() {
    let place = Place::new();
    let work = place.work();
    let _own = work.announce("app", &key(0));
    let old = SystemTime::now() - 2 * LEASE;
    place.left(&key(1), &this_machine(), SystemTime::now());
    place.left(&key(2), "another", old);
    place.left(&key(3), "another", SystemTime::now());
    work.clean();
    // The lease, the process's own key, and the key of a holder that may live.
    assert_eq!(place.names(), 3);
}

#[test]
fn a_lease_is_renewed_while_something_is_announced() {
    let place = Place::new();
    let work = Work {
        duration: Duration::from_millis(3),
        ..place.work()
    };
    let _held = work.announce("app", &key(1));
    let written = || {
        fs::metadata(work.path(&key(1)))
            .unwrap()
            .modified()
            .unwrap()
    };
    let first = written();
    let begin = std::time::Instant::now();
    while written() == first {
        assert!(begin.elapsed() < Duration::from_secs(20), "not renewed");
        std::thread::yield_now();
    }
}

#[test]
fn a_folder_that_was_removed_is_made_again() {
    let place = Place::new();
    let work = place.work();
    drop(work.announce("app", &key(1)));
    fs::remove_dir_all(place.store.join(FOLDER)).unwrap();
    assert!(is_mine(&work.announce("app", &key(1))));
}

#[test]
fn where_nothing_can_be_written_nothing_is_announced() {
    let place = Place::new();
    fs::write(place.store.join(FOLDER), "no folder").unwrap();
    let work = place.work();
    assert!(matches!(
        work.announce("app", &key(1)),
        Announced::Unsupported
    ));
    assert_eq!(work.announced_by(&key(1)), None);
    let place = Place::new();
    fs::remove_file(place.store.join(FORMAT)).unwrap();
    assert!(!is_mine(&place.work().announce("app", &key(1))));
    assert_eq!(place.names(), 0);
}
