//! Manifests: what was there when a checkpoint or an archive was made.

use std::path::{Path, PathBuf};

use sde::SavePolicy;
use sde_archives::DirStore;
use tempfile::tempdir;

use super::apps::{engine, fresh, page};
use super::log::warnings;
use super::says::{one_says, says};

/// The manifests, the newest last.
fn manifests(dir: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir.join("manifests"));
    let mut paths: Vec<_> = names
        .into_iter()
        .flatten()
        .map(|name| name.unwrap().path())
        .collect();
    paths.sort();
    paths
}

/// Three checkpoints; the last with a segment of its own.
fn three_generations(dir: &Path) {
    for number in 0..3 {
        let (sde, _) = engine(dir, SavePolicy::OnRequest);
        page.call(&sde, number).unwrap();
        sde.checkpoint().unwrap();
        std::mem::forget(sde);
    }
}

fn opening(dir: &Path) -> Vec<String> {
    warnings(|| drop(DirStore::open_read_only(dir).unwrap())).1
}

#[test]
fn two_generations_are_kept() {
    let dir = tempdir().unwrap();
    three_generations(dir.path());
    let generations = || {
        let paths = manifests(dir.path()).into_iter();
        let generation = |path: PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.split('-').next().unwrap().parse::<u64>().unwrap()
        };
        paths.map(generation).collect::<Vec<_>>()
    };
    assert_eq!(generations(), [2, 3]);

    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    page.call(&sde, 0).unwrap();
    page.call(&sde, 9).unwrap();
    sde.archive().unwrap();
    assert_eq!(generations(), [3, 4]);
    sde.archive().unwrap();
    assert_eq!(generations(), [3, 4], "nothing was new");
    std::mem::forget(sde);
    assert_eq!(opening(dir.path()), [""; 0]);
}

#[test]
fn results_saved_one_by_one_are_vouched_for_by_the_next_checkpoint() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    assert_eq!(manifests(dir.path()).len(), 0);
    sde.checkpoint().unwrap();
    assert_eq!(manifests(dir.path()).len(), 1);
    std::mem::forget(sde);
}

#[test]
fn a_damaged_generation_gives_way_to_the_one_before_it() {
    let dir = tempdir().unwrap();
    three_generations(dir.path());
    let newest = manifests(dir.path()).pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    // Cut off, flipped, emptied: in steps, since all of it is under one checksum.
    for at in (0..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        for damaged in [&bytes[..at], &flipped] {
            std::fs::write(&newest, damaged).unwrap();
            let warned = opening(dir.path());
            assert_eq!(warned.len(), 1, "{at}: {warned:?}");
            says(&warned[0], "the generation before it counts");
        }
    }
    // The next one takes a number that was never used, and nothing is lost.
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    for number in 0..3 {
        page.call(&sde, number).unwrap();
    }
    assert_eq!(sde.stats().total.computed, 0);
    page.call(&sde, 3).unwrap();
    sde.checkpoint().unwrap();
    let newest = manifests(dir.path()).pop().unwrap();
    assert!(
        newest.to_string_lossy().contains("/0000000004-"),
        "{newest:?}"
    );
    std::mem::forget(sde);
}

#[test]
fn what_a_manifest_vouches_for_and_is_gone_is_told_of() {
    let dir = tempdir().unwrap();
    three_generations(dir.path());
    let names = std::fs::read_dir(dir.path().join("entries")).unwrap();
    let files: Vec<_> = names.map(|name| name.unwrap().path()).collect();
    std::fs::remove_file(&files[0]).unwrap();
    let warned = opening(dir.path());
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("is lost"), "{warned:?}");
    let length = std::fs::metadata(&files[1]).unwrap().len();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&files[1])
        .unwrap();
    file.set_len(length / 2).unwrap();
    let warned = opening(dir.path());
    one_says(&warned, "lost or damaged");
}
