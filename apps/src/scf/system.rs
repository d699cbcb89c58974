//! The data that stay the same through the iterations.

use super::linalg::{congruent, eigen, product, product_with_transposed};
use super::{ScfError, coulomb_exchange};
use crate::integrals::Repulsion;
use crate::matrix::Matrix;

/// Functions whose overlap has eigenvalues below this are nearly combinations of others;
/// the directions of these eigenvalues are left out.
pub const LINEAR_DEPENDENCE: f64 = 1e-8;

/// The integrals of a molecule, ready for iterations.
#[derive(Clone, Debug)]
pub struct System<'a> {
    overlap: &'a Matrix,
    core: &'a Matrix,
    repulsion: &'a Repulsion,
    orthogonalizer: Matrix,
    electron_pairs: usize,
    nuclear_repulsion: f64,
}

/// Orbitals, as a Fock matrix gives them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Orbitals {
    /// In hartree, rising.
    pub(super) energies: Vec<f64>,
    /// One orbital a column.
    pub(super) coefficients: Matrix,
}

impl<'a> System<'a> {
    /// Puts together the overlap, the core Hamiltonian (kinetic energy and nuclear
    /// attraction), the repulsion integrals, the number of doubly occupied orbitals and
    /// the repulsion of the nuclei.
    ///
    /// # Errors
    /// [`ScfError::Shape`] for integrals of different bases, [`ScfError::TooFewFunctions`]
    /// when the electrons do not fit.
    pub fn new(
        overlap: &'a Matrix,
        core: &'a Matrix,
        repulsion: &'a Repulsion,
        electron_pairs: usize,
        nuclear_repulsion: f64,
    ) -> Result<Self, ScfError> {
        let expected = repulsion.functions();
        check_shape("overlap matrix", overlap, expected)?;
        check_shape("core Hamiltonian", core, expected)?;
        let orthogonalizer = orthogonalizer(overlap)?;
        if electron_pairs > orthogonalizer.columns() {
            return Err(ScfError::TooFewFunctions {
                pairs: electron_pairs,
                orbitals: orthogonalizer.columns(),
            });
        }
        Ok(Self {
            overlap,
            core,
            repulsion,
            orthogonalizer,
            electron_pairs,
            nuclear_repulsion,
        })
    }

    /// The number of functions.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.overlap.rows()
    }

    /// The number of orbitals: of functions without linear dependence.
    #[must_use]
    pub fn orbitals(&self) -> usize {
        self.orthogonalizer.columns()
    }

    /// The number of orbitals that are filled.
    pub(super) fn electron_pairs(&self) -> usize {
        self.electron_pairs
    }

    /// The overlap of the functions.
    #[must_use]
    pub fn overlap(&self) -> &Matrix {
        self.overlap
    }

    /// The core Hamiltonian.
    #[must_use]
    pub fn core(&self) -> &Matrix {
        self.core
    }

    /// The Fock matrix of a density: core + J - K/2.
    ///
    /// # Errors
    /// [`ScfError::Shape`] for a density of another basis.
    pub fn fock(&self, density: &Matrix) -> Result<Matrix, ScfError> {
        check_shape("density", density, self.functions())?;
        let (coulomb, exchange) = coulomb_exchange(self.repulsion, density);
        let mut fock = self.core.clone();
        fock.add_scaled(1.0, &coulomb);
        fock.add_scaled(-0.5, &exchange);
        Ok(fock)
    }

    /// The total energy of a density and its Fock matrix, with the repulsion of the nuclei.
    #[must_use]
    pub fn energy(&self, density: &Matrix, fock: &Matrix) -> f64 {
        0.5 * (density.dot(self.core) + density.dot(fock)) + self.nuclear_repulsion
    }

    /// How far a density is from solving its own equations: FDS - SDF among orthogonal
    /// functions, which is zero at the solution.
    pub(super) fn error(&self, density: &Matrix, fock: &Matrix) -> Matrix {
        let fds = product(&product(fock, density), self.overlap);
        let commutator =
            Matrix::from_fn(fds.rows(), fds.columns(), |i, j| fds[(i, j)] - fds[(j, i)]);
        congruent(&self.orthogonalizer, &commutator)
    }

    /// The orbitals of a Fock matrix.
    pub(super) fn solve(&self, fock: &Matrix) -> Result<Orbitals, ScfError> {
        let (energies, vectors) = eigen(&congruent(&self.orthogonalizer, fock))?;
        Ok(Orbitals {
            energies,
            coefficients: product(&self.orthogonalizer, &vectors),
        })
    }

    /// The density of the lowest orbitals, each with two electrons.
    pub(super) fn density(&self, orbitals: &Orbitals) -> Matrix {
        let all = &orbitals.coefficients;
        let occupied = Matrix::from_fn(all.rows(), self.electron_pairs, |i, j| all[(i, j)]);
        let mut density = product_with_transposed(&occupied, &occupied);
        density.values_mut().iter_mut().for_each(|x| *x *= 2.0);
        density
    }
}

/// Combinations of the functions that are orthonormal, one a column (canonical orthogonalization).
pub(super) fn orthogonalizer(overlap: &Matrix) -> Result<Matrix, ScfError> {
    let (values, vectors) = eigen(overlap)?;
    let skip = values.iter().filter(|&&s| s < LINEAR_DEPENDENCE).count();
    Ok(Matrix::from_fn(
        vectors.rows(),
        values.len() - skip,
        |i, j| vectors[(i, skip + j)] / values[skip + j].sqrt(),
    ))
}

fn check_shape(what: &'static str, matrix: &Matrix, expected: usize) -> Result<(), ScfError> {
    for found in [matrix.rows(), matrix.columns()] {
        if found != expected {
            return Err(ScfError::Shape {
                what,
                found,
                expected,
            });
        }
    }
    Ok(())
}
