//! What a workflow may choose: other apps in the slots, other parameters.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sde::{Inputs, Instance, MemoryBudget, Peek, Sde, inputs};
use sde_apps::basis::{BasisSet, Harmonics};
use sde_apps::hartree_fock::{Damped, Rhf, RhfApp};
use sde_apps::molecule::{Molecule, Scan};

fn water() -> Inputs {
    let xyz = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n";
    inputs! {
        molecule: Molecule::from_xyz(xyz, 0).unwrap(),
        basis: BasisSet::named("STO-3G").unwrap(),
        harmonics: Harmonics::Published,
    }
}

fn damped(keep: f64) -> RhfApp {
    Rhf::app().convergence(Damped::app().keep(keep))
}

#[test]
fn another_convergence_method_gives_the_same_energy_under_another_key() {
    let (sde, water) = (Sde::new(), water());
    let apps = [Rhf::app(), damped(0.3), damped(0.5)];
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
        let results = sde
            .run(&sde_apps::hartree_fock::Scan::app(), &scan)
            .unwrap();
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
    let sde = Sde::new();
    let error = |app: Instance| sde.prepare(&app).unwrap_err();
    for keep in [1.0, -0.1, f64::NAN] {
        let error = error(Damped::app().keep(keep).into());
        assert!(error.to_string().contains("less than 1"), "{error}");
    }
    let rhf = Rhf::app;
    for app in [rhf().energy_change(0.0), rhf().error(f64::INFINITY)] {
        let error = error(app.into());
        assert!(error.to_string().contains("positive"), "{error}");
    }
    let error = error(rhf().iterations(0).into());
    assert!(error.to_string().contains("at least one"), "{error}");
}

#[test]
fn what_is_in_the_slots_is_cited() {
    let sde = Sde::new();
    sde.run(&Rhf::app(), &water()).unwrap();
    let cited = sde.citations_used();
    for (app, work) in [("Rhf", "Roothaan"), ("Diis", "Pulay"), ("Diis", "Kudin")] {
        let works = &cited[app];
        assert!(works.iter().any(|text| text.contains(work)), "{works:?}");
    }
    assert!(!cited.contains_key("Damped"));
}

/// What was saved is found: the identities are those of the apps as they were first written.
#[test]
fn identities_stay() {
    let sde = Sde::new();
    let id = |app: Instance| sde.prepare(&app).unwrap().id().to_string();
    let (rhf, scan) = (Rhf::app(), sde_apps::hartree_fock::Scan::app());
    let ids = [
        rhf.into(),
        Damped::app().into(),
        damped(0.3).into(),
        scan.into(),
    ]
    .map(id);
    let expected = [
        "b25afd47d966167c6b822d1c62a6cbe263c36d62b0959a08bcd381272b45c9a5",
        "83ab09e87f98ba3fb1c5870a5c34b021f65c2e45ea7824a9f93b29da90d62461",
        "1040333ce47399a3b14448a102df67a239043172a56c2ca59f6c98fb343f2629",
        "51c4e5498ee9495cde31fe5e67040296fc82b647c1f7a30f854e6f549c6a4b5c",
    ];
    assert_eq!(ids, expected);
}
