//! What somebody has copied with `cp` is on the medium only once it was synced: whoever says that it is saved does that.

use std::path::{Path, PathBuf};

use sde::SavePolicy;
use sde::archiver::{Archiver, Selection};
use sde_archives::DirStore;
use sde_archives::vfs::Vfs;

use crate::engine::{all_load, dir, engine, options, page, read_only};
use crate::kit::{HOME, Sim, made};
use crate::log::warnings;

fn commit(store: &DirStore, step: u64) {
    store.save(&made::states([made::scratch(9, step)])).unwrap();
    store.commit(Selection::Checkpoint).unwrap();
}

fn copied() -> PathBuf {
    Path::new(HOME).join("copied")
}

/// As `cp` does it: nothing is synced.
fn copy(sim: &Sim, from: &Path, to: &Path) {
    let content = sim.content(from);
    sim.create(to).unwrap().write_at(&[&content], 0).unwrap();
}

/// A whole store is copied, and a program saves to the copy. What is wrong with it after a power failure.
pub fn lost_of_a_copied_store(sim: &Sim, seed: u64) -> Option<String> {
    let sde = engine(options(sim).open(dir()).unwrap(), SavePolicy::OnRequest);
    page.call(&sde, 1).unwrap();
    sde.finish().unwrap();
    drop(sde);
    for made in ["", "entries", "manifests"] {
        sim.make_dir(&copied().join(made)).unwrap();
    }
    for file in sim.files() {
        copy(
            sim,
            &file,
            &copied().join(file.strip_prefix(dir()).unwrap()),
        );
    }
    let store = options(sim).open(copied()).unwrap();
    commit(&store, 1);
    std::mem::forget(store);
    let left = sim.power_loss(seed);
    let (opened, warned) = warnings(|| options(&left).read_only().open(copied()));
    let store = match opened {
        Ok(store) => store,
        Err(error) => return Some(format!("{error:#}")),
    };
    if store.find_scratch(&made::key(9)).unwrap().is_none() {
        return Some("what was saved is lost".to_owned());
    }
    let lost = warned.into_iter().find(|text| text.contains("lost"));
    if lost.is_none() {
        all_load(store, 1..2);
    }
    lost
}

/// Found by reading: what the manifests that were copied with it vouched for was taken to be on the medium.
#[test]
fn a_copied_store_is_there_after_a_power_failure() {
    for seed in 0..100 {
        assert_eq!(lost_of_a_copied_store(&Sim::new(), seed), None, "{seed}");
    }
}

/// Found by reading: what this process had written itself was taken to be on the medium, whatever its name was by then.
#[test]
fn a_copied_segment_is_there_after_a_power_failure() {
    for seed in 0..100 {
        let sim = Sim::new();
        let store = options(&sim).open(dir()).unwrap();
        store.save(&made::entries([1])).unwrap();
        store.commit(Selection::Checkpoint).unwrap();
        // This seals it.
        store.compact(&Default::default()).unwrap();
        let mut segments = sim.files();
        segments.retain(|path| path.starts_with(dir().join("entries")));
        assert_eq!(segments.len(), 1);
        copy(&sim, &segments[0], &dir().join("entries/copied.sde"));
        sim.take_away(&segments[0]);
        store.refresh().unwrap();
        commit(&store, 1);
        std::mem::forget(store);
        let (store, warned) = warnings(|| read_only(&sim.power_loss(seed)));
        assert!(
            !warned.iter().any(|text| text.contains("lost")),
            "{seed}: {warned:?}"
        );
        assert!(store.find(&made::key(1)).unwrap().is_some(), "{seed}");
    }
}
