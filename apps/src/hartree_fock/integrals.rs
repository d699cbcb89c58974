//! The integrals, each kind an app of its own.

use crate::basis::MolecularBasis;
use crate::integrals::{self, DEFAULT_MEMORY_LIMIT, IntegralError, Repulsion};
use crate::matrix::Matrix;
use crate::molecule::Molecule;

/// The overlap of the basis functions.
#[sde::app(name = "Overlap", version = "1", tags(intermediate))]
pub fn overlap(basis: &MolecularBasis) -> Matrix {
    integrals::overlap(basis)
}

/// The kinetic energy integrals, in hartree.
#[sde::app(name = "Kinetic", version = "1", tags(intermediate))]
pub fn kinetic(basis: &MolecularBasis) -> Matrix {
    integrals::kinetic(basis)
}

/// The attraction of one electron by all nuclei, in hartree.
#[sde::app(name = "NuclearAttraction", version = "1", tags(intermediate))]
pub fn nuclear_attraction(basis: &MolecularBasis, molecule: &Molecule) -> Matrix {
    integrals::nuclear_attraction(basis, molecule)
}

/// The repulsion of two electrons, in hartree: the bulk of the work and of the
/// memory.
#[sde::app(name = "ElectronRepulsion", version = "2", tags(intermediate))]
pub fn electron_repulsion(basis: &MolecularBasis) -> Result<Repulsion, IntegralError> {
    Repulsion::compute(basis, DEFAULT_MEMORY_LIMIT)
}

/// The dipole integrals in x, y and z, about the origin, in bohr.
#[sde::app(name = "DipoleIntegrals", version = "1", tags(intermediate))]
pub fn dipole_integrals(basis: &MolecularBasis) -> [Matrix; 3] {
    integrals::dipole(basis)
}
