//! Programs on real input that show what SDE does. The tests run them as a person would.
//!
//! | program | shows |
//! |---|---|
//! | `sweep` | a sweep that is computed once, in twenty lines: the program of the README |
//! | `water_scan` | Hartree-Fock energies along a bond or angle, saved and taken up again |
//!
//! Run one with `cargo run --release -p sde-examples --example NAME`.

#![forbid(unsafe_code)]
