//! Hermite Gaussians: the intermediate language of the McMurchie-Davidson scheme.
//!
//! The product of two Gaussians at two centres is a sum of Hermite Gaussians at one point
//! between them; the coefficients ([`expansion`]) depend on one coordinate at a time. The
//! Coulomb interaction of two Hermite Gaussians is a derivative R_tuv of the Boys function
//! ([`Coulomb`]). Every integral is then a product of small matrices.
//!
//! L. E. McMurchie, E. R. Davidson, J. Comput. Phys. 26 (1978) 218.

use super::boys::{MAX_ORDER, boys};

/// The triples t, u, v with a sum of at most `degree`, by rising sum.
///
/// A shorter list is the beginning of a longer one.
pub(super) fn triples(degree: usize) -> Vec<[usize; 3]> {
    (0..=degree)
        .flat_map(crate::basis::cartesian_powers)
        .collect()
}

/// The number of [`triples`].
pub(super) fn triple_count(degree: usize) -> usize {
    (degree + 1) * (degree + 2) * (degree + 3) / 6
}

/// The place of a triple in [`triples`].
pub(super) fn triple_index([t, u, v]: [usize; 3]) -> usize {
    let sum = t + u + v;
    // Before it: all of smaller sum, then those of larger t, then those of larger u.
    let rest = u + v;
    sum * (sum + 1) * (sum + 2) / 6 + rest * (rest + 1) / 2 + v
}

/// The coefficients E_t of x_A^i x_B^j exp(-a x_A² - b x_B²) in Hermite Gaussians at P.
///
/// `values[(i * (lb + 1) + j) * (la + lb + 1) + t]`.
pub(super) struct Expansion {
    lb: usize,
    width: usize,
    values: Vec<f64>,
}

impl Expansion {
    /// All coefficients up to the powers `la` and `lb` for one coordinate; `start` is the
    /// overlap factor exp(-ab/(a+b) AB²).
    pub(super) fn new(la: usize, lb: usize, p: f64, pa: f64, pb: f64, start: f64) -> Self {
        let width = la + lb + 1;
        let mut table = Self {
            lb,
            width,
            values: vec![0.0; (la + 1) * (lb + 1) * width],
        };
        table.values[0] = start;
        for i in 0..=la {
            if i > 0 {
                table.raise(i - 1, 0, i, 0, p, pa);
            }
            for j in 1..=lb {
                table.raise(i, j - 1, i, j, p, pb);
            }
        }
        table
    }

    /// E_t of the powers i and j; `t` is at most i + j.
    #[inline]
    pub(super) fn at(&self, i: usize, j: usize, t: usize) -> f64 {
        self.values[(i * (self.lb + 1) + j) * self.width + t]
    }

    /// E_t of one power more, at distance `x` of P from the centre whose power rises.
    fn raise(&mut self, i: usize, j: usize, to_i: usize, to_j: usize, p: f64, x: f64) {
        let top = i + j;
        for t in 0..=top + 1 {
            let mut value = 0.0;
            if t > 0 {
                value += self.at(i, j, t - 1) / (2.0 * p);
            }
            if t <= top {
                value += x * self.at(i, j, t);
            }
            if t < top {
                value += (t + 1) as f64 * self.at(i, j, t + 1);
            }
            self.values[(to_i * (self.lb + 1) + to_j) * self.width + t] = value;
        }
    }
}

/// Computes the Coulomb derivatives R_tuv up to one degree.
///
/// R_tuv is the derivative of F_0(α|r|²), t times by x, u by y, v by z, at the vector r. From
/// (-2α)^n F_n, which is R_000 of auxiliary order n, each step lowers n by one and reaches
/// one degree higher: R^n_t+1 = x R^n+1_t + t R^n+1_t-1. Going through the triples from the
/// last to the first, both terms are still those of order n+1, so one array is enough.
pub(super) struct Coulomb {
    degree: usize,
    steps: Vec<Step>,
}

/// How one triple follows from two of lower degree.
#[derive(Clone, Copy)]
struct Step {
    axis: u8,
    first: u16,
    second: u16,
    factor: f64,
}

impl Coulomb {
    /// Prepares for triples of a sum of at most `degree`, itself at most [`MAX_ORDER`].
    pub(super) fn new(degree: usize) -> Self {
        let steps = triples(degree).into_iter().map(step).collect();
        Self { degree, steps }
    }

    /// Writes `scale` times R_tuv at r for all triples into `out`, in their order.
    #[inline]
    pub(super) fn fill(&self, alpha: f64, r: [f64; 3], scale: f64, out: &mut [f64]) {
        let top = self.degree;
        let mut f = [0.0; MAX_ORDER + 1];
        let t = alpha * (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
        boys(t, &mut f[..=top]);
        let mut power = scale;
        for value in &mut f[..=top] {
            *value *= power;
            power *= -2.0 * alpha;
        }
        out[0] = f[top];
        for n in (0..top).rev() {
            let count = triple_count(top - n);
            for (place, step) in self.steps[..count].iter().enumerate().skip(1).rev() {
                out[place] = r[usize::from(step.axis)] * out[usize::from(step.first)]
                    + step.factor * out[usize::from(step.second)];
            }
            out[0] = f[n];
        }
    }
}

/// Lowers the axis whose power is the least positive one, where often no second term follows.
fn step(triple: [usize; 3]) -> Step {
    let axis = (0..3)
        .filter(|&axis| triple[axis] > 0)
        .min_by_key(|&axis| triple[axis])
        .unwrap_or(0);
    let lowered = |by: usize| {
        let mut lower = triple;
        lower[axis] = lower[axis].saturating_sub(by);
        // At most 2925 triples, those of degree MAX_ORDER.
        triple_index(lower) as u16
    };
    let factor = triple[axis].saturating_sub(1) as f64;
    Step {
        axis: axis as u8,
        first: lowered(1),
        // Where there is no second term its factor is 0; any place that is filled will do.
        second: if factor > 0.0 { lowered(2) } else { 0 },
        factor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_triple() {
        let all = triples(8);
        assert_eq!(all.len(), triple_count(8));
        for (place, triple) in all.into_iter().enumerate() {
            assert_eq!(triple_index(triple), place);
        }
    }

    #[test]
    fn coulomb_derivatives_by_differences() {
        // Each R of degree d+1 must be the derivative of one of degree d.
        let (alpha, r, h) = (0.7, [0.3, -0.8, 0.5], 1e-5);
        let degree = 6;
        let coulomb = Coulomb::new(degree);
        let at = |r: [f64; 3]| {
            let mut out = vec![0.0; triple_count(degree)];
            coulomb.fill(alpha, r, 2.0, &mut out);
            out
        };
        let here = at(r);
        for axis in 0..3 {
            let moved = |by: f64| {
                let mut r = r;
                r[axis] += by;
                at(r)
            };
            let (up, down) = (moved(h), moved(-h));
            for (place, triple) in triples(degree - 1).into_iter().enumerate() {
                let mut raised = triple;
                raised[axis] += 1;
                let expected = (up[place] - down[place]) / (2.0 * h);
                let found = here[triple_index(raised)];
                assert!(
                    (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                    "{raised:?}"
                );
            }
        }
    }
}
