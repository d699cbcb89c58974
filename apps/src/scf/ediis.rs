//! The mixture of densities of the lowest energy, for iterations that do not settle.
//!
//! The energy of a mixture of densities with weights that are not negative and add up to one
//! is known exactly from the energies and Fock matrices at hand:
//! E(Σ w D) = Σ w E - ¼ Σ w_i w_j tr (D_i - D_j)(F_i - F_j). Taking its minimum never goes
//! uphill, so iterations that jump between two sets of occupied orbitals come to rest, which
//! Pulay's method does not ensure. Near the solution it is slow.
//!
//! K. N. Kudin, G. E. Scuseria, E. Cancès, J. Chem. Phys. 116 (2002) 8255.

use crate::matrix::Matrix;

/// Rounds over all pairs of weights; a handful is enough for a history of eight.
const ROUNDS: usize = 100;

/// The weights of the lowest energy. There must be as many of each argument.
pub(super) fn weights(energies: &[f64], densities: &[Matrix], focks: &[Matrix]) -> Vec<f64> {
    let coupling = coupling(densities, focks);
    let count = energies.len();
    let lowest = (0..count).min_by(|&i, &j| energies[i].total_cmp(&energies[j]));
    let mut weights = vec![0.0; count];
    if let Some(lowest) = lowest {
        weights[lowest] = 1.0;
    }
    for _ in 0..ROUNDS {
        for i in 0..count {
            for j in 0..i {
                exchange(&mut weights, energies, &coupling, i, j);
            }
        }
    }
    weights
}

/// tr (D_i - D_j)(F_i - F_j)
fn coupling(densities: &[Matrix], focks: &[Matrix]) -> Matrix {
    let count = focks.len();
    let traces = Matrix::from_fn(count, count, |i, j| densities[i].dot(&focks[j]));
    Matrix::from_fn(count, count, |i, j| {
        traces[(i, i)] - traces[(i, j)] - traces[(j, i)] + traces[(j, j)]
    })
}

/// Moves weight between i and j to where the energy is lowest.
fn exchange(weights: &mut [f64], energies: &[f64], coupling: &Matrix, i: usize, j: usize) {
    // Along w_i + x, w_j - x the energy is E + slope x + curvature x².
    let pull = |a: usize| -> f64 {
        let others = weights.iter().enumerate();
        others.map(|(k, w)| w * coupling[(a, k)]).sum()
    };
    let slope = energies[i] - energies[j] - 0.5 * (pull(i) - pull(j));
    let curvature = 0.5 * coupling[(i, j)];
    let (down, up) = (-weights[i], weights[j]);
    let energy = |x: f64| slope * x + curvature * x * x;
    let mut best = if energy(down) < energy(up) { down } else { up };
    if curvature > 0.0 {
        best = (-slope / (2.0 * curvature)).clamp(down, up);
    }
    if energy(best) < 0.0 {
        weights[i] += best;
        weights[j] -= best;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_a_parabola() {
        // One function, E(D) = h D + g D²/2 and F = h + g D, at D = 0 and D = 1: the lowest
        // mixture has D = -h/g.
        let (h, g) = (-0.3, 1.0);
        let one = |x: f64| Matrix::from_fn(1, 1, |_, _| x);
        let densities = [one(0.0), one(1.0)];
        let focks = [one(h), one(h + g)];
        // tr ΔD ΔF = g; the energy of a closed shell is tr D (h + F) / 2 = hD + gD²/2.
        let weights = weights(&[0.0, h + 0.5 * g], &densities, &focks);
        assert!((weights[1] - 0.3).abs() < 1e-12, "{weights:?}");
        assert!((weights[0] - 0.7).abs() < 1e-12);
    }

    #[test]
    fn weights_stay_weights() {
        let matrix =
            |x: usize| Matrix::from_fn(2, 2, |i, j| ((x + 3 * i * j + i + j) as f64).sin());
        let densities: Vec<Matrix> = (0..6).map(matrix).collect();
        let focks: Vec<Matrix> = (4..10).map(matrix).collect();
        let energies = [0.3, -0.2, 0.1, -0.25, 0.0, 0.2];
        let weights = weights(&energies, &densities, &focks);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(weights.iter().all(|w| *w > -1e-12));
    }
}
