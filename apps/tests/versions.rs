//! A change of what an app computes raises its version.
//!
//! What an app made is found by its version for as long as there are stores. The screening of the
//! integrals was changed once, and with it the energy of benzene by 8e-10 hartree, while
//! `ElectronRepulsion` stayed at version 1: old integrals would have been taken for new ones. So what
//! each app makes of a small molecule is written down here with the version that makes it. Numbers
//! are rounded to ten places, since another processor may give other last bits; a constant that
//! changes less than that has a test beside it (`integrals/repulsion.rs`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use sde::key::commit;
use sde::record::CodeId;
use sde::{Inputs, Instance, Sde, Value, inputs};
use sde_apps::basis::{BasisSet, Harmonics};
use sde_apps::hartree_fock::{
    Damped, Rhf, Scan, diis, dipole_integrals, electron_repulsion, kinetic, nuclear_attraction,
    overlap,
};
use sde_apps::integrals::Repulsion;
use sde_apps::matrix::Matrix;
use sde_apps::molecule::{self, Molecule};
use sde_apps::scf::{DipoleMoment, History, Iterate};

/// App, version, digest of its rounded results.
const TABLE: [(&str, &str, &str); 9] = [
    ("Overlap", "1", "722b128c807784c1"),
    ("Kinetic", "1", "2429f7add56734cd"),
    ("NuclearAttraction", "1", "903a7f1c27f7d096"),
    ("ElectronRepulsion", "2", "0e80d573ee40f26f"),
    ("DipoleIntegrals", "1", "1268dd6d6981f022"),
    ("Diis", "2", "2c39c432afe497cc"),
    ("Damped", "1", "45042231932c7fb8"),
    ("Rhf", "2", "620eb8f36634221a"),
    ("Scan", "1", "de03f5207dc8fa62"),
];

fn water() -> Molecule {
    let xyz = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n";
    Molecule::from_xyz(xyz, 0).unwrap()
}

/// The same digest for numbers that differ by rounding only.
fn digest<'x>(numbers: impl IntoIterator<Item = &'x f64>) -> String {
    let texts = numbers.into_iter().map(|x| match format!("{x:.10}") {
        text if text.trim_start_matches(['-', '0', '.']).is_empty() => "0".to_owned(),
        text => text,
    });
    let all: Vec<String> = texts.collect();
    commit(&all).unwrap().digest().to_string()[..16].to_owned()
}

/// A name and a version, and a digest of the results.
struct Made(String, String, String);

fn made(
    app: impl Into<Instance>,
    inputs: &Inputs,
    numbers: impl FnOnce(&sde::ResultMap) -> Vec<f64>,
) -> Made {
    let app = app.into();
    let info = app.info().clone();
    let version = match info.code() {
        CodeId::Version(version) => version.to_string(),
        _ => "of its source".to_owned(),
    };
    let results = Sde::new().run(&app, inputs).unwrap();
    Made(info.name().to_owned(), version, digest(&numbers(&results)))
}

fn all() -> Vec<Made> {
    let set = BasisSet::named("6-31G*").unwrap();
    let basis = Value::new(set.on(&water(), Harmonics::Published).unwrap());
    let of_basis = inputs! { basis: basis.clone() };
    let of_both = inputs! { basis: basis, molecule: water() };
    let matrix = |results: &sde::ResultMap| {
        let matrix = results.get::<Matrix>("result").unwrap();
        matrix.values().to_vec()
    };
    let history = inputs! { history: history() };
    let energy = inputs! { molecule: water(), basis: set.clone(), harmonics: Harmonics::Published };
    let scan = "bond 1 2 0.95 1.00 2".parse::<molecule::Scan>().unwrap();
    let scan = energy.clone().with("scan", scan);
    vec![
        made(overlap, &of_basis, matrix),
        made(kinetic, &of_basis, matrix),
        made(nuclear_attraction, &of_both, matrix),
        made(electron_repulsion, &of_basis, |results| {
            let repulsion = results.get::<Repulsion>("result").unwrap();
            repulsion.values().to_vec()
        }),
        made(dipole_integrals, &of_basis, |results| {
            let three = results.get::<[Matrix; 3]>("result").unwrap();
            three.iter().flat_map(|one| one.values().to_vec()).collect()
        }),
        made(diis, &history, matrix),
        made(Damped::app(), &history, matrix),
        made(Rhf::app(), &energy, |results| {
            let dipole = results.get::<DipoleMoment>("dipole").unwrap();
            let energy = *results.get::<f64>("energy").unwrap();
            // The dipole converges with the density, to fewer digits.
            let dipole = dipole.atomic_units.map(|x| (x * 1e6).round() / 1e6);
            [&[energy][..], &dipole].concat()
        }),
        made(Scan::app(), &scan, |results| {
            Vec::clone(&results.get::<Vec<f64>>("energies").unwrap())
        }),
    ]
}

/// Three iterations with small numbers.
fn history() -> History {
    let mut history = History::default();
    for n in 1..4 {
        let scale = 1.0 / f64::from(n);
        let part = |seed: f64| Matrix::from_fn(2, 2, |i, j| scale * seed + (i * j) as f64);
        history.push(Iterate {
            energy: -1.0 - f64::from(n),
            density: part(1.0),
            fock: part(-2.0),
            error: Matrix::from_fn(2, 2, |i, j| scale * (i as f64 - j as f64) + scale * scale),
            occupied: part(0.5),
        });
    }
    history
}

#[test]
fn results_that_change_have_a_new_version() {
    let mut wrong = String::new();
    for Made(app, version, digest) in all() {
        let known = TABLE.iter().find(|line| line.0 == app);
        let now = format!("    (\"{app}\", \"{version}\", \"{digest}\"),\n");
        match known {
            Some((_, old, results)) if *old == version && *results != digest => wrong.push_str(
                &format!("what {app} computes has changed: raise its version, which is {version}, then the line is (with the new version)\n{now}"),
            ),
            Some((_, old, results)) if *old == version && *results == digest => {}
            _ => wrong.push_str(&format!("{app} has a new version; its line is\n{now}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
