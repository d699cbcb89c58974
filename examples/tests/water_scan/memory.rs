//! How much memory the scan takes.

use std::path::Path;
use std::sync::{Arc, Mutex};

use sde::{Event, MemoryBudget, Stats, inputs};
use sde_apps::basis::{BasisSet, Harmonics};
use sde_apps::hartree_fock;
use sde_apps::molecule::{Molecule, Scan};

const XYZ: &str = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n";

/// The bits of the energies, what was counted, and what was warned of.
fn scan(store: &Path, budget: MemoryBudget) -> (Vec<u64>, Stats, Vec<String>) {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&warnings);
    let note = move |event: &Event| {
        if let Event::Warning { message, .. } = event {
            told.lock().expect("no panic").push(message.clone());
        }
    };
    let builder = sde::builder(store).expect("a store").observer(note);
    let sde = builder.memory_budget(budget).build().expect("a store");
    let inputs = inputs! {
        molecule: Molecule::from_xyz(XYZ, 0).expect("water"),
        basis: BasisSet::named("STO-3G").expect("a basis"),
        harmonics: Harmonics::Published,
        scan: "bond 1 2 0.8 1.2 40".parse::<Scan>().expect("a scan"),
    };
    let scan = hartree_fock::Scan::app();
    let results = sde.run(&scan, &inputs).expect("energies");
    // What is being saved may not leave; a call after that looks at the budget once more.
    sde.checkpoint().expect("saved");
    sde.run(&scan, &inputs).expect("energies");
    let energies = results.get::<Vec<f64>>("energies").expect("energies");
    let energies = energies.iter().map(|energy| energy.to_bits()).collect();
    let warnings = warnings.lock().expect("no panic").clone();
    (energies, sde.stats(), warnings)
}

/// Found by using it: `Rhf` has an expendable density, and mixes matrices by an app whose results are kept nowhere. Nothing of either left memory
/// by default.
#[test]
fn a_scan_keeps_to_a_small_budget_and_gives_the_same_energies() {
    let folder = tempfile::tempdir().expect("a folder");
    let (energies, all, _) = scan(&folder.path().join("all"), MemoryBudget::unlimited());
    let budget = MemoryBudget::bytes(128 << 10).only_saved();
    let (limited, stats, warnings) = scan(&folder.path().join("limited"), budget);
    assert_eq!(energies.len(), 40);
    assert_eq!(limited, energies);
    assert_eq!(all.total.evicted, 0);
    let used = stats.memory.expect("a budget");
    assert!(used.bytes <= used.limit, "{used:?}");
    for app in ["Rhf", "Diis"] {
        assert!(stats.apps[app].evicted > 0, "{app}");
    }
    assert_eq!(warnings, Vec::<String>::new());
}
