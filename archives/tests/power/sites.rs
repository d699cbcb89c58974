//! The tests notice each sync that is left out.
//!
//! A test that drops what was not synced proves nothing if it would pass without the syncs. So each
//! place in the source where one is asked for is left out in turn, and the power failures of
//! [`loss`](crate::loss) must find something lost. A sync that nobody misses is one too many.

use std::collections::{BTreeMap, BTreeSet};

use crate::count;
use crate::kit::{Place, Sim};
use crate::loss::program;

/// How many places of each file ask for a sync. One that is missing here is one that no program
/// comes to, and that is not tested.
const SITES: &[(&str, usize)] = &[
    ("archive.rs", 1),
    ("catalog/manifests.rs", 3),
    ("format/directory.rs", 2),
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

/// What is lost without the syncs of this place.
fn loss_without(site: &Place, seeds: u64) -> Option<String> {
    (0..seeds).find_map(|seed| {
        let sim = Sim::new();
        sim.leave_out(site.clone());
        program(sim, seed, 4).1.err()
    })
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
