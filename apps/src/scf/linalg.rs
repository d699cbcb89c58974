//! Products and eigenvalues of matrices, by faer on one thread.
//!
//! The results must have the same bits in every run, for any number of threads. So faer gets
//! no threads, and only matrices it has allocated itself: those are aligned, while the way a
//! sum is cut into vector registers may depend on the alignment of a borrowed slice. On
//! another kind of processor, with other vector registers, the last bits may differ.

use super::ScfError;
use crate::matrix::Matrix;
use faer::diag::Diag;
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

/// a b
pub(super) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    multiply(copied(a).as_ref(), copied(b).as_ref())
}

/// aᵀ b
pub(super) fn product_of_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    multiply(copied(a).transpose(), copied(b).as_ref())
}

/// a bᵀ
pub(super) fn product_with_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    multiply(copied(a).as_ref(), copied(b).transpose())
}

/// xᵀ a x
pub(super) fn congruent(x: &Matrix, a: &Matrix) -> Matrix {
    product_of_transposed(x, &product(a, x))
}

/// The eigenvalues of a symmetric matrix, rising, and its eigenvectors as columns.
///
/// Only the lower triangle is read.
pub(super) fn eigen(a: &Matrix) -> Result<(Vec<f64>, Matrix), ScfError> {
    // Infinite and undefined numbers never converge, and would be looked for in vain.
    if a.max_abs() == f64::INFINITY {
        return Err(ScfError::NotFinite);
    }
    let size = a.rows();
    // faer cannot say how much memory an empty matrix needs.
    if size == 0 {
        return Ok((Vec::new(), Matrix::zeros(0, 0)));
    }
    let a = copied(a);
    let mut values = Diag::<f64>::zeros(size);
    let mut vectors = Mat::<f64>::zeros(size, size);
    let scratch = self_adjoint_evd_scratch::<f64>(
        size,
        ComputeEigenvectors::Yes,
        Par::Seq,
        Default::default(),
    );
    let mut memory = faer::dyn_stack::MemBuffer::new(scratch);
    self_adjoint_evd(
        a.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        Par::Seq,
        faer::dyn_stack::MemStack::new(&mut memory),
        Default::default(),
    )
    .map_err(|_| ScfError::Eigenvalues { size })?;
    let values = (0..size).map(|i| values.column_vector()[i]).collect();
    Ok((values, plain(vectors.as_ref())))
}

fn multiply(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Matrix {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
    plain(out.as_ref())
}

fn copied(a: &Matrix) -> Mat<f64> {
    Mat::from_fn(a.rows(), a.columns(), |i, j| a[(i, j)])
}

fn plain(a: MatRef<'_, f64>) -> Matrix {
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
