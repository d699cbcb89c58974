//! Programs on real input that show what SDE does. The tests run them as a person would.
//!
//! | program | shows |
//! |---|---|
//! | `first_steps` | a function that is remembered, in twenty lines |
//! | `water_scan` | Hartree-Fock energies along a bond or angle, saved and taken up again |
//!
//! Run one with `cargo run --release -p sde-examples --example NAME`.

#![forbid(unsafe_code)]
