//! What a workflow may choose: other apps in the slots, other parameters.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sde::{Inputs, Instance, MemoryBudget, Peek, Sde, inputs};
use sde_apps::basis::{BasisSet, Harmonics};
use sde_apps::hartree_fock::{Damped, Rhf};
use sde_apps::molecule::{Molecule, Scan};

fn water() -> Inputs {
    let xyz = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n";
    inputs! {
        molecule: Molecule::from_xyz(xyz, 0).unwrap(),
        basis: BasisSet::named("STO-3G").unwrap(),
        harmonics: Harmonics::Published,
    }
}

fn damped(keep: f64) -> Instance {
    let method = Instance::new(Damped).set("keep", keep).unwrap();
    Instance::new(Rhf).fill("convergence", method).unwrap()
}

#[test]
fn another_convergence_method_gives_the_same_energy_under_another_key() {
    let (sde, water) = (Sde::new(), water());
    let apps = [Instance::new(Rhf), damped(0.3), damped(0.5)];
    let mut keys = Vec::new();
    for app in &apps {
        // What the others made is not taken for its own.
        let peek = sde.peek(app, &water).unwrap();
        assert!(matches!(peek, Peek::Miss { .. }), "{peek:?}");
        keys.push(peek.key());
        let energy = sde.run(app, &water).unwrap();
        let energy = *energy.get::<f64>("energy").unwrap();
        assert!((energy + 74.963_023_163).abs() < 1e-8, "{energy}");
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), apps.len());
    let stats = sde.stats();
    assert_eq!(stats.apps["Rhf"].computed, 3);
    // The integrals are those of all three.
    assert_eq!(stats.apps["ElectronRepulsion"].computed, 1);
    assert!(stats.apps["Damped"].computed > stats.apps["Diis"].computed);
}

/// What has left memory is computed again, of the same bits.
#[test]
fn a_scan_within_a_memory_budget_gives_the_same_energies() {
    let scan = "bond 1 2 0.9 1.1 5".parse::<Scan>().unwrap();
    let scan = water().with("scan", scan);
    let energies = |builder: sde::Builder| {
        let sde = builder.build().unwrap();
        let results = sde.run(&sde_apps::hartree_fock::Scan, &scan).unwrap();
        let energies = results.get::<Vec<f64>>("energies").unwrap();
        let bits: Vec<u64> = energies.iter().map(|energy| energy.to_bits()).collect();
        (bits, sde.stats().total.evicted)
    };
    let (unlimited, _) = energies(Sde::builder());
    let (limited, evicted) = energies(Sde::builder().memory_budget(MemoryBudget::bytes(20_000)));
    assert_eq!(unlimited.len(), 5);
    assert_eq!(limited, unlimited);
    assert!(evicted > 20, "{evicted}");
}

#[test]
fn parameters_are_checked() {
    for keep in [1.0, -0.1, f64::NAN] {
        let error = Instance::new(Damped).set("keep", keep).unwrap_err();
        assert!(format!("{error:#}").contains("less than 1"), "{error}");
    }
    for (name, value) in [("energy_change", 0.0), ("error", f64::INFINITY)] {
        let error = Instance::new(Rhf).set(name, value).unwrap_err();
        assert!(format!("{error:#}").contains("positive"), "{error}");
    }
    let error = Instance::new(Rhf).set("iterations", 0_usize).unwrap_err();
    assert!(format!("{error:#}").contains("at least one"), "{error}");
}

#[test]
fn what_is_in_the_slots_is_cited() {
    let sde = Sde::new();
    sde.run(&Rhf, &water()).unwrap();
    let cited = sde.citations_used();
    for (app, work) in [("Rhf", "Roothaan"), ("Diis", "Pulay"), ("Diis", "Kudin")] {
        let works = &cited[app];
        assert!(works.iter().any(|text| text.contains(work)), "{works:?}");
    }
    assert!(!cited.contains_key("Damped"));
}
