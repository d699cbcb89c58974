//! The choice of orbitals to fill where a guess leaves one.
//!
//! The densities of two hydrogen atoms far apart do not touch, so the field of the free atoms gives two
//! orbitals of one energy. Any mixture of the two solves that field, and rounding decides which one an
//! eigenvalue solver returns: the orbital shared by both atoms, which is the ground state, or the
//! one on a single atom. The latter, H- beside H+, also solves its own
//! equations, and the iterations would stay there, 0.37 hartree too high.
//!
//! So where the highest filled and the lowest empty orbital are of one energy, filled orbitals are
//! turned into empty ones of that energy, one pair after another, to where the total energy is
//! lowest.

use super::system::Orbitals;
use super::{ScfError, System};
use crate::matrix::Matrix;
use std::f64::consts::PI;

/// Orbitals whose energies differ by less, in hartree, are taken to be of one.
const SAME: f64 = 1e-6;

/// A turn has to gain this much, in hartree: the rest is rounding.
const GAIN: f64 = 1e-9;

/// The number of turns of each pair.
const SWEEPS: usize = 2;

/// The number of angles at which the energy is computed: it is a trigonometric polynomial of the second
/// degree in twice the angle, which five determine.
const ANGLES: usize = 8;

/// The number of steps in the search of its minimum.
const STEPS: usize = 720;

/// The orbitals as given, or turned among those of one energy.
///
/// Eight Fock matrices for each pair and sweep; none unless there is a choice.
pub(super) fn choose(system: &System, mut orbitals: Orbitals) -> Result<Orbitals, ScfError> {
    let pairs = system.electron_pairs();
    let energies = &orbitals.energies;
    let (Some(highest), Some(lowest)) = (
        pairs.checked_sub(1).map(|last| energies[last]),
        energies.get(pairs).copied(),
    ) else {
        return Ok(orbitals);
    };
    if lowest - highest > SAME {
        return Ok(orbitals);
    }
    let filled: Vec<usize> = (0..pairs)
        .filter(|&i| lowest - energies[i] < SAME)
        .collect();
    let empty: Vec<usize> = (pairs..energies.len())
        .filter(|&a| energies[a] - highest < SAME)
        .collect();
    for _ in 0..SWEEPS {
        for &i in &filled {
            for &a in &empty {
                turn_to_lowest(system, &mut orbitals, i, a)?;
            }
        }
    }
    Ok(orbitals)
}

fn turn_to_lowest(
    system: &System,
    orbitals: &mut Orbitals,
    i: usize,
    a: usize,
) -> Result<(), ScfError> {
    let mut energies = [0.0; ANGLES];
    for (k, energy) in energies.iter_mut().enumerate() {
        let turned = Orbitals {
            energies: Vec::new(),
            coefficients: turned(&orbitals.coefficients, i, a, PI * k as f64 / ANGLES as f64),
        };
        let density = system.density(&turned);
        *energy = system.energy(&density, &system.fock(&density)?);
    }
    let (angle, energy) = lowest(&energies);
    if energy < energies[0] - GAIN {
        orbitals.coefficients = turned(&orbitals.coefficients, i, a, angle);
    }
    Ok(())
}

/// Orbital `i` turned into orbital `a` by an angle, and the other way about.
fn turned(coefficients: &Matrix, i: usize, a: usize, angle: f64) -> Matrix {
    let (sine, cosine) = angle.sin_cos();
    let mut turned = coefficients.clone();
    for row in 0..coefficients.rows() {
        let (x, y) = (coefficients[(row, i)], coefficients[(row, a)]);
        turned[(row, i)] = cosine * x + sine * y;
        turned[(row, a)] = cosine * y - sine * x;
    }
    turned
}

/// The angle of the lowest energy, and that energy, from energies at equal steps up to half a turn.
fn lowest(energies: &[f64; ANGLES]) -> (f64, f64) {
    let mean = energies.iter().sum::<f64>() / ANGLES as f64;
    let component = |of: fn(f64) -> f64, degree: f64| {
        let terms = energies.iter().enumerate();
        let sum: f64 = terms
            .map(|(k, energy)| energy * of(2.0 * PI * degree * k as f64 / ANGLES as f64))
            .sum();
        sum * 2.0 / ANGLES as f64
    };
    let [c1, c2] = [1.0, 2.0].map(|degree| component(f64::cos, degree));
    let [s1, s2] = [1.0, 2.0].map(|degree| component(f64::sin, degree));
    let at = |angle: f64| {
        let (x, y) = (2.0 * angle, 4.0 * angle);
        mean + c1 * x.cos() + s1 * x.sin() + c2 * y.cos() + s2 * y.sin()
    };
    let angles = (0..STEPS).map(|k| PI * k as f64 / STEPS as f64);
    angles
        .map(|angle| (angle, at(angle)))
        .fold((0.0, at(0.0)), |best, next| match next.1 < best.1 {
            true => next,
            false => best,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_a_polynomial_is_found() {
        let energy = |angle: f64| {
            -2.0 + 0.3 * (2.0 * (angle - 1.0)).cos() - 0.5 * (4.0 * (angle - 0.4)).cos()
        };
        let samples = std::array::from_fn(|k| energy(PI * k as f64 / ANGLES as f64));
        let (angle, found) = lowest(&samples);
        assert!((energy(angle) - found).abs() < 1e-12);
        let fine = (0..100_000).map(|k| energy(PI * f64::from(k) / 1e5));
        assert!((fine.fold(f64::INFINITY, f64::min) - found).abs() < 1e-4);
    }
}
