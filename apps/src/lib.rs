//! Apps people reuse: molecules, basis sets, integrals, Hartree-Fock
