//! Restricted Hartree-Fock: the self-consistent field of a closed shell.
//!
//! The electrons move in the field of the nuclei and of their own mean density. From a
//! guessed density ([`guess`]) each [`step`] computes that field (the Fock matrix), its energy
//! and how far it is from consistency, lets a convergence method ([`diis`], [`damped`]) make a
//! better matrix of all so far, and takes the density of its lowest orbitals.
//!
//! [`ScfState`] has all data of an iteration, and a step is a pure function of it and
//! the integrals ([`System`]). So the state can be saved anywhere, and the convergence method
//! exchanged. The app [`Rhf`](crate::hartree_fock::Rhf) does everything in one call.

mod accelerate;
mod degenerate;
mod dipole;
mod ediis;
mod error;
mod fock;
pub mod guess;
mod linalg;
mod state;
mod system;

pub use accelerate::{History, Iterate, PATIENCE, damped, diis};
pub use dipole::DipoleMoment;
pub use error::ScfError;
pub use fock::coulomb_exchange;
pub use state::{Convergence, ScfState, step};
pub use system::{LINEAR_DEPENDENCE, System};
