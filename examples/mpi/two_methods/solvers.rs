//! Two ways to solve the Poisson equation.

use sde::{AppError, DistArray, Distributed, Handle};
use serde::{Deserialize, Serialize};

use crate::rows::Rows;

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
#[sde::app(name = "poisson.conjugate_gradients", distributed, tags(distributed))]
pub fn conjugate_gradients(sde: &Handle, density: &DistArray<f64>) -> Result<Solution, AppError> {
    let rows = Rows::of(sde, density);
    let mut potential = vec![0.0; density.local().len()];
    let mut residual = scaled(density);
    let mut direction = residual.clone();
    let mut norm = rows.dot(&residual, &residual)?;
    let start = norm;
    for iterations in 0..MOST {
        if norm.sqrt() <= ENOUGH * start.sqrt() {
            return solution(sde, density, iterations, potential);
        }
        let image = rows.laplacian(&direction)?;
        let step = norm / rows.dot(&direction, &image)?;
        add(&mut potential, step, &direction);
        add(&mut residual, -step, &image);
        let next = rows.dot(&residual, &residual)?;
        let turn = next / norm;
        norm = next;
        for (direction, residual) in direction.iter_mut().zip(&residual) {
            *direction = residual + turn * *direction;
        }
    }
    Err(not_converged("conjugate gradients"))
}

/// Chebyshev iteration: no sums over all points but to know when to stop. It needs the bounds of
/// the spectrum, which are known here.
///
/// Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed. (2003), algorithm 12.1.
#[sde::app(name = "poisson.chebyshev", distributed, tags(distributed))]
pub fn chebyshev(sde: &Handle, density: &DistArray<f64>) -> Result<Solution, AppError> {
    let rows = Rows::of(sde, density);
    let angle = std::f64::consts::PI / (density.shape()[0] + 1) as f64;
    let (least, largest) = (4.0 - 4.0 * angle.cos(), 4.0 + 4.0 * angle.cos());
    let (middle, half) = (0.5 * (largest + least), 0.5 * (largest - least));
    let ratio = middle / half;
    let mut turn = 1.0 / ratio;
    let mut potential = vec![0.0; density.local().len()];
    let mut residual = scaled(density);
    let mut step: Vec<f64> = residual.iter().map(|r| r / middle).collect();
    let start = rows.dot(&residual, &residual)?;
    for iterations in 0..MOST {
        // The sum is what costs: it is not taken each time.
        if iterations % 8 == 0 && rows.dot(&residual, &residual)?.sqrt() <= ENOUGH * start.sqrt() {
            return solution(sde, density, iterations, potential);
        }
        add(&mut potential, 1.0, &step);
        let image = rows.laplacian(&step)?;
        add(&mut residual, -1.0, &image);
        let next = 1.0 / (2.0 * ratio - turn);
        for (step, residual) in step.iter_mut().zip(&residual) {
            *step = next * turn * *step + 2.0 * next / half * residual;
        }
        turn = next;
    }
    Err(not_converged("Chebyshev iteration"))
}

/// The right-hand side: the density times the square of the step.
fn scaled(density: &DistArray<f64>) -> Vec<f64> {
    let step = 1.0 / (density.shape()[0] + 1) as f64;
    density
        .local()
        .iter()
        .map(|charge| charge * step * step)
        .collect()
}

fn add(to: &mut [f64], times: f64, what: &[f64]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += times * what;
    }
}

fn solution(
    sde: &Handle,
    density: &DistArray<f64>,
    iterations: u32,
    potential: Vec<f64>,
) -> Result<Solution, AppError> {
    let layout = density.layout().clone();
    Ok(Solution {
        iterations,
        potential: DistArray::from_local(sde, layout, potential)?,
    })
}

fn not_converged(method: &str) -> AppError {
    AppError::message(format!("{method} did not converge in {MOST} iterations"))
}
