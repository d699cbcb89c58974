//! Maps and sets do not remember in which order they are walked.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sde::Fingerprint;

use super::{digest, same};

#[derive(Fingerprint)]
struct Settings {
    options: HashMap<String, Vec<f64>>,
    flags: HashSet<u32>,
}

fn settings(shift: usize) -> Settings {
    // Each map has hash keys of its own, and gets its entries in another order.
    let mut options = HashMap::with_hasher(RandomState::new());
    let mut flags = HashSet::with_hasher(RandomState::new());
    for step in 0..40 {
        let number = (step + shift) % 40;
        // Some values are longer than what enters as it is.
        options.insert(format!("option {number}"), vec![0.5; number * 10]);
        flags.insert(number as u32);
    }
    Settings { options, flags }
}

#[test]
fn a_thousand_rebuilt_maps_have_one_key() {
    let mut orders = HashSet::new();
    let digests: HashSet<_> = (0..1000)
        .map(|shift| {
            let settings = settings(shift);
            orders.insert(settings.flags.iter().copied().collect::<Vec<_>>());
            digest(&settings)
        })
        .collect();
    assert_eq!(digests.len(), 1);
    // Else the test would show nothing.
    assert!(
        orders.len() > 900,
        "only {} orders were walked",
        orders.len()
    );
}

#[test]
fn a_sorted_map_is_the_same_map() {
    let entries = [("b", 2.0), ("a", 1.0), ("c", 3.0)];
    same(&HashMap::from(entries), &BTreeMap::from(entries));
    let items = [5, 3, 9];
    same(&HashSet::from(items), &BTreeSet::from(items));
    let nested = |names: [&'static str; 2]| HashMap::from([(1, BTreeSet::from(names))]);
    assert_eq!(digest(&nested(["x", "y"])), digest(&nested(["y", "x"])));
}

#[test]
fn what_belongs_to_what_counts() {
    let base = digest(&BTreeMap::from([(1, 2), (3, 4)]));
    assert_ne!(base, digest(&BTreeMap::from([(1, 4), (3, 2)])));
    assert_ne!(base, digest(&BTreeMap::from([(2, 1), (4, 3)])));
    assert_ne!(base, digest(&BTreeMap::from([(1, 2)])));
    assert_ne!(base, digest(&[(1, 2), (3, 4)]));
    let sets = [
        digest(&BTreeSet::from([
            BTreeSet::from([1, 2]),
            BTreeSet::from([3]),
        ])),
        digest(&BTreeSet::from([
            BTreeSet::from([1]),
            BTreeSet::from([2, 3]),
        ])),
        digest(&BTreeSet::from([BTreeSet::from([1, 2, 3])])),
    ];
    assert_eq!(HashSet::from(sets).len(), 3);
}
