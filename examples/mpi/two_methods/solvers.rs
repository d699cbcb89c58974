//! Two ways to solve the Poisson equation.

use sde::ranks::Edge;
use sde::{AppError, DistArray, Distributed, Handle};
use serde::{Deserialize, Serialize};

/// The norm of the residual, against that at the start, at which both stop.
const ENOUGH: f64 = 1e-12;
const MOST: u32 = 10_000;

/// A potential, and how many steps it took: a type whose parts go wherever those of the array go.
#[derive(Distributed, Serialize, Deserialize)]
pub struct Solution {
    #[distributed(same)]
    pub iterations: u32,
    pub potential: DistArray<f64>,
}

/// Conjugate gradients.
#[sde::app(name = "poisson.conjugate_gradients", distributed)]
pub fn conjugate_gradients(sde: &Handle, density: &DistArray<f64>) -> Result<Solution, AppError> {
    let mut potential = density.map(|_| 0.0);
    let mut residual = scaled(density);
    let mut direction = residual.clone();
    let mut norm = dot(sde, &residual, &residual)?;
    let start = norm;
    for iterations in 0..MOST {
        if norm.sqrt() <= ENOUGH * start.sqrt() {
            return Ok(Solution {
                iterations,
                potential,
            });
        }
        let image = laplacian(sde, &direction)?;
        let step = norm / dot(sde, &direction, &image)?;
        potential = potential.zip(&direction, |x, d| x + step * d)?;
        residual = residual.zip(&image, |r, i| r - step * i)?;
        let next = dot(sde, &residual, &residual)?;
        let turn = next / norm;
        norm = next;
        direction = residual.zip(&direction, |r, d| r + turn * d)?;
    }
    Err(not_converged("conjugate gradients"))
}

/// Chebyshev iteration: no sums over all points but to know when to stop. It needs the bounds of
/// the spectrum, which are known here.
///
/// Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed. (2003), algorithm 12.1.
#[sde::app(name = "poisson.chebyshev", distributed)]
pub fn chebyshev(sde: &Handle, density: &DistArray<f64>) -> Result<Solution, AppError> {
    let angle = std::f64::consts::PI / (density.shape()[0] + 1) as f64;
    let (least, largest) = (4.0 - 4.0 * angle.cos(), 4.0 + 4.0 * angle.cos());
    let (middle, half) = (0.5 * (largest + least), 0.5 * (largest - least));
    let ratio = middle / half;
    let mut turn = 1.0 / ratio;
    let mut potential = density.map(|_| 0.0);
    let mut residual = scaled(density);
    let mut step = residual.map(|r| r / middle);
    let start = dot(sde, &residual, &residual)?;
    for iterations in 0..MOST {
        // The sum is what costs: it is not taken each time.
        if iterations % 8 == 0 && dot(sde, &residual, &residual)?.sqrt() <= ENOUGH * start.sqrt() {
            return Ok(Solution {
                iterations,
                potential,
            });
        }
        potential = potential.zip(&step, |x, s| x + s)?;
        residual = residual.zip(&laplacian(sde, &step)?, |r, i| r - i)?;
        let next = 1.0 / (2.0 * ratio - turn);
        step = step.zip(&residual, |s, r| next * turn * s + 2.0 * next / half * r)?;
        turn = next;
    }
    Err(not_converged("Chebyshev iteration"))
}

/// The sum of products over all points.
fn dot(sde: &Handle, a: &DistArray<f64>, b: &DistArray<f64>) -> Result<f64, sde::Error> {
    a.zip(b, |a, b| a * b)?.sum(sde)
}

/// The five-point Laplacian, with its sign changed and without the step: 4 at a point, -1 at its
/// neighbours; zero outside of the square.
fn laplacian(sde: &Handle, values: &DistArray<f64>) -> Result<DistArray<f64>, sde::Error> {
    let padded = values.padded(sde, &[1, 1], &[Edge::Constant(0.0); 2])?;
    Ok(padded.map(|near| {
        let around = [[-1, 0], [1, 0], [0, -1], [0, 1]].map(|side| near.at(side));
        4.0 * near.at([0, 0]) - around.iter().sum::<f64>()
    }))
}

/// The right-hand side: the density times the square of the step.
fn scaled(density: &DistArray<f64>) -> DistArray<f64> {
    let step = 1.0 / (density.shape()[0] + 1) as f64;
    density.map(|charge| charge * step * step)
}

fn not_converged(method: &str) -> AppError {
    AppError::message(format!("{method} did not converge in {MOST} iterations"))
}
