//! Molecules: atoms with positions, and a charge.
//!
//! A [`Molecule`] is read from an XYZ file ([`Molecule::read_xyz`]) or made from atoms, and
//! once it exists it makes sense: there is at least one atom, all positions are finite and
//! no two atoms lie on top of each other. Everything downstream relies on that, so the fields
//! are private. Positions are kept in ångström, as in the files, and converted once
//! ([`Molecule::positions_bohr`]), so that a geometry read twice has the same bits.
//!
//! The geometry is changed along one bond length or one angle with
//! [`Molecule::with_bond_length`] and [`Molecule::with_angle`]; a [`Scan`] lists the values.

mod element;
mod error;
mod geometry;
mod scan;
mod xyz;

pub use element::Element;
pub use error::MoleculeError;
pub use scan::{Coordinate, Scan};

use crate::units::ANGSTROM_PER_BOHR;
use sde::Fingerprint;
use serde::{Deserialize, Serialize};

/// The smallest distance of two atoms in ångström; nearer ones are an error of the geometry.
pub const LEAST_DISTANCE: f64 = 0.1;

/// The largest absolute coordinate in ångström.
pub const FARTHEST: f64 = 1.0e4;

/// A nucleus at its place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Fingerprint)]
pub struct Atom {
    /// Which element.
    pub element: Element,
    /// Where, in ångström.
    pub position: [f64; 3],
}

/// Atoms at different, finite places, and the charge of the whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Fingerprint)]
#[serde(try_from = "Unchecked", into = "Unchecked")]
pub struct Molecule {
    atoms: Vec<Atom>,
    charge: i32,
}

/// A serialized molecule before it is checked.
#[derive(Serialize, Deserialize)]
struct Unchecked {
    atoms: Vec<Atom>,
    charge: i32,
}

impl TryFrom<Unchecked> for Molecule {
    type Error = MoleculeError;

    fn try_from(raw: Unchecked) -> Result<Self, MoleculeError> {
        Self::new(raw.atoms, raw.charge)
    }
}

impl From<Molecule> for Unchecked {
    fn from(molecule: Molecule) -> Self {
        Self {
            atoms: molecule.atoms,
            charge: molecule.charge,
        }
    }
}

impl Molecule {
    /// A molecule of these atoms with this charge.
    ///
    /// # Errors
    /// No atoms, a coordinate that is not finite or beyond [`FARTHEST`], two atoms nearer
    /// than [`LEAST_DISTANCE`], or a charge that leaves no electrons. (An odd number of
    /// electrons is an error of [`Molecule::electron_pairs`] only.)
    pub fn new(atoms: Vec<Atom>, charge: i32) -> Result<Self, MoleculeError> {
        if atoms.is_empty() {
            return Err(MoleculeError::NoAtoms);
        }
        check_positions(&atoms)?;
        let molecule = Self { atoms, charge };
        if molecule.electrons() <= 0 {
            return Err(MoleculeError::NoElectrons {
                charge,
                nuclear: molecule.nuclear_charge(),
            });
        }
        Ok(molecule)
    }

    /// The atoms, in the order of the file.
    #[must_use]
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// The charge in units of the elementary charge.
    #[must_use]
    pub fn charge(&self) -> i32 {
        self.charge
    }

    /// This molecule with another charge.
    ///
    /// # Errors
    /// As [`Molecule::new`].
    pub fn with_charge(&self, charge: i32) -> Result<Self, MoleculeError> {
        Self::new(self.atoms.clone(), charge)
    }

    /// The sum of the atomic numbers.
    #[must_use]
    pub fn nuclear_charge(&self) -> i64 {
        self.atoms
            .iter()
            .map(|atom| i64::from(atom.element.atomic_number()))
            .sum()
    }

    /// The number of electrons; at least 1.
    #[must_use]
    pub fn electrons(&self) -> i64 {
        self.nuclear_charge() - i64::from(self.charge)
    }

    /// The number of doubly occupied orbitals of a closed shell.
    ///
    /// # Errors
    /// [`MoleculeError::OddElectrons`] when the electrons do not pair up.
    pub fn electron_pairs(&self) -> Result<usize, MoleculeError> {
        let electrons = self.electrons();
        match usize::try_from(electrons / 2) {
            Ok(pairs) if electrons % 2 == 0 => Ok(pairs),
            _ => Err(MoleculeError::OddElectrons {
                electrons,
                charge: self.charge,
            }),
        }
    }

    /// The positions of the atoms in bohr.
    #[must_use]
    pub fn positions_bohr(&self) -> Vec<[f64; 3]> {
        self.atoms
            .iter()
            .map(|atom| atom.position.map(|x| x / ANGSTROM_PER_BOHR))
            .collect()
    }

    /// The repulsion of the nuclei in hartree.
    #[must_use]
    pub fn nuclear_repulsion(&self) -> f64 {
        let places = self.positions_bohr();
        let mut sum = 0.0;
        for (i, first) in self.atoms.iter().enumerate() {
            for (j, second) in self.atoms.iter().enumerate().take(i) {
                let charges = f64::from(first.element.atomic_number())
                    * f64::from(second.element.atomic_number());
                sum += charges / geometry::distance(places[i], places[j]);
            }
        }
        sum
    }
}

fn check_positions(atoms: &[Atom]) -> Result<(), MoleculeError> {
    for (i, atom) in atoms.iter().enumerate() {
        // Written so that a NaN, which is in no order with anything, is caught too.
        if !atom.position.iter().all(|x| x.abs() <= FARTHEST) {
            return Err(MoleculeError::FarAway {
                atom: i + 1,
                limit: FARTHEST,
            });
        }
        for (j, other) in atoms.iter().enumerate().take(i) {
            let distance = geometry::distance(atom.position, other.position);
            if distance < LEAST_DISTANCE {
                return Err(MoleculeError::OnTop {
                    first: j + 1,
                    second: i + 1,
                    distance,
                    least: LEAST_DISTANCE,
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATER: &str = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n";

    #[test]
    fn electrons_and_charge() {
        let water = Molecule::from_xyz(WATER, 0).unwrap();
        assert_eq!(water.electrons(), 10);
        assert_eq!(water.electron_pairs().unwrap(), 5);
        let odd = water.with_charge(1).unwrap().electron_pairs().unwrap_err();
        assert!(
            odd.to_string()
                .contains("odd number of electrons (9) with the charge 1")
        );
        assert!(matches!(
            water.with_charge(10),
            Err(MoleculeError::NoElectrons { .. })
        ));
        assert!(water.with_charge(i32::MIN).is_ok());
        assert!(matches!(
            water.with_charge(i32::MAX),
            Err(MoleculeError::NoElectrons { .. })
        ));
    }

    #[test]
    fn nuclear_repulsion_of_hydrogen_at_one_bohr() {
        let text = format!("2\n\nH 0 0 0\nH 0 0 {ANGSTROM_PER_BOHR}\n");
        let hydrogen = Molecule::from_xyz(&text, 0).unwrap();
        assert!((hydrogen.nuclear_repulsion() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn a_saved_molecule_is_checked_when_loaded() {
        let water = Molecule::from_xyz(WATER, 0).unwrap();
        let text = serde_json::to_string(&water).unwrap();
        assert_eq!(serde_json::from_str::<Molecule>(&text).unwrap(), water);
        let bad = text.replace("0.7572", "0.0").replace("-0.4692", "0.1173");
        assert!(serde_json::from_str::<Molecule>(&bad).is_err());
    }
}
