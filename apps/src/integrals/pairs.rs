//! Pairs of shells, prepared for Coulomb integrals.
//!
//! A product of two shells is a sum over pairs of primitives, and each of these is a sum of
//! Hermite Gaussians at one point. [`ShellPair`] keeps, for each pair of primitives, the
//! matrix that leads from Hermite Gaussians to the products of the shells' functions, with
//! contraction, spherical harmonics and the prefactor √2 π^(5/4)/p in it. It is made
//! once a pair of shells and used in all quartets.

use super::hermite::{Coulomb, Expansion, triple_count, triple_index, triples};
use crate::basis::{MolecularBasis, Part, Shell, cartesian_powers, components};
use std::f64::consts::{PI, SQRT_2};

/// A pair of primitives whose largest Coulomb self-interaction is below the square of this
/// is left out; the bounds of others are of the order of 10 at most.
pub(super) const NEGLIGIBLE_PAIR: f64 = 1e-21;

/// Two shells and their product.
pub(super) struct ShellPair {
    /// The place of the first shell in the basis, and of its first function.
    pub(super) first: Place,
    /// The second shell; never after the first.
    pub(super) second: Place,
    /// The highest degree of the Hermite Gaussians.
    pub(super) degree: usize,
    /// By falling bound.
    pub(super) primitives: Vec<PrimitivePair>,
    /// The square root of the largest (ab|ab) of the contracted functions.
    pub(super) bound: f64,
}

/// The shell and its functions' places in the basis.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) shell: usize,
    pub(super) start: usize,
    pub(super) functions: usize,
}

/// A pair of primitives.
pub(super) struct PrimitivePair {
    /// The sum of the exponents.
    pub(super) exponent: f64,
    /// The centre of the product, in bohr.
    pub(super) center: [f64; 3],
    /// The square root of the largest (ab|ab).
    pub(super) bound: f64,
    /// From Hermite Gaussians (rows) to products of functions (columns), by rows.
    pub(super) matrix: Vec<f64>,
    /// `matrix` with the sign of odd degrees turned, as the other electron needs it.
    pub(super) turned: Vec<f64>,
}

impl ShellPair {
    /// The number of products of functions.
    pub(super) fn functions(&self) -> usize {
        self.first.functions * self.second.functions
    }

    /// The pair of the shells `a` and `b`, `b` not after `a`; its bound is still 0.
    pub(super) fn new(basis: &MolecularBasis, a: usize, b: usize) -> Self {
        let (one, two) = (&basis.shells()[a], &basis.shells()[b]);
        let degree = one.max_angular() + two.max_angular();
        let maker = Maker::new(one, two, degree);
        let mut primitives = Vec::new();
        for i in 0..one.exponents.len() {
            for j in 0..two.exponents.len() {
                let pair = maker.primitive(i, j);
                if pair.bound > NEGLIGIBLE_PAIR {
                    primitives.push(pair);
                }
            }
        }
        primitives.sort_by(|x, y| y.bound.total_cmp(&x.bound));
        Self {
            first: place(a, one),
            second: place(b, two),
            degree,
            primitives,
            bound: 0.0,
        }
    }
}

fn place(shell: usize, of: &Shell) -> Place {
    Place {
        shell,
        start: of.first,
        functions: of.functions(),
    }
}

/// Values that all pairs of primitives of two shells share.
struct Maker<'a> {
    one: &'a Shell,
    two: &'a Shell,
    degree: usize,
    mixtures: [Vec<Mixture>; 2],
    self_coulomb: Coulomb,
}

/// The functions of a part as sparse mixtures of monomials.
struct Mixture {
    /// For each function, the powers of its monomials and their weights.
    functions: Vec<Vec<([usize; 3], f64)>>,
}

impl Mixture {
    fn new(part: &Part) -> Self {
        let powers = cartesian_powers(usize::from(part.l));
        let functions = components(usize::from(part.l), part.spherical)
            .into_iter()
            .map(|row| {
                let terms = powers.iter().copied().zip(row);
                terms.filter(|(_, weight)| *weight != 0.0).collect()
            })
            .collect();
        Self { functions }
    }
}

impl<'a> Maker<'a> {
    fn new(one: &'a Shell, two: &'a Shell, degree: usize) -> Self {
        Self {
            one,
            two,
            degree,
            mixtures: [one, two].map(|shell| shell.parts.iter().map(Mixture::new).collect()),
            self_coulomb: Coulomb::new(2 * degree),
        }
    }

    fn primitive(&self, i: usize, j: usize) -> PrimitivePair {
        let (alpha, beta) = (self.one.exponents[i], self.two.exponents[j]);
        let p = alpha + beta;
        let (a, b) = (self.one.center, self.two.center);
        let center: [f64; 3] = std::array::from_fn(|x| (alpha * a[x] + beta * b[x]) / p);
        let axes: [Expansion; 3] = std::array::from_fn(|x| {
            let apart = a[x] - b[x];
            let start = (-alpha * beta / p * apart * apart).exp();
            let (la, lb) = (self.one.max_angular(), self.two.max_angular());
            Expansion::new(la, lb, p, center[x] - a[x], center[x] - b[x], start)
        });
        let matrix = self.matrix(i, j, &axes, SQRT_2 * PI.powf(1.25) / p);
        let mut turned = matrix.clone();
        let width = self.one.functions() * self.two.functions();
        for (row, triple) in turned.chunks_mut(width).zip(triples(self.degree)) {
            if triple.iter().sum::<usize>() % 2 == 1 {
                row.iter_mut().for_each(|x| *x = -*x);
            }
        }
        let mut pair = PrimitivePair {
            exponent: p,
            center,
            bound: 0.0,
            matrix,
            turned,
        };
        pair.bound = self.bound(&pair);
        pair
    }

    /// The matrix from Hermite Gaussians to products of functions.
    fn matrix(&self, i: usize, j: usize, axes: &[Expansion; 3], prefactor: f64) -> Vec<f64> {
        let width = self.one.functions() * self.two.functions();
        let mut matrix = vec![0.0; triple_count(self.degree) * width];
        let mut row = 0;
        for (part, mixture) in self.one.parts.iter().zip(&self.mixtures[0]) {
            for first in &mixture.functions {
                let mut column = row * self.two.functions();
                for (other, second_mixture) in self.two.parts.iter().zip(&self.mixtures[1]) {
                    let scale = prefactor * part.coefficients[i] * other.coefficients[j];
                    for second in &second_mixture.functions {
                        add_product(&mut matrix, width, column, axes, first, second, scale);
                        column += 1;
                    }
                }
                row += 1;
            }
        }
        matrix
    }

    fn bound(&self, pair: &PrimitivePair) -> f64 {
        let mut r = vec![0.0; triple_count(2 * self.degree)];
        let p = pair.exponent;
        self.self_coulomb
            .fill(p / 2.0, [0.0; 3], (2.0 * p).sqrt().recip(), &mut r);
        let width = self.one.functions() * self.two.functions();
        let rows = triples(self.degree);
        let mut diagonal = vec![0.0; width];
        for (h, bra) in rows.iter().zip(pair.matrix.chunks(width)) {
            for (k, ket) in rows.iter().zip(pair.turned.chunks(width)) {
                let r = r[triple_index(std::array::from_fn(|x| h[x] + k[x]))];
                for ((sum, x), y) in diagonal.iter_mut().zip(bra).zip(ket) {
                    *sum += x * y * r;
                }
            }
        }
        largest_root(diagonal)
    }
}

/// Adds the product of two functions to one column of the matrix.
fn add_product(
    matrix: &mut [f64],
    width: usize,
    column: usize,
    axes: &[Expansion; 3],
    first: &[([usize; 3], f64)],
    second: &[([usize; 3], f64)],
    scale: f64,
) {
    for (a, weight) in first {
        for (b, other) in second {
            let factor = scale * weight * other;
            for t in 0..=a[0] + b[0] {
                let x = factor * axes[0].at(a[0], b[0], t);
                for u in 0..=a[1] + b[1] {
                    let xy = x * axes[1].at(a[1], b[1], u);
                    for v in 0..=a[2] + b[2] {
                        let xyz = xy * axes[2].at(a[2], b[2], v);
                        matrix[triple_index([t, u, v]) * width + column] += xyz;
                    }
                }
            }
        }
    }
}

/// The root of the largest value; rounding may leave a tiny negative one, which counts as 0.
pub(super) fn largest_root(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max).sqrt()
}
