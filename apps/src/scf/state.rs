//! The state of the iterations, and one step of them.

use super::linalg::congruent;
use super::{History, Iterate, ScfError, System, degenerate};
use crate::matrix::Matrix;
use sde::Fingerprint;
use serde::{Deserialize, Serialize};

/// When the iterations stop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Fingerprint)]
pub struct Convergence {
    /// The largest change of the energy in hartree.
    pub energy: f64,
    /// The largest element of the error FDS - SDF, in hartree. The energy is off by about its
    /// square.
    pub error: f64,
    /// The iterations allowed.
    pub iterations: usize,
}

impl Default for Convergence {
    /// 1e-9 hartree, 1e-7 and 200 iterations.
    fn default() -> Self {
        Self {
            energy: 1e-9,
            error: 1e-7,
            iterations: 200,
        }
    }
}

/// All data between two iterations.
///
/// Saved, loaded and gone on from, it ends in the same bits as a calculation that was never
/// interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScfState {
    /// Iterations done.
    pub iteration: usize,
    /// The density matrix, two electrons an orbital.
    pub density: Matrix,
    /// The orbitals that gave this density, one a column, by rising energy.
    pub orbitals: Matrix,
    /// The energies of these orbitals in hartree.
    #[serde(with = "sde::bulk")]
    pub orbital_energies: Vec<f64>,
    /// The total energy in hartree at the last iteration; infinite before the first.
    pub energy: f64,
    /// By how much the last iteration changed it.
    pub energy_change: f64,
    /// The largest element of the last error matrix.
    pub error: f64,
    /// The matrices the convergence method works with.
    pub history: History,
    /// Whether the iterations have ended.
    pub converged: bool,
}

impl ScfState {
    /// The state before the first iteration: the orbitals in the field of a guessed density;
    /// of several choices of orbitals to fill, the one of the lowest energy.
    ///
    /// # Errors
    /// A density of another basis, or matrices that are not finite.
    pub fn start(system: &System, guess: &Matrix) -> Result<Self, ScfError> {
        let orbitals = degenerate::choose(system, system.solve(&system.fock(guess)?)?)?;
        Ok(Self {
            iteration: 0,
            density: system.density(&orbitals),
            orbitals: orbitals.coefficients,
            orbital_energies: orbitals.energies,
            energy: f64::INFINITY,
            energy_change: f64::INFINITY,
            error: f64::INFINITY,
            history: History::default(),
            converged: false,
        })
    }
}

/// One iteration: the Fock matrix of the density, its energy and error, and unless these have
/// settled the next orbitals, from the matrix that `accelerate` makes of the history.
///
/// A converged state is returned as it is.
///
/// # Errors
/// Those of `accelerate`, and [`ScfError::NotConverged`] when no iterations are left.
pub fn step<E: From<ScfError>>(
    system: &System,
    convergence: &Convergence,
    state: &ScfState,
    accelerate: impl FnOnce(&History) -> Result<Matrix, E>,
) -> Result<ScfState, E> {
    if state.converged {
        return Ok(state.clone());
    }
    if state.iteration >= convergence.iterations {
        return Err(not_converged(state).into());
    }
    let fock = system.fock(&state.density)?;
    let error = system.error(&state.density, &fock);
    let mut next = state.clone();
    next.iteration += 1;
    next.energy = system.energy(&state.density, &fock);
    next.energy_change = next.energy - state.energy;
    next.error = error.max_abs();
    next.converged =
        next.energy_change.abs() <= convergence.energy && next.error <= convergence.error;
    next.history.push(Iterate {
        energy: next.energy,
        density: state.density.clone(),
        fock: fock.clone(),
        error,
        occupied: congruent(system.overlap(), &state.density),
    });
    // The orbitals of a solution are those of its own Fock matrix, without extrapolation.
    let solved = if next.converged {
        system.solve(&fock)?
    } else {
        system.solve(&accelerate(&next.history)?)?
    };
    if !next.converged {
        next.density = system.density(&solved);
    }
    next.orbitals = solved.coefficients;
    next.orbital_energies = solved.energies;
    Ok(next)
}

fn not_converged(state: &ScfState) -> ScfError {
    ScfError::NotConverged {
        iterations: state.iteration,
        energy: state.energy,
        change: state.energy_change,
        error: state.error,
    }
}
