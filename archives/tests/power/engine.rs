//! An engine on a simulated medium.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::{SavePolicy, Sde};
use sde_archives::{DirStore, StoreOptions};

use crate::kit::{HOME, Sim};

pub fn dir() -> PathBuf {
    Path::new(HOME).join("store")
}

pub fn options(sim: &Sim) -> StoreOptions {
    StoreOptions::new().vfs(Arc::new(sim.clone()))
}

pub fn open(sim: &Sim) -> Result<DirStore, sde::archiver::ArchiveError> {
    options(sim).open(dir())
}

pub fn read_only(sim: &Sim) -> DirStore {
    options(sim).read_only().open(dir()).unwrap()
}

pub fn engine(store: DirStore, policy: SavePolicy) -> Sde {
    Sde::builder().store(store).save(policy).build().unwrap()
}

/// A kilobyte that depends on the number.
#[sde::app]
pub fn page(number: u64) -> Vec<u64> {
    expected(number)
}

pub fn expected(number: u64) -> Vec<u64> {
    (0..128)
        .map(|i| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i)
        .collect()
}

/// Whether these are all in the store.
pub fn all_load(store: DirStore, numbers: impl Iterator<Item = u64>) {
    let sde = engine(store, SavePolicy::OnRequest);
    for number in numbers {
        assert_eq!(*page.call(&sde, number).unwrap(), expected(number));
        assert_eq!(sde.stats().total.computed, 0, "{number} was computed again");
    }
    // Dropping it would save.
    std::mem::forget(sde);
}
