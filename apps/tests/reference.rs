//! Energies and dipole moments against PySCF, for every line of the table in `data/`
//! (`data/make_reference.py` tells how it was made). They are those of the app, through an engine:
//! a driver of the test's own would leave the app's untested.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use sde_apps::basis::{BasisSet, Harmonics};
use sde_apps::molecule::Molecule;
use sde_apps::scf::DipoleMoment;
use std::path::Path;

mod support;
use support::{number, rhf};

struct Line {
    molecule: String,
    charge: i32,
    basis: String,
    harmonics: Harmonics,
    functions: usize,
    energy: f64,
    dipole: f64,
}

impl Line {
    fn read(text: &str) -> Self {
        let cells: Vec<&str> = text.split(',').collect();
        let [
            molecule,
            charge,
            basis,
            harmonics,
            functions,
            energy,
            dipole,
        ] = cells[..]
        else {
            panic!("seven cells are expected: {text}");
        };
        Self {
            molecule: molecule.to_owned(),
            charge: charge.parse().unwrap(),
            basis: basis.to_owned(),
            harmonics: match harmonics {
                "published" => Harmonics::Published,
                "spherical" => Harmonics::Spherical,
                "cartesian" => Harmonics::Cartesian,
                other => panic!("no harmonics {other}"),
            },
            functions: functions.parse().unwrap(),
            energy: energy.parse().unwrap(),
            dipole: dipole.parse().unwrap(),
        }
    }

    /// The number of functions, the energy and the size of the dipole moment.
    fn compute(&self) -> (usize, f64, f64) {
        let file = data()
            .join("molecules")
            .join(format!("{}.xyz", self.molecule));
        let molecule = Molecule::read_xyz(file, self.charge).unwrap();
        let set = BasisSet::named(&self.basis).unwrap();
        let basis = set.on(&molecule, self.harmonics).unwrap();
        let results = rhf(&molecule, &set, self.harmonics);
        let dipole = results.get::<DipoleMoment>("dipole").unwrap();
        let squared: f64 = dipole.atomic_units.iter().map(|x| x * x).sum();
        (
            basis.functions(),
            number(&results, "energy"),
            squared.sqrt(),
        )
    }

    /// What differs from the reference, if anything does.
    fn difference(&self) -> Option<String> {
        let (functions, energy, dipole) = self.compute();
        let off = (energy - self.energy, dipole - self.dipole);
        // The table has ten digits; the energies promised are good to 1e-6.
        let good = functions == self.functions && off.0.abs() < 1e-9 && off.1.abs() < 2e-6;
        (!good).then(|| {
            format!(
                "{} {} {:?}: {functions} functions, energy off by {:.1e}, dipole by {:.1e}",
                self.molecule, self.basis, self.harmonics, off.0, off.1
            )
        })
    }
}

fn data() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"))
}

fn table() -> Vec<Line> {
    let text = std::fs::read_to_string(data().join("reference_energies.csv")).unwrap();
    text.lines().skip(1).map(Line::read).collect()
}

#[test]
fn energies_and_dipoles_agree_with_pyscf() {
    let table = table();
    assert!(table.len() > 100, "{} lines", table.len());
    let wrong: Vec<String> = table.iter().filter_map(Line::difference).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_energies_of_water_that_were_asked_for() {
    let water = Molecule::from_xyz(
        "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n",
        0,
    )
    .unwrap();
    for (name, harmonics, expected) in [
        ("STO-3G", Harmonics::Published, -74.963_023_163),
        ("6-31G*", Harmonics::Published, -76.010_504_995),
        ("6-31G*", Harmonics::Cartesian, -76.010_504_995),
        ("6-31G*", Harmonics::Spherical, -76.009_108_030),
    ] {
        let set = BasisSet::named(name).unwrap();
        let energy = number(&rhf(&water, &set, harmonics), "energy");
        assert!(
            (energy - expected).abs() < 1e-9,
            "{name} {harmonics:?}: {energy}"
        );
    }
}
