//! The convergence methods: apps that make the next Fock matrix from the earlier ones.
//!
//! Each takes `history` (a [`History`]) and returns `result` (a [`Matrix`]), which is
//! not kept: each history occurs only once.

use sde::{AppError, AppInfo, ConfiguredApp, Handle, Inputs, ResultMap, ResultSpec, Tag};

use crate::matrix::Matrix;
use crate::scf::{self, History, ScfError};

/// Pulay's direct inversion in the iterative subspace (DIIS); where that does not settle, the mixture of
/// the lowest energy (EDIIS), and at last the filled orbitals lowered (a level shift).
#[sde::app(
    name = "Diis",
    version = "2",
    tags(no_cache),
    about = "Fock matrices mixed by DIIS; where that does not settle by EDIIS, then with a level shift",
    citation = "P. Pulay, J. Comput. Chem. 3, 556 (1982)",
    citation = "K. N. Kudin, G. E. Scuseria, E. Cancès, J. Chem. Phys. 116, 8255 (2002)",
    citation = "V. R. Saunders, I. H. Hillier, Int. J. Quantum Chem. 7, 699 (1973)"
)]
pub fn diis(history: &History) -> Result<Matrix, ScfError> {
    scf::diis(history)
}

/// A share of the former Fock matrix stays in each: slow, and hard to upset.
#[derive(Clone, Copy, Debug, sde::Settings)]
pub struct Damped {
    /// The share of the former matrix that stays, from 0 to less than 1.
    #[setting(default = 0.5, check = share)]
    keep: f64,
}

impl ConfiguredApp for Damped {
    fn info() -> AppInfo {
        AppInfo::new("Damped", "1")
            .about("Fock matrices mixed with those before")
            .input::<History>("history")
            .result(ResultSpec::new::<Matrix>("result").tagged(Tag::NoCache))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let mixed = scf::damped(inputs.get::<History>("history")?, self.keep)?;
        Ok(ResultMap::new().with("result", mixed))
    }
}

fn share(keep: &f64) -> Result<(), String> {
    match (0.0..1.0).contains(keep) {
        true => Ok(()),
        false => Err("it must be at least 0 and less than 1".to_owned()),
    }
}
