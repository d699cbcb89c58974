//! The tests notice each sync that is left out.
//!
//! A test that drops what was not synced proves nothing if it would pass without the syncs. So each
//! place in the source where one is asked for is left out in turn, and the power failures of
//! [`loss`](crate::loss) must find something lost. A sync that nobody misses is one too many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sde::archiver::{Archiver, Selection};
use sde_archives::StoreOptions;

use crate::copied::lost_of_a_copied_store;
use crate::count;
use crate::engine::dir;
use crate::half::lost_by_closing;
use crate::kit::{Call, Order, Place, Sim, Then, made};
use crate::log::warnings;
use crate::loss::program;
use crate::removals::back_after_a_power_failure;

/// How many places of each file ask for a sync. One that is missing here is one that no program
/// comes to, and that is not tested.
const SITES: &[(&str, usize)] = &[
    ("archive.rs", 1),
    ("catalog/manifests.rs", 3),
    ("compact/replaced.rs", 1),
    ("format/directory.rs", 3),
    ("store/sync_foreign.rs", 2),
    ("vfs/mod.rs", 1),
    ("writer/segment_writer.rs", 3),
];

/// All places that ask for a sync, as far as programs come there.
fn sites() -> BTreeSet<Place> {
    let mut sites = BTreeSet::new();
    for seed in 0..40 {
        let (after, outcome) = program(Sim::new(), seed, 4);
        outcome.unwrap();
        sites.extend(after.sync_sites().into_keys());
    }
    sites
}

/// Another process has made a folder and written to it, and is killed before the name of the folder is on the medium; this
/// one vouches for that. What is told to be lost after a power failure.
fn folder_of_another(sim: &Sim, seed: u64) -> Option<String> {
    let open = |sim: &Sim| {
        let options = StoreOptions::new().vfs(Arc::new(sim.clone()));
        options.open(dir()).unwrap()
    };
    let store = open(sim);
    let save = |number: u64| {
        store.save(&made::entries([number])).unwrap();
    };
    save(0);
    store.commit(Selection::Checkpoint).unwrap();
    let killed = sim.process();
    let other = open(&killed);
    killed.order_process(Order::of(&[Call::SyncDir], 3, Then::PowerOff));
    other
        .save(&made::states([made::scratch(1, 1)]))
        .unwrap_err();
    store.refresh().unwrap();
    save(1);
    store.commit(Selection::Checkpoint).unwrap();
    let (left, told) = warnings(|| open(&sim.power_loss(seed)));
    std::mem::forget([store, other, left]);
    told.into_iter().find(|told| told.contains("is lost"))
}

#[test]
fn a_folder_that_another_made_is_there_after_a_power_failure() {
    for seed in 0..100 {
        assert_eq!(folder_of_another(&Sim::new(), seed), None);
    }
}

/// What is lost without the syncs of this place.
fn loss_without(site: &Place, seeds: u64) -> Option<String> {
    let without = || {
        let sim = Sim::new();
        sim.leave_out(site.clone());
        sim
    };
    let lost = (0..seeds).find_map(|seed| program(without(), seed, 4).1.err());
    // What programs come to by chance too rarely.
    let rare = [
        folder_of_another,
        lost_of_a_copied_store,
        back_after_a_power_failure,
        lost_by_closing,
    ];
    let rare = rare.iter();
    let mut rare = rare.flat_map(|one| (0..100).map(move |seed| (one, seed)));
    lost.or_else(|| rare.find_map(|(one, seed)| one(&without(), seed)))
}

#[test]
fn each_sync_is_missed_when_it_is_left_out() {
    let sites = sites();
    let mut of_file = BTreeMap::<&str, usize>::new();
    for (file, ..) in &sites {
        let name = file.split_once("src/").map_or(&**file, |(_, name)| name);
        *of_file.entry(name).or_default() += 1;
    }
    let of_file: Vec<_> = of_file.into_iter().collect();
    assert_eq!(of_file, SITES, "{sites:?}");
    let mut needless = Vec::new();
    for site in sites {
        match loss_without(&site, count(3_000, 10_000)) {
            Some(loss) => println!("without {}:{}: {loss}", site.0, site.1),
            None => needless.push(site),
        }
    }
    assert!(needless.is_empty(), "nobody misses {needless:?}");
}
