//! Which directories become stores, and which are left alone.

use std::collections::BTreeMap;
use std::fs::{File, read_dir};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sde::SavePolicy;
use sde::archiver::{ArchiveError, Archiver, Batch, Selection};
use sde_archives::vfs::{Disk, Vfs};
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::tempdir;

use super::apps::{engine, page};
use super::log::warnings;
use super::says::says;

/// Everything under a directory, with its contents.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.insert(path.clone(), Vec::new());
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    all
}

/// Both ways to open refuse it, for a reason that has this in it.
fn refused(path: &Path, why: &str) {
    for opened in [DirStore::open(path), DirStore::open_read_only(path)] {
        let error = opened.unwrap_err();
        assert!(matches!(error, ArchiveError::NotAStore { .. }), "{error:?}");
        let text = format!("{error:#}");
        says(&text, why);
        assert!(text.contains(&*path.to_string_lossy()), "{text}");
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_store_is_made_with_its_parents_and_belongs_to_its_owner() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("a/b/store");
    let (sde, _) = engine(&store, SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    sde.finish().unwrap();
    assert_eq!(mode(&store), 0o700);
    let names = contents(&store);
    assert_eq!(names.len(), 5, "{:?}", names.keys());
    for path in names.keys().filter(|path| path.parent() != Some(&store)) {
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(path), 0o600);
    }
    let format = std::fs::read_to_string(store.join("FORMAT")).unwrap();
    assert!(format.starts_with("SDE store, format 2\n"));
}

#[test]
fn a_directory_with_other_things_in_it_is_left_as_it_was() {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.tex"), "a year of work").unwrap();
    std::fs::create_dir(dir.path().join("checkpoint")).unwrap();
    std::fs::write(dir.path().join("checkpoint/1-2.sde"), "not ours").unwrap();
    let before = contents(dir.path());
    refused(dir.path(), "other things in it");
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_file_is_not_a_store() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("results.txt");
    std::fs::write(&file, "numbers").unwrap();
    refused(&file, "it is a file");
    assert_eq!(std::fs::read(&file).unwrap(), b"numbers");
    let error = format!("{:#}", DirStore::open(file.join("store")).unwrap_err());
    says(&error, "name another directory");
    let error = format!("{:#}", DirStore::open("").unwrap_err());
    says(&error, "name another directory");
}

#[test]
fn another_format_is_refused_and_left_as_it_was() {
    for (format, why) in [
        (
            "SDE store, format 3\n",
            "format 3, this program reads format 2; use the release of SDE that wrote it",
        ),
        (
            "SDE store, format 1\n",
            "format 1, this program reads format 2; name another directory, what it held is computed anew there",
        ),
        ("SDE store, format 2.5\n", "does not begin with"),
        ("SDE stole, format 2\n", "does not begin with"),
        ("", "does not begin with"),
        ("SDE store, format 99999999999999999999\n", "does not begin"),
    ] {
        let dir = tempdir().unwrap();
        std::fs::write(dir.path().join("FORMAT"), format).unwrap();
        let before = contents(dir.path());
        refused(dir.path(), why);
        assert_eq!(contents(dir.path()), before);
    }
    let dir = tempdir().unwrap();
    std::fs::create_dir(dir.path().join("FORMAT")).unwrap();
    refused(dir.path(), "FORMAT");
}

#[test]
fn reading_changes_nothing_and_saves_nothing() {
    let dir = tempdir().unwrap();
    refused_read_only(&dir.path().join("nowhere"));
    refused_read_only(dir.path());
    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    std::mem::forget(sde);

    let before = contents(dir.path());
    let store = DirStore::open_read_only(dir.path()).unwrap();
    let sde = sde::Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    page.call(&sde, 1).unwrap();
    assert_eq!(sde.stats().total.computed, 0);
    page.call(&sde, 2).unwrap();
    let error = format!("{:#}", sde.finish().unwrap_err());
    says(&error, "opened for reading only");
    std::mem::forget(sde);
    let retention = Retention::new().capacity(0);
    let would = store.would_compact(&retention).unwrap();
    assert_eq!(would.removed, 0);
    let error = store.compact(&retention).unwrap_err();
    assert!(matches!(error, ArchiveError::ReadOnly { .. }), "{error}");
    assert_eq!(contents(dir.path()), before);
    assert!(store.save(&Batch::new(Selection::Archive)).is_err());
}

fn refused_read_only(path: &Path) {
    let existed = path.exists();
    let error = format!("{:#}", DirStore::open_read_only(path).unwrap_err());
    says(&error, "`DirStore::open` makes a new store");
    assert_eq!(path.exists(), existed);
}

/// A crash while a store was made leaves a file that has not got its name yet.
#[test]
fn a_store_that_was_half_made_is_made() {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("0123.unfinished"), "SDE st").unwrap();
    DirStore::open(dir.path()).unwrap();
    DirStore::open(dir.path()).unwrap();
}

#[test]
fn a_directory_that_can_not_be_written_is_an_error_when_it_is_opened() {
    // Not even root makes files there.
    let error = DirStore::open("/proc/sde-store").unwrap_err();
    assert!(matches!(error, ArchiveError::Open { .. }), "{error:?}");
    let text = format!("{error:#}");
    says(&text, "making the directory failed");
}

#[test]
fn an_empty_store_says_where_it_is() {
    let dir = tempdir().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    assert_eq!(store.path(), dir.path());
    assert!(store.describe().contains(&*dir.path().to_string_lossy()));
    assert!(store.marks().unwrap().is_empty());
}

/// What was only read needs no saving, and can be published.
#[test]
fn a_store_opened_for_reading_is_finished_and_published() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    let n = sde::inputs! { n: 5_u64 };
    let (sde, _) = engine(&path, SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    // It has an intermediate alone, of which no archive has anything yet.
    sde.request(&half, &n).run().unwrap();
    std::mem::forget(sde);
    let before = contents(&path);

    let ((), warned) = warnings(|| {
        let store = DirStore::open_read_only(&path).unwrap();
        let sde = sde::Sde::builder()
            .store(store)
            .save(SavePolicy::OnRequest)
            .build()
            .unwrap();
        page.call(&sde, 1).unwrap();
        sde.request(&half, &n).run().unwrap();
        assert_eq!(sde.stats().total.computed, 0);
        sde.finish().unwrap();
        sde.checkpoint().unwrap();
        sde.archive_to(dir.path().join("published")).unwrap();
    });
    assert_eq!(warned, [""; 0]);
    assert_eq!(contents(&path), before);
    let (sde, _) = engine(&dir.path().join("published"), SavePolicy::OnRequest);
    page.call(&sde, 1).unwrap();
    assert_eq!(sde.stats().total.computed, 0);
}

/// It was written into the store's own folders.
#[test]
fn a_store_is_not_published_into_itself() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    let (sde, _) = engine(&path, SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    sde.finish().unwrap();
    std::os::unix::fs::symlink(path.join("entries"), dir.path().join("link")).unwrap();
    let before = contents(&path);
    for inside in [
        "store",
        "store/new",
        "store/entries/a/b",
        "store/../store/x",
        "link/x",
    ] {
        let error = sde.archive_to(dir.path().join(inside)).unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("lies in it"), "{inside}: {text}");
        assert_eq!(contents(&path), before, "{inside}");
    }
    sde.archive_to(dir.path().join("store-2")).unwrap();
    sde.archive_to(dir.path().join("store/../store-3")).unwrap();
}

#[sde::app(tags(intermediate))]
fn half(n: u64) -> u64 {
    n / 2
}

/// It was made a store once, and refused ever after.
#[test]
fn an_empty_directory_that_others_can_write_to_is_refused_at_once() {
    let dir = tempdir().unwrap();
    let allow = |mode| std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(mode));
    allow(0o770).unwrap();
    let error = format!("{:#}", DirStore::open(dir.path()).unwrap_err());
    says(&error, "others can write to it");
    assert!(contents(dir.path()).is_empty());
    let trusting = || StoreOptions::new().trust_others().open(dir.path());
    trusting().unwrap();
    trusting().unwrap();
    allow(0o700).unwrap();
    DirStore::open(dir.path()).unwrap();
}

/// The flags with which this process has a file open.
fn flags(path: &Path) -> Vec<u32> {
    let path = path.canonicalize().unwrap();
    let open = read_dir("/proc/self/fd").unwrap().flatten();
    let of_file = open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == path));
    let flags = of_file.map(|fd| {
        let info = Path::new("/proc/self/fdinfo").join(fd.file_name());
        let info = std::fs::read_to_string(info).unwrap();
        let octal = info.lines().find_map(|line| line.strip_prefix("flags:"));
        u32::from_str_radix(octal.unwrap().trim(), 8).unwrap()
    });
    flags.collect()
}

/// Found by reading: on NFS a lock that keeps all others out is refused on a file that was opened for reading
/// only, so that a compaction took it that there are no locks.
#[test]
#[cfg(target_os = "linux")]
fn a_file_is_opened_for_writing_to_be_locked() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("file");
    File::create(&path).unwrap();
    let _lock = Disk.try_lock(&path).unwrap().unwrap();
    let modes: Vec<u32> = flags(&path).into_iter().map(|flags| flags & 3).collect();
    let is_written = modes.iter().any(|mode| *mode != 0);
    assert!(is_written, "it is opened with mode {modes:?}");
}
