//! Units of measurement.
//!
//! Files give lengths in ångström; everything computed is in atomic units. The factor
//! decides the last digits of an energy: with another one in the tenth digit the energy
//! moves by some 1e-9 hartree, so it is the value that PySCF uses.

/// One bohr in ångström (CODATA 2010, as in PySCF).
pub const ANGSTROM_PER_BOHR: f64 = 0.529_177_210_92;

/// One atomic unit of dipole moment (e·bohr) in debye.
pub const DEBYE_PER_ATOMIC_UNIT: f64 = 2.541_746_415_744_903;
