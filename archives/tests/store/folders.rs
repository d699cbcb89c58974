//! What is in the place of a store's folders and files, and whose it is.

use std::path::Path;

use sde::{ArchiveError, SavePolicy, Sde};
use sde_archives::DirStore;
use sde_archives::inspect::Inspection;
use tempfile::{TempDir, tempdir};

use super::apps::{engine, orbit, page};
use super::log::warnings;

/// A store with a file in each of its folders but that of the intermediates.
fn store() -> TempDir {
    let dir = tempdir().unwrap();
    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    orbit.call(&sde, 0.3, 3).unwrap();
    sde.checkpoint().unwrap();
    sde.finish().unwrap();
    dir
}

/// How many of the two results have to be computed.
fn computed(store: DirStore) -> u64 {
    let sde = Sde::builder().store(store).build().unwrap();
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
    let text = error.to_string();
    for why in why {
        assert!(text.contains(why), "{why}: {text}");
    }
}

/// Such a store could not be opened at all, and the error said to name another directory.
#[test]
fn a_file_in_the_place_of_a_folder_is_told_of_and_the_rest_is_read() {
    for folder in ["results", "intermediates", "scratch", "manifests"] {
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
        let lost = if folder == "results" { 2 } else { 0 };
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
