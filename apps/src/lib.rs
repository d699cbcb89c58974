//! Apps people reuse: molecules, basis sets, integrals, Hartree-Fock
//!
//! The numerics stand on their own, as plain functions on plain data:
//!
//! - [`molecule`]: atoms, charges, XYZ files, scans of a bond length or angle;
//! - [`basis`]: published basis sets by name, and the functions they put on a molecule;
//! - [`integrals`]: overlap, kinetic energy, nuclear attraction, dipole, electron repulsion;
//! - [`matrix`]: the plain matrices all this is kept in.

pub mod basis;
pub mod integrals;
pub mod matrix;
pub mod molecule;
mod text;
pub mod units;
