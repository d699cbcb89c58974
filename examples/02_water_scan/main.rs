//! Restricted Hartree-Fock energies of a molecule along a bond length or angle.
//!
//! With `--store DIR` every point is saved as soon as it is computed: run twice, it
//! computes nothing; killed half-way, it goes on from where it was.

#[path = "program.rs"]
mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main(|builder| builder, true)
}
