//! What is in the place of a store's folders and files, and whose it is.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sde::archiver::ArchiveError;
use sde::{SavePolicy, Sde};
use sde_archives::inspect::Inspection;
use sde_archives::{DirStore, StoreOptions};
use tempfile::{TempDir, tempdir};

use super::apps::{fresh, orbit, page};
use super::log::warnings;

/// A store with a file in each of its folders.
fn store() -> TempDir {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    orbit.call(&sde, 0.3, 3).unwrap();
    sde.checkpoint().unwrap();
    sde.finish().unwrap();
    dir
}

/// How many of the two results have to be computed.
fn computed(store: DirStore) -> u64 {
    let sde = Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    page.call(&sde, 1).unwrap();
    orbit.call(&sde, 0.3, 3).unwrap();
    let computed = sde.stats().total.computed;
    std::mem::forget(sde);
    computed
}

#[track_caller]
fn refused(dir: &Path, why: &[&str]) {
    let error = DirStore::open(dir).unwrap_err();
    assert!(matches!(error, ArchiveError::NotAStore { .. }), "{error:?}");
    let text = format!("{error:#}");
    for why in why {
        assert!(text.contains(why), "{why}: {text}");
    }
}

/// Such a store could not be opened at all, and the error said to name another directory.
#[test]
fn a_file_in_the_place_of_a_folder_is_told_of_and_the_rest_is_read() {
    for folder in ["entries", "scratch", "manifests"] {
        let dir = store();
        let path = dir.path().join(folder);
        let aside = dir.path().join("aside");
        let had_one = std::fs::rename(&path, &aside).is_ok();
        std::fs::write(&path, "a file").unwrap();
        let why = format!("its \"{folder}\" is no folder");
        refused(dir.path(), &[&why, "open_read_only"]);

        let (read, warned) = warnings(|| DirStore::open_read_only(dir.path()));
        let told = warned.iter().filter(|line| line.contains("is no folder"));
        assert_eq!(told.count(), 1, "{warned:?}");
        let lost = if folder == "entries" { 2 } else { 0 };
        assert_eq!(computed(read.unwrap()), lost, "{folder}");
        let inspection = Inspection::open(dir.path()).unwrap();
        let misplaced = inspection.misplaced().unwrap();
        let found: Vec<_> = misplaced
            .iter()
            .map(|one| (&*one.path, one.place.clone()))
            .collect();
        assert_eq!(found, [(folder, 0..6)]);
        let segments = inspection.segments().unwrap();
        assert!(!segments.is_empty(), "{folder}");
        inspection.manifests().unwrap();

        // It was left as it is, and so was all else.
        assert_eq!(std::fs::read(&path).unwrap(), b"a file");
        std::fs::remove_file(&path).unwrap();
        if had_one {
            std::fs::rename(&aside, &path).unwrap();
        }
        let (opened, warned) = warnings(|| DirStore::open(dir.path()).unwrap());
        assert_eq!(warned, [""; 0]);
        assert_eq!(computed(opened), 0);
    }
}

/// Only the directory itself was looked at: a folder that anybody could write to was read.
#[test]
fn a_folder_or_file_that_others_can_write_to_is_refused() {
    let dir = store();
    let mut parts: Vec<PathBuf> = vec![dir.path().join("FORMAT")];
    for folder in ["entries", "scratch", "manifests"] {
        let folder = dir.path().join(folder);
        parts.extend(
            folder
                .read_dir()
                .unwrap()
                .map(|entry| entry.unwrap().path()),
        );
        parts.push(folder);
    }
    assert!(parts.len() >= 7, "{parts:?}");
    for part in parts {
        let mode = std::fs::metadata(&part).unwrap().permissions().mode();
        let allow = |mode| std::fs::set_permissions(&part, Permissions::from_mode(mode)).unwrap();
        let name = part.strip_prefix(dir.path()).unwrap().to_str().unwrap();
        for more in [0o020, 0o002] {
            allow(mode | more);
            refused(dir.path(), &["others can write to it", "chmod go-w", name]);
            let error = DirStore::open_read_only(dir.path()).unwrap_err();
            assert!(format!("{error:#}").contains(name), "{error}");
            let trusting = StoreOptions::new().trust_others().open(dir.path());
            assert_eq!(computed(trusting.unwrap()), 0, "{name}");
        }
        // Others may read it.
        allow(mode | 0o044);
        DirStore::open(dir.path()).unwrap();
        allow(mode);
    }
}

#[test]
fn a_link_in_the_place_of_a_folder_or_file_is_refused() {
    let dir = store();
    let elsewhere = tempdir().unwrap();
    let mut parts: Vec<PathBuf> = ["FORMAT", "entries", "scratch", "manifests"]
        .map(|name| dir.path().join(name))
        .to_vec();
    for folder in ["entries", "manifests"] {
        let mut inside = dir.path().join(folder).read_dir().unwrap();
        parts.push(inside.next().unwrap().unwrap().path());
    }
    for part in parts {
        let aside = elsewhere.path().join("aside");
        std::fs::rename(&part, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &part).unwrap();
        let name = part.strip_prefix(dir.path()).unwrap().to_str().unwrap();
        refused(dir.path(), &["it is a link", "trust_others", name]);
        let trusting = StoreOptions::new().trust_others().open(dir.path());
        assert_eq!(computed(trusting.unwrap()), 0, "{name}");
        std::fs::remove_file(&part).unwrap();
        std::fs::rename(&aside, &part).unwrap();
    }
    // One may come to the store itself by way of a link.
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    assert_eq!(computed(DirStore::open(&link).unwrap()), 0);
}

/// A file that comes while the store is open is left out, and told of.
#[test]
fn what_others_can_write_to_is_left_out_of_an_open_store() {
    let dir = store();
    let folder = dir.path().join("entries");
    let mut inside = folder.read_dir().unwrap();
    let results = inside.next().unwrap().unwrap().path();
    assert!(inside.next().is_none());
    let aside = dir.path().join("aside");
    std::fs::rename(&results, &aside).unwrap();
    let open = DirStore::open(dir.path()).unwrap();
    std::fs::set_permissions(&aside, Permissions::from_mode(0o622)).unwrap();
    std::fs::rename(&aside, &results).unwrap();
    let (refreshed, warned) = warnings(|| open.refresh());
    refreshed.unwrap();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("others can write to it"), "{warned:?}");
    assert_eq!(computed(open), 2);
}
