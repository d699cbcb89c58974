//! How the next Fock matrix is made from those before: the convergence method.
//!
//! Diagonalizing each Fock matrix as it comes often oscillates. Each method here is a pure
//! function of the [`History`], so that going on from a saved history gives the same bits,
//! and one method can stand in for another.

use super::linalg::{eigen, product, product_of_transposed};
use super::{ScfError, ediis};
use crate::matrix::Matrix;
use sde::Fingerprint;
use serde::{Deserialize, Serialize};

/// The last iterations, oldest first, at most [`History::DEPTH`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Fingerprint)]
pub struct History {
    iterations: u64,
    energies: Vec<f64>,
    densities: Vec<Matrix>,
    focks: Vec<Matrix>,
    errors: Vec<Matrix>,
    occupied: Matrix,
}

/// The matrices and the energy of one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Iterate {
    /// The energy of the density in hartree.
    pub energy: f64,
    /// The density.
    pub density: Matrix,
    /// Its Fock matrix.
    pub fock: Matrix,
    /// The error FDS - SDF.
    pub error: Matrix,
    /// SDS, twice the projector on the occupied orbitals.
    pub occupied: Matrix,
}

impl History {
    /// The number of iterations that are kept.
    pub const DEPTH: usize = 8;

    /// Adds an iteration, and forgets the oldest of too many.
    pub fn push(&mut self, iterate: Iterate) {
        if self.focks.len() == Self::DEPTH {
            self.energies.remove(0);
            self.densities.remove(0);
            self.focks.remove(0);
            self.errors.remove(0);
        }
        self.iterations += 1;
        self.energies.push(iterate.energy);
        self.densities.push(iterate.density);
        self.focks.push(iterate.fock);
        self.errors.push(iterate.error);
        self.occupied = iterate.occupied;
    }

    /// The number of iterations that there were, forgotten ones included.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// The Fock matrices, oldest first.
    #[must_use]
    pub fn focks(&self) -> &[Matrix] {
        &self.focks
    }

    /// Their errors, the commutators FDS - SDF.
    #[must_use]
    pub fn errors(&self) -> &[Matrix] {
        &self.errors
    }

    /// Whether the last iteration is not near a solution yet: its energy rises, or its error is above `near`.
    fn is_lost(&self, near: f64) -> bool {
        let lowest = self.energies.iter().copied().fold(f64::INFINITY, f64::min);
        let rises = self
            .energies
            .last()
            .is_some_and(|last| *last > lowest + 1e-6);
        let far = self.errors.last().is_some_and(|last| last.max_abs() > near);
        rises || far
    }
}

/// The number of iterations after which [`diis`] tries the next way, if it has not settled.
pub const PATIENCE: u64 = 30;

/// The energy by which the occupied orbitals are lowered where all else fails, in hartree.
const LEVEL_SHIFT: f64 = 0.5;

/// The mixture of the earlier Fock matrices with the smallest mixed error.
///
/// Nearly always this settles within [`PATIENCE`] iterations. Where it does not, the next
/// [`PATIENCE`] take the mixture of the lowest energy (EDIIS). Later ones take the last
/// Fock matrix with its occupied orbitals lowered, which keeps them occupied and goes
/// downhill slowly. Both only apply while the error is large (above 1e-3 and 1e-2) or the energy rises.
///
/// P. Pulay, J. Comput. Chem. 3 (1982) 556; V. R. Saunders, I. H. Hillier, Int. J. Quantum
/// Chem. 7 (1973) 699.
///
/// # Errors
/// [`ScfError::NoHistory`] when there is none yet.
pub fn diis(history: &History) -> Result<Matrix, ScfError> {
    let focks = &history.focks;
    match history.iterations / PATIENCE {
        1 if history.is_lost(1e-3) => {
            let weights = ediis::weights(&history.energies, &history.densities, focks);
            mixture(focks, &weights)
        }
        2.. if history.is_lost(1e-2) => {
            let mut shifted = damped(history, 0.0)?;
            shifted.add_scaled(-0.5 * LEVEL_SHIFT, &history.occupied);
            Ok(shifted)
        }
        _ => mixture(focks, &diis_weights(&history.errors)?),
    }
}

/// The last Fock matrix with a share `keep` of the one diagonalized before, and so on back
/// through the history. `keep` is taken into the range from 0 to 0.99.
///
/// # Errors
/// [`ScfError::NoHistory`] when there is none yet.
pub fn damped(history: &History, keep: f64) -> Result<Matrix, ScfError> {
    let keep = if keep.is_nan() {
        0.0
    } else {
        keep.clamp(0.0, 0.99)
    };
    let mut weights = vec![0.0; history.focks.len()];
    let mut rest = 1.0;
    for (age, weight) in weights.iter_mut().rev().enumerate() {
        let oldest = age + 1 == history.focks.len();
        *weight = if oldest { rest } else { rest * (1.0 - keep) };
        rest -= *weight;
    }
    mixture(&history.focks, &weights)
}

fn mixture(focks: &[Matrix], weights: &[f64]) -> Result<Matrix, ScfError> {
    let last = focks.last().ok_or(ScfError::NoHistory)?;
    let mut mixed = Matrix::zeros(last.rows(), last.columns());
    for (fock, weight) in focks.iter().zip(weights) {
        mixed.add_scaled(*weight, fock);
    }
    Ok(mixed)
}

/// Solves Pulay's equations, the least square of Σ w e under Σ w = 1, by eigenvalues.
///
/// Near convergence the errors are nearly dependent and differ by many orders of magnitude.
/// So each is scaled to length one first. The wanted mixture has an error of zero up to
/// rounding; its square counts as 1e-13 at least, since its true size can't be known.
fn diis_weights(errors: &[Matrix]) -> Result<Vec<f64>, ScfError> {
    let count = errors.len();
    let lengths: Vec<f64> = errors.iter().map(|e| e.dot(e).sqrt()).collect();
    // An error of exactly zero is the solution.
    if let Some(solved) = lengths.iter().rposition(|&length| length == 0.0) {
        return Ok((0..count)
            .map(|i| f64::from(u8::from(i == solved)))
            .collect());
    }
    let angles = Matrix::from_fn(count, count, |i, j| {
        errors[i].dot(&errors[j]) / (lengths[i] * lengths[j])
    });
    let (values, vectors) = eigen(&angles)?;
    // With w = u / length, minimize uᵀ A u under Σ u / length = 1: u is A⁻¹ (1 / length).
    let ones = Matrix::from_fn(count, 1, |i, _| lengths[count - 1] / lengths[i]);
    let mut turned = product_of_transposed(&vectors, &ones);
    for (x, value) in turned.values_mut().iter_mut().zip(&values) {
        *x /= value.max(1e-13);
    }
    let scaled = product(&vectors, &turned);
    let raw: Vec<f64> = (0..count)
        .map(|i| scaled[(i, 0)] * lengths[count - 1] / lengths[i])
        .collect();
    let sum: f64 = raw.iter().sum();
    Ok(raw.iter().map(|w| w / sum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(errors: &[[f64; 2]]) -> History {
        let mut history = History::default();
        for (n, e) in errors.iter().enumerate() {
            history.push(Iterate {
                energy: 0.0,
                density: Matrix::zeros(1, 1),
                fock: Matrix::from_fn(1, 1, |_, _| n as f64),
                error: Matrix::from_fn(1, 2, |_, j| e[j]),
                occupied: Matrix::zeros(1, 1),
            });
        }
        history
    }

    #[test]
    fn diis_finds_the_zero_of_opposite_errors() {
        // w0 (1, 0) + w1 (-3, 0) = 0 with w0 + w1 = 1: w1 = 1/4.
        let mixed = diis(&history(&[[1.0, 0.0], [-3.0, 0.0]])).unwrap();
        // A singular problem: the two errors are parallel.
        assert!((mixed[(0, 0)] - 0.25).abs() < 1e-6, "{}", mixed[(0, 0)]);
        let mixed = diis(&history(&[[1.0, 0.0], [0.0, 1.0]])).unwrap();
        assert!((mixed[(0, 0)] - 0.5).abs() < 1e-12);
        let mixed = diis(&history(&[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])).unwrap();
        assert_eq!(mixed[(0, 0)], 1.0);
        assert_eq!(diis(&History::default()), Err(ScfError::NoHistory));
    }

    #[test]
    fn damping_is_the_recursion_unrolled() {
        let history = history(&[[1.0, 0.0]; 4]);
        let mut effective = 0.0;
        for fock in 1..4 {
            effective = 0.7 * f64::from(fock) + 0.3 * effective;
        }
        assert!((damped(&history, 0.3).unwrap()[(0, 0)] - effective).abs() < 1e-14);
        assert_eq!(damped(&history, 0.0).unwrap()[(0, 0)], 3.0);
    }

    #[test]
    fn the_history_is_bounded() {
        let history = history(&[[1.0, 0.0]; 20]);
        assert_eq!(history.focks().len(), History::DEPTH);
        assert_eq!(history.focks()[0][(0, 0)], 12.0);
    }
}
