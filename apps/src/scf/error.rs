//! Errors of the self-consistent field.

/// Why a self-consistent field could not be computed.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScfError {
    /// The iterations have not settled.
    #[error(
        "the self-consistent field has not converged after {iterations} iterations: the energy is {energy:.9} \
         hartree, changed last by {change:.1e}, with a largest error of {error:.1e}; allow more iterations, damp \
         them, or check the geometry (bonds stretched far are hard for restricted Hartree-Fock)"
    )]
    NotConverged {
        /// Iterations done.
        iterations: usize,
        /// The last energy in hartree.
        energy: f64,
        /// Its last change in hartree.
        change: f64,
        /// The largest element of the last error matrix.
        error: f64,
    },
    /// More electrons than the functions can hold.
    #[error(
        "{pairs} pairs of electrons do not fit into {orbitals} independent functions; take a larger basis set \
         or another charge"
    )]
    TooFewFunctions {
        /// Pairs of electrons.
        pairs: usize,
        /// Linearly independent functions.
        orbitals: usize,
    },
    /// Matrices that do not belong together.
    #[error(
        "the {what} is of {found} functions where {expected} are expected; give integrals of one basis"
    )]
    Shape {
        /// Which matrix.
        what: &'static str,
        /// Its functions.
        found: usize,
        /// The functions of the others.
        expected: usize,
    },
    /// A number became infinite or undefined.
    #[error("a matrix has elements that are not finite; check the geometry and the basis set")]
    NotFinite,
    /// The eigenvalue solver gave up.
    #[error(
        "the eigenvalues of a matrix of {size} rows did not converge; change the geometry a little"
    )]
    Eigenvalues {
        /// Rows.
        size: usize,
    },
    /// There is nothing to extrapolate from.
    #[error("the history of the iterations is empty; put one Fock matrix into it first")]
    NoHistory,
}

sde::debug_as_said!(ScfError);
