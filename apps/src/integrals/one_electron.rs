//! Overlap, kinetic energy and dipole integrals.
//!
//! Between primitives these are products of one factor an axis, all of which follow from the
//! Hermite expansion: the integral of a product is its coefficient E_0 times √(π/p), the
//! first moment about P is E_1 times that, and the second derivative of a Gaussian is made
//! of Gaussians with two powers more and less.

use super::hermite::Expansion;
use crate::basis::{MolecularBasis, Part, Shell, cartesian_powers, components};
use crate::matrix::Matrix;
use std::f64::consts::PI;

/// The overlap of the functions. Symmetric, with ones on the diagonal.
#[must_use]
pub fn overlap(basis: &MolecularBasis) -> Matrix {
    products(basis, |axes, a, b| {
        (0..3).map(|x| axes.overlap(x, a[x], b[x])).product()
    })
}

/// The kinetic energy of an electron, -½∇², in hartree. Symmetric.
#[must_use]
pub fn kinetic(basis: &MolecularBasis) -> Matrix {
    products(basis, |axes, a, b| {
        let s: [f64; 3] = std::array::from_fn(|x| axes.overlap(x, a[x], b[x]));
        let t: [f64; 3] = std::array::from_fn(|x| axes.kinetic(x, a[x], b[x]));
        t[0] * s[1] * s[2] + s[0] * t[1] * s[2] + s[0] * s[1] * t[2]
    })
}

/// The moments x, y, z about the origin of coordinates, in bohr. Symmetric.
#[must_use]
pub fn dipole(basis: &MolecularBasis) -> [Matrix; 3] {
    std::array::from_fn(|moment| {
        products(basis, |axes, a, b| {
            (0..3)
                .map(|x| {
                    if x == moment {
                        axes.moment(x, a[x], b[x])
                    } else {
                        axes.overlap(x, a[x], b[x])
                    }
                })
                .product()
        })
    })
}

/// A pair of primitives, axis by axis.
struct Axes {
    tables: [Expansion; 3],
    center: [f64; 3],
    beta: f64,
    root: f64,
}

impl Axes {
    fn new(one: &Shell, two: &Shell, i: usize, j: usize) -> Self {
        let (alpha, beta) = (one.exponents[i], two.exponents[j]);
        let p = alpha + beta;
        let (a, b) = (one.center, two.center);
        let center: [f64; 3] = std::array::from_fn(|x| (alpha * a[x] + beta * b[x]) / p);
        let tables = std::array::from_fn(|x| {
            let apart = a[x] - b[x];
            let start = (-alpha * beta / p * apart * apart).exp();
            // The kinetic energy needs two powers more on the right, the moment one term more,
            // which comes with them.
            let (la, lb) = (one.max_angular(), two.max_angular() + 2);
            Expansion::new(la, lb, p, center[x] - a[x], center[x] - b[x], start)
        });
        Self {
            tables,
            center,
            beta,
            root: (PI / p).sqrt(),
        }
    }

    fn overlap(&self, axis: usize, i: usize, j: usize) -> f64 {
        self.tables[axis].at(i, j, 0) * self.root
    }

    fn moment(&self, axis: usize, i: usize, j: usize) -> f64 {
        let about_p = if i + j > 0 {
            self.tables[axis].at(i, j, 1)
        } else {
            0.0
        };
        (about_p + self.center[axis] * self.tables[axis].at(i, j, 0)) * self.root
    }

    fn kinetic(&self, axis: usize, i: usize, j: usize) -> f64 {
        let power = j as f64;
        let mut value = self.beta * (2.0 * power + 1.0) * self.overlap(axis, i, j)
            - 2.0 * self.beta * self.beta * self.overlap(axis, i, j + 2);
        if j > 1 {
            value -= 0.5 * power * (power - 1.0) * self.overlap(axis, i, j - 2);
        }
        value
    }
}

/// The matrix of an operator whose integral over two monomials is `kernel`.
fn products(
    basis: &MolecularBasis,
    kernel: impl Fn(&Axes, [usize; 3], [usize; 3]) -> f64,
) -> Matrix {
    let size = basis.functions();
    let mut matrix = Matrix::zeros(size, size);
    for (place, one) in basis.shells().iter().enumerate() {
        for two in &basis.shells()[..=place] {
            for i in 0..one.exponents.len() {
                for j in 0..two.exponents.len() {
                    let axes = Axes::new(one, two, i, j);
                    add_shells(&mut matrix, one, two, [i, j], &|a, b| kernel(&axes, a, b));
                }
            }
        }
    }
    mirror(&mut matrix);
    matrix
}

fn add_shells(
    matrix: &mut Matrix,
    one: &Shell,
    two: &Shell,
    primitives: [usize; 2],
    kernel: &dyn Fn([usize; 3], [usize; 3]) -> f64,
) {
    let mut row = one.first;
    for first in &one.parts {
        let mut column = two.first;
        for second in &two.parts {
            let scale = first.coefficients[primitives[0]] * second.coefficients[primitives[1]];
            if scale != 0.0 {
                add_parts(matrix, [row, column], first, second, scale, kernel);
            }
            column += second.functions();
        }
        row += first.functions();
    }
}

fn add_parts(
    matrix: &mut Matrix,
    [row, column]: [usize; 2],
    first: &Part,
    second: &Part,
    scale: f64,
    kernel: &dyn Fn([usize; 3], [usize; 3]) -> f64,
) {
    let (la, lb) = (usize::from(first.l), usize::from(second.l));
    let (left, right) = (cartesian_powers(la), cartesian_powers(lb));
    let block = Matrix::from_fn(left.len(), right.len(), |i, j| kernel(left[i], right[j]));
    let rights = components(lb, second.spherical);
    for (i, a) in components(la, first.spherical).iter().enumerate() {
        for (j, b) in rights.iter().enumerate() {
            let mut sum = 0.0;
            for (x, weight) in a.iter().enumerate() {
                for (y, other) in b.iter().enumerate() {
                    sum += weight * other * block[(x, y)];
                }
            }
            matrix[(row + i, column + j)] += scale * sum;
        }
    }
}

/// Copies the lower triangle to the upper one.
pub(super) fn mirror(matrix: &mut Matrix) {
    for i in 0..matrix.rows() {
        for j in 0..i {
            matrix[(j, i)] = matrix[(i, j)];
        }
    }
}
