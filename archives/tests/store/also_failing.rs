//! Looking in other stores that change, are damaged, are not there, or may not be read.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io};

use sde::SavePolicy;
use sde_archives::{DirStore, Retention, StoreOptions};

use super::also::{Stores, computed, files, key_of, loads, looking_in, on, until};
use super::apps::engine;
use super::child::{Worker, tell};
use super::log::warnings;
use super::looking::file as segment;
use super::odd_disk::OddDisk;
use super::says::{one_says, says};

#[test]
fn a_store_that_changes_meanwhile_is_read_on() {
    let stores = Stores::new();
    let a = stores.with_pages("a", 0..4);
    let sde = stores.engine(&["a"]);
    assert_eq!(computed(&sde, [0]), 0);
    // All lies in another file by then.
    let other = StoreOptions::new().grace(Duration::ZERO).open(&a).unwrap();
    other.compact(&Retention::new()).unwrap();
    other.compact(&Retention::new()).unwrap();
    assert_eq!(computed(&sde, [1, 2]), 0);
    drop(other);
    stores.remove("a");
    let (new, warned) = warnings(|| computed(&sde, [3, 4]));
    assert_eq!((new, warned.len()), (2, 1), "{warned:?}");
    one_says(&warned, "is not found any more");
    // It is back, with more.
    stores.with_pages("a", 5..6);
    let store = stores.store(&["a"]);
    let key = key_of(&sde, 6);
    assert!(store.look(&key).unwrap().is_none());
    stores.with_pages("a", [6]);
    until(|| store.look(&key).unwrap().is_some());
}

#[test]
fn a_damaged_store_costs_what_is_damaged() {
    let stores = Stores::new();
    let a = stores.with_pages("a", 0..4);
    let bytes = fs::read(segment(&a)).unwrap();
    stores.with_pages("mine", []);
    let open = || {
        let store = stores.options(&["a"]).read_only();
        on(store.open(stores.path("mine")).unwrap())
    };
    for damage in [&bytes[..bytes.len() / 2], &[0; 9], &[]] {
        // Opened before it was damaged, and after.
        let before = open();
        fs::write(segment(&a), damage).unwrap();
        for sde in [before, open()] {
            let (new, _) = warnings(|| computed(&sde, 0..4));
            assert!(new > 0);
        }
        fs::write(segment(&a), &bytes).unwrap();
        assert_eq!(computed(&open(), 0..4), 0);
    }
}

/// A network file system tells of a file that another machine has removed in its own way.
#[test]
fn a_stale_handle_is_a_file_that_is_gone() {
    let stores = Stores::new();
    let a = stores.with_pages("a", 0..2);
    stores.with_pages("mine", []);
    let is_stale = Arc::new(AtomicBool::new(false));
    let (at, stale) = (a.clone(), Arc::clone(&is_stale));
    let disk = OddDisk::that_opens(move |path| {
        let is_stale = stale.load(Ordering::Relaxed) && path.starts_with(at.join("entries"));
        match is_stale {
            true => Err(io::ErrorKind::StaleNetworkFileHandle.into()),
            false => Ok(()),
        }
    });
    let options = || stores.options(&["a"]).vfs(Arc::new(disk.clone()));
    let sde = on(options().open(stores.path("mine")).unwrap());
    assert_eq!(computed(&sde, [0]), 0);
    is_stale.store(true, Ordering::Relaxed);
    let (new, warned) = warnings(|| computed(&sde, [1]));
    assert_eq!((new, warned.len()), (1, 0), "{warned:?}");
    let (_, warned) = warnings(|| options().open(stores.path("mine")).unwrap());
    assert_eq!(warned.len(), 1, "{warned:?}");
    one_says(&warned, &format!("{} is lost", segment(&a).display()));
}

/// Its own copy is damaged, and the other's is whole.
#[test]
fn a_whole_entry_elsewhere_is_better_than_a_damaged_one_here() {
    let stores = Stores::new();
    let (a, mine) = (stores.path("a"), stores.path("mine"));
    let (sde, _) = engine(&mine, SavePolicy::OnRequest);
    assert!(!loads(&sde, 70));
    sde.finish().unwrap();
    drop(sde);
    let (to, from) = (DirStore::open(&a).unwrap(), DirStore::open(&mine).unwrap());
    to.copy_from(&from, |_| true).unwrap();
    drop((to, from));
    let mut bytes = fs::read(segment(&mine)).unwrap();
    let middle = bytes.windows(9).position(|at| at == b"xxxxxxxxx").unwrap();
    bytes[middle + 1000] = b'?';
    fs::write(segment(&mine), bytes).unwrap();
    let (_, warned) = warnings(|| assert!(loads(&stores.engine(&["a"]), 70)));
    one_says(&warned, "can't be used");
    let (_, _) = warnings(|| assert!(!loads(&stores.engine(&[]), 70)));
}

#[test]
fn stores_named_twice_or_not_there_are_told_of() {
    let stores = Stores::new();
    stores.with_pages("a", [1]);
    stores.with_pages("mine", []);
    std::os::unix::fs::symlink(stores.path("a"), stores.path("link")).unwrap();
    std::os::unix::fs::symlink(stores.path("loop"), stores.path("loop")).unwrap();
    fs::write(stores.path("file"), "text").unwrap();
    fs::create_dir(stores.path("empty")).unwrap();
    let told = |others: &[&str]| {
        let (sde, warned) = warnings(|| stores.engine(others));
        assert_eq!(
            computed(&sde, [1]),
            u64::from(!others.contains(&"a")),
            "{others:?}"
        );
        drop(sde);
        warned
    };
    assert_eq!(told(&["a"]), [""; 0]);
    for (others, count) in [
        (&["a", "a"][..], 1),
        (&["a", "link"], 1),
        (&["mine", "a", "../mine"], 1),
        (&["a", "mine", "link", "mine"], 3),
    ] {
        let warned = told(others);
        one_says(&warned, "it is looked in once");
        assert!(warned.len() >= count, "{warned:?}");
    }
    for missing in ["nowhere", "file", "empty", "loop"] {
        let warned = told(&[missing, "a"]);
        assert_eq!(warned.len(), 1, "{warned:?}");
        one_says(&warned, "nothing is looked up in");
        one_says(&warned, "take it out of `StoreOptions::also` or SDE_ALSO");
    }
    assert!(!stores.path("nowhere").exists());
    let names: Vec<String> = (0..200).map(|number| format!("s{number}")).collect();
    for name in &names {
        DirStore::open(stores.path(name)).unwrap();
    }
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("a");
    assert_eq!(told(&names), [""; 0]);
}

/// A worker's job, as a user who may not read all.
#[cfg(target_os = "linux")]
pub fn without_permission(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let close = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o000));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(dir.join("mine"), Some(65_534), None).unwrap();
        for path in files(&dir.join("mine"))
            .keys()
            .chain([&dir.join("mine/entries")])
        {
            let _ = std::os::unix::fs::chown(path, Some(65_534), None);
        }
    }
    close(&segment(&dir.join("a"))).unwrap();
    close(&dir.join("b")).unwrap();
    if rustix::process::geteuid().is_root() {
        // Of this thread alone.
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
    }
    let options = looking_in(dir, &["a", "b"]);
    let a = StoreOptions::new().read_only().trust_others();
    says(
        &a.open(dir.join("a")).unwrap_err().to_string(),
        "you may not read it",
    );
    let (new, warned) = warnings(|| {
        let sde = on(options.read_only().open(dir.join("mine")).unwrap());
        computed(&sde, 0..3)
    });
    tell(format_args!("computed {new}"));
    for warning in warned {
        tell(format_args!("{warning}"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_missing_permission_is_told_once_with_what_mends_it() {
    use std::os::unix::fs::PermissionsExt;
    let stores = Stores::new();
    let (a, b) = (stores.with_pages("a", [1]), stores.with_pages("b", [2]));
    stores.with_pages("mine", []);
    for open in [
        stores.0.path(),
        &a,
        &a.join("entries"),
        &stores.path("mine"),
    ] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for file in files(&a).keys() {
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::set_permissions(a.join("manifests"), fs::Permissions::from_mode(0o755)).unwrap();
    let told = Worker::start("without permission", stores.0.path(), &[]).rest();
    fs::set_permissions(&b, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(told[0], "computed 3");
    let of = |store: &Path| {
        let name = store.display().to_string();
        let of: Vec<&String> = told.iter().filter(|line| line.contains(&name)).collect();
        assert_eq!(of.len(), 1, "{told:?}");
        says(of[0], "sde init --group");
        of[0].clone()
    };
    says(&of(&a), &segment(&a).display().to_string());
    of(&b);
}
