//! A whole calculation in one call, for those who need nothing remembered.

use super::{Accelerator, Convergence, DipoleMoment, ScfError, ScfState, System, guess, step};
use crate::basis::{BasisError, MolecularBasis};
use crate::integrals::{
    DEFAULT_MEMORY_LIMIT, IntegralError, Repulsion, dipole, kinetic, nuclear_attraction, overlap,
};
use crate::molecule::{Molecule, MoleculeError};
use serde::{Deserialize, Serialize};

/// Why a calculation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RhfError {
    /// The molecule is not one for restricted Hartree-Fock.
    #[error(transparent)]
    Molecule(#[from] MoleculeError),
    /// The basis set has a fault.
    #[error(transparent)]
    Basis(#[from] BasisError),
    /// The integrals could not be computed.
    #[error(transparent)]
    Integrals(#[from] IntegralError),
    /// The iterations failed.
    #[error(transparent)]
    Scf(#[from] ScfError),
}

/// What a calculation gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rhf {
    /// The total energy in hartree.
    pub energy: f64,
    /// The dipole moment.
    pub dipole: DipoleMoment,
    /// The last state of the iterations, with density and orbitals.
    pub state: ScfState,
}

/// Restricted Hartree-Fock of a molecule, on the threads of the current rayon pool.
///
/// # Errors
/// An odd number of electrons, too little memory, or iterations that do not converge.
///
/// ```
/// use sde_apps::{basis::{BasisSet, Harmonics}, molecule::Molecule, scf::{self, Accelerator}};
/// let water = Molecule::from_xyz("3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692", 0)?;
/// let basis = BasisSet::named("STO-3G")?.on(&water, Harmonics::Published)?;
/// let result = scf::rhf(&water, &basis, &Default::default(), Accelerator::Diis)?;
/// assert!((result.energy + 74.963023163).abs() < 1e-8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rhf(
    molecule: &Molecule,
    basis: &MolecularBasis,
    convergence: &Convergence,
    accelerator: Accelerator,
) -> Result<Rhf, RhfError> {
    let pairs = molecule.electron_pairs()?;
    let overlap = overlap(basis);
    let mut core = kinetic(basis);
    core.add_scaled(1.0, &nuclear_attraction(basis, molecule));
    let repulsion = Repulsion::compute(basis, DEFAULT_MEMORY_LIMIT)?;
    let nuclear = molecule.nuclear_repulsion();
    let system = System::new(&overlap, &core, &repulsion, pairs, nuclear)?;
    let mut state = ScfState::start(&system, &guess::atoms(basis, molecule)?)?;
    while !state.converged {
        state = step(&system, convergence, &state, |history| {
            accelerator.next(history)
        })?;
    }
    Ok(Rhf {
        energy: state.energy,
        dipole: DipoleMoment::new(molecule, &dipole(basis), &state.density),
        state,
    })
}
