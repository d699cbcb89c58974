//! Coulomb and exchange matrices from the repulsion integrals.
//!
//! Every stored integral stands for up to eight equal ones. Going over the triangle once, an
//! integral is halved for each of the coincidences i = j, k = l, ij = kl and then counted as
//! all eight; what lands in the other triangle is added by symmetry in the end.
//!
//! The triangle is cut into [`PARTS`] runs of rows of about equal length, whatever the number
//! of threads; each sums up on its own and the sums are added in order. So the bits are always
//! the same.

use crate::integrals::{Repulsion, triangle};
use crate::matrix::Matrix;
use rayon::prelude::*;

/// The number of parts of the integrals; as many threads can have work.
const PARTS: usize = 16;

/// The Coulomb matrix J_ij = Σ (ij|kl) D_kl and the exchange matrix K_ik = Σ (ij|kl) D_jl of a
/// symmetric density, on the threads of the current rayon pool.
///
/// Takes time in proportion to the number of integrals and 32 matrices of memory. The
/// density must have as many rows as the integrals have functions; see [`super::System`],
/// which checks that.
#[must_use]
pub fn coulomb_exchange(repulsion: &Repulsion, density: &Matrix) -> (Matrix, Matrix) {
    let size = repulsion.functions();
    let parts: Vec<(Matrix, Matrix)> = cuts(size)
        .into_par_iter()
        .with_max_len(1)
        .map(|rows| part(repulsion, density, rows))
        .collect();
    let mut coulomb = Matrix::zeros(size, size);
    let mut exchange = Matrix::zeros(size, size);
    for (j, k) in &parts {
        coulomb.add_scaled(1.0, j);
        exchange.add_scaled(1.0, k);
    }
    (with_transposed(&coulomb), with_transposed(&exchange))
}

fn with_transposed(a: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows(), a.columns(), |i, j| a[(i, j)] + a[(j, i)])
}

/// Runs of rows with about equally many integrals.
fn cuts(functions: usize) -> Vec<std::ops::Range<usize>> {
    let rows = triangle(functions, 0);
    // Rows 0 to r hold about r²/2 integrals.
    let end = |part: usize| {
        let share = part as f64 / PARTS as f64;
        ((rows as f64 * share.sqrt()).round() as usize).min(rows)
    };
    (0..PARTS).map(|part| end(part)..end(part + 1)).collect()
}

/// The contributions of some rows; half of each matrix, the other is its transpose.
fn part(repulsion: &Repulsion, density: &Matrix, rows: std::ops::Range<usize>) -> (Matrix, Matrix) {
    let size = repulsion.functions();
    let mut sums = Sums {
        density,
        coulomb: Matrix::zeros(size, size),
        exchange: Matrix::zeros(size, size),
        scaled: vec![0.0; size],
    };
    let mut place = (0..size)
        .flat_map(|i| (0..=i).map(move |j| (i, j)))
        .skip(rows.start);
    for row in rows {
        let Some((i, j)) = place.next() else { break };
        let start = triangle(row, 0);
        sums.add_row(i, j, &repulsion.values()[start..=start + row]);
    }
    (sums.coulomb, sums.exchange)
}

struct Sums<'a> {
    density: &'a Matrix,
    coulomb: Matrix,
    exchange: Matrix,
    scaled: Vec<f64>,
}

impl Sums<'_> {
    /// Adds all (ij|kl) of one ij; `row` holds them by kl.
    fn add_row(&mut self, i: usize, j: usize, row: &[f64]) {
        let own = if i == j { 0.5 } else { 1.0 };
        let mut repelled = 0.0;
        for k in 0..=i {
            let start = triangle(k, 0);
            let stop = row.len().min(start + k + 1);
            let count = stop - start;
            for (to, from) in self.scaled.iter_mut().zip(&row[start..stop]) {
                *to = own * from;
            }
            if count == k + 1 {
                self.scaled[k] *= 0.5;
            }
            if stop == row.len() {
                self.scaled[count - 1] *= 0.5;
            }
            repelled += self.add_run(i, j, k, count);
        }
        self.coulomb[(i, j)] += 2.0 * repelled;
    }

    /// Adds the (ij|kl) of one k, with l below `count`; returns their Coulomb sum.
    fn add_run(&mut self, i: usize, j: usize, k: usize, count: usize) -> f64 {
        let values = &self.scaled[..count];
        let density = self.density;
        add_scaled(
            &mut self.coulomb.row_mut(k)[..count],
            2.0 * density[(i, j)],
            values,
        );
        self.exchange[(i, k)] += dot(values, &density.row(j)[..count]);
        self.exchange[(j, k)] += dot(values, &density.row(i)[..count]);
        add_scaled(
            &mut self.exchange.row_mut(i)[..count],
            density[(j, k)],
            values,
        );
        add_scaled(
            &mut self.exchange.row_mut(j)[..count],
            density[(i, k)],
            values,
        );
        dot(values, &density.row(k)[..count])
    }
}

#[inline]
fn add_scaled(out: &mut [f64], factor: f64, values: &[f64]) {
    for (sum, x) in out.iter_mut().zip(values) {
        *sum += factor * x;
    }
}

/// A sum of products in four lanes, which a compiler may not split up by itself.
#[inline]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let mut tail = 0.0;
    for (x, y) in a4.remainder().iter().zip(b4.remainder()) {
        tail += x * y;
    }
    for (x, y) in a4.zip(b4) {
        for lane in 0..4 {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]) + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_sum_over_all_integrals() {
        let n = 7;
        let count = triangle(triangle(n, 0), 0);
        let values: Vec<f64> = (0..count).map(|x| ((x * x) as f64).sin()).collect();
        let text = serde_json::json!({"functions": n, "values": values}).to_string();
        let repulsion: Repulsion = serde_json::from_str(&text).unwrap();
        let density = Matrix::from_fn(n, n, |i, j| ((i * j + i + j) as f64).cos());
        let (coulomb, exchange) = coulomb_exchange(&repulsion, &density);
        for a in 0..n {
            for b in 0..n {
                let (mut j, mut k) = (0.0, 0.0);
                for c in 0..n {
                    for d in 0..n {
                        j += repulsion.get(a, b, c, d) * density[(c, d)];
                        k += repulsion.get(a, c, b, d) * density[(c, d)];
                    }
                }
                assert!((coulomb[(a, b)] - j).abs() < 1e-12, "J {a} {b}");
                assert!((exchange[(a, b)] - k).abs() < 1e-12, "K {a} {b}");
            }
        }
    }

    #[test]
    fn the_cuts_cover_every_row_once() {
        for n in [0, 1, 2, 7, 114] {
            let cuts = cuts(n);
            assert_eq!(
                cuts.iter().map(|cut| cut.len()).sum::<usize>(),
                triangle(n, 0)
            );
            assert!(cuts.windows(2).all(|two| two[0].end == two[1].start));
        }
    }
}
