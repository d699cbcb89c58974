//! Products and eigenvalues of matrices, by nalgebra.
//!
//! The results have the same bits in every run, for any number of threads: nalgebra uses one, and copies operands into
//! packed blocks. On another kind of processor, with other vector registers, the last bits may differ.

use nalgebra::{DMatrix, SymmetricEigen};

use super::ScfError;
use crate::matrix::Matrix;

/// a b
pub(super) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    plain(&(copied(a) * copied(b)))
}

/// aᵀ b
pub(super) fn product_of_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    plain(&copied(a).tr_mul(&copied(b)))
}

/// a bᵀ
pub(super) fn product_with_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    plain(&(copied(a) * copied(b).transpose()))
}

/// xᵀ a x
pub(super) fn congruent(x: &Matrix, a: &Matrix) -> Matrix {
    product_of_transposed(x, &product(a, x))
}

/// The eigenvalues of a symmetric matrix, rising, and its eigenvectors as columns.
///
/// Only the lower triangle is read.
pub(super) fn eigen(a: &Matrix) -> Result<(Vec<f64>, Matrix), ScfError> {
    // Infinite and undefined numbers never converge.
    if a.max_abs() == f64::INFINITY {
        return Err(ScfError::NotFinite);
    }
    let size = a.rows();
    // nalgebra panics on an empty matrix.
    if size == 0 {
        return Ok((Vec::new(), Matrix::zeros(0, 0)));
    }
    // Two or three for each eigenvalue are usual.
    let most_iterations = 100 * size;
    let found = SymmetricEigen::try_new(copied(a), f64::EPSILON, most_iterations)
        .ok_or(ScfError::Eigenvalues { size })?;
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&i, &j| found.eigenvalues[i].total_cmp(&found.eigenvalues[j]));
    let values = order.iter().map(|&j| found.eigenvalues[j]).collect();
    let vectors = Matrix::from_fn(size, size, |i, j| found.eigenvectors[(i, order[j])]);
    Ok((values, vectors))
}

fn copied(a: &Matrix) -> DMatrix<f64> {
    DMatrix::from_fn(a.rows(), a.columns(), |i, j| a[(i, j)])
}

fn plain(a: &DMatrix<f64>) -> Matrix {
    Matrix::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: usize, columns: usize) -> Matrix {
        Matrix::from_fn(rows, columns, |i, j| ((3 * i + 7 * j) as f64).sin())
    }

    #[test]
    fn products_by_hand() {
        let (a, b) = (sample(3, 5), sample(5, 4));
        let c = product(&a, &b);
        for i in 0..3 {
            for j in 0..4 {
                let expected: f64 = (0..5).map(|k| a[(i, k)] * b[(k, j)]).sum();
                assert!((c[(i, j)] - expected).abs() < 1e-14);
            }
        }
        let at = Matrix::from_fn(5, 3, |i, j| a[(j, i)]);
        let bt = Matrix::from_fn(4, 5, |i, j| b[(j, i)]);
        assert!((product_of_transposed(&at, &b).dot(&c) - c.dot(&c)).abs() < 1e-13);
        assert!((product_with_transposed(&a, &bt).dot(&c) - c.dot(&c)).abs() < 1e-13);
    }

    #[test]
    fn eigenvectors_and_their_bits() {
        let square = sample(37, 37);
        let a = product_with_transposed(&square, &square);
        let (values, vectors) = eigen(&a).unwrap();
        let left = product(&a, &vectors);
        for i in 0..37 {
            for j in 0..37 {
                assert!((left[(i, j)] - values[j] * vectors[(i, j)]).abs() < 1e-11);
            }
        }
        for shift in 0..8 {
            // Moves what is allocated next.
            let _space = vec![0u8; 8 * shift + 1];
            assert_eq!(
                eigen(&a.clone()).unwrap(),
                (values.clone(), vectors.clone())
            );
        }
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        let a = Matrix::from_fn(2, 2, |_, _| f64::NAN);
        assert!(matches!(eigen(&a), Err(ScfError::NotFinite)));
    }
}
