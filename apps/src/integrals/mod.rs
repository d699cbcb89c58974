//! Integrals over the functions of a [`MolecularBasis`](crate::basis::MolecularBasis).
//!
//! Everything Hartree-Fock needs to know of the functions is in these numbers, in atomic
//! units: [`overlap`], [`kinetic`], [`nuclear_attraction`], [`dipole`] and the electron
//! [`Repulsion`]. The scheme is McMurchie and Davidson's; functions up to l = 6.

mod boys;
mod hermite;
mod nuclear;
mod one_electron;
mod pairs;
mod repulsion;

pub use nuclear::nuclear_attraction;
pub use one_electron::{dipole, kinetic, overlap};
pub(crate) use repulsion::triangle;
pub use repulsion::{DEFAULT_MEMORY_LIMIT, NEGLIGIBLE, Repulsion};

/// Why integrals could not be computed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntegralError {
    /// The repulsion integrals do not fit.
    #[error(
        "the repulsion integrals of {functions} functions need {} MB and {} MB are allowed or there; take \
         a smaller basis set or molecule, or raise the limit", bytes.div_ceil(1_000_000), limit / 1_000_000
    )]
    Memory {
        /// The number of functions.
        functions: usize,
        /// The bytes they need.
        bytes: u128,
        /// The bytes allowed.
        limit: u64,
    },
    /// The number of integrals does not fit the number of functions.
    #[error("{values} repulsion integrals can't be those of {functions} functions")]
    Count {
        /// The number of functions.
        functions: usize,
        /// The number of integrals.
        values: usize,
    },
}

sde::debug_as_said!(IntegralError);
