//! Apps people reuse: molecules, basis sets, integrals, Hartree-Fock
//!
//! The numerics stand on their own, as plain functions on plain data:
//!
//! - [`molecule`]: atoms, charges, XYZ files, scans of a bond length or angle;
//! - [`basis`]: published basis sets by name, and the functions they put on a molecule;
//! - [`integrals`]: overlap, kinetic energy, nuclear attraction, dipole, electron repulsion;
//! - [`scf`]: the self-consistent field, its iterations as states that can be saved;
//! - [`matrix`]: the plain matrices all this is kept in.
//!
//! [`hartree_fock`] makes apps of them, whose results are remembered.

#![forbid(unsafe_code)]

pub mod basis;
pub mod hartree_fock;
pub mod integrals;
pub mod matrix;
pub mod molecule;
pub mod scf;
mod text;
pub mod units;
