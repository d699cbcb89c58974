//! The dipole moment.

use crate::matrix::Matrix;
use crate::molecule::Molecule;
use crate::units::DEBYE_PER_ATOMIC_UNIT;
use serde::{Deserialize, Serialize};

/// A dipole moment.
///
/// It is taken about the origin of the molecule's coordinates, which matters for ions only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DipoleMoment {
    /// Its components in atomic units (e·bohr), from the negative to the positive charge.
    pub atomic_units: [f64; 3],
}

impl DipoleMoment {
    /// The moment of the nuclei of `molecule` and electrons of this density; `integrals` are
    /// those of [`crate::integrals::dipole`].
    #[must_use]
    pub fn new(molecule: &Molecule, integrals: &[Matrix; 3], density: &Matrix) -> Self {
        let places = molecule.positions_bohr();
        let atomic_units = std::array::from_fn(|axis| {
            let nuclei: f64 = molecule
                .atoms()
                .iter()
                .zip(&places)
                .map(|(atom, place)| f64::from(atom.element.atomic_number()) * place[axis])
                .sum();
            nuclei - integrals[axis].dot(density)
        });
        Self { atomic_units }
    }

    /// Its components in debye.
    #[must_use]
    pub fn debye(&self) -> [f64; 3] {
        self.atomic_units.map(|x| x * DEBYE_PER_ATOMIC_UNIT)
    }

    /// Its size in debye.
    #[must_use]
    pub fn magnitude_debye(&self) -> f64 {
        self.debye().iter().map(|x| x * x).sum::<f64>().sqrt()
    }
}
