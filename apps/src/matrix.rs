//! A dense matrix of `f64`, stored by rows.
//!
//! The matrices of a calculation are remembered, saved and hashed, so they are plain data:
//! two numbers and a vector, whose bytes are the matrix. Products and eigenvalues are left
//! to nalgebra ([`crate::scf`] copies in and out, which costs little beside them).

use sde::Fingerprint;
use serde::{Deserialize, Serialize};

/// A matrix of `f64`, stored by rows.
///
/// ```
/// use sde_apps::matrix::Matrix;
/// let mut m = Matrix::zeros(2, 3);
/// m[(1, 2)] = 5.0;
/// assert_eq!(m.row(1), [0.0, 0.0, 5.0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Fingerprint)]
#[serde(try_from = "Unchecked")]
pub struct Matrix {
    rows: usize,
    columns: usize,
    #[serde(with = "sde::bulk")]
    values: Vec<f64>,
}

/// A serialized matrix before it is checked.
#[derive(Deserialize)]
struct Unchecked {
    rows: usize,
    columns: usize,
    #[serde(with = "sde::bulk")]
    values: Vec<f64>,
}

/// The values given for a matrix do not fill its shape.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{values} values cannot fill a matrix of {rows} rows and {columns} columns")]
#[non_exhaustive]
pub struct ShapeError {
    /// Rows asked for.
    pub rows: usize,
    /// Columns asked for.
    pub columns: usize,
    /// Values given.
    pub values: usize,
}

sde::debug_as_said!(ShapeError);

impl TryFrom<Unchecked> for Matrix {
    type Error = ShapeError;

    fn try_from(raw: Unchecked) -> Result<Self, ShapeError> {
        Self::from_values(raw.rows, raw.columns, raw.values)
    }
}

impl Matrix {
    /// A matrix of zeros.
    #[must_use]
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            values: vec![0.0; rows * columns],
        }
    }

    /// A matrix of these values, given row by row.
    ///
    /// # Errors
    /// [`ShapeError`] when their number is not `rows * columns`.
    pub fn from_values(rows: usize, columns: usize, values: Vec<f64>) -> Result<Self, ShapeError> {
        if rows.checked_mul(columns) != Some(values.len()) {
            return Err(ShapeError {
                rows,
                columns,
                values: values.len(),
            });
        }
        Ok(Self {
            rows,
            columns,
            values,
        })
    }

    /// A matrix whose element (i, j) is `value(i, j)`.
    #[must_use]
    pub fn from_fn(
        rows: usize,
        columns: usize,
        mut value: impl FnMut(usize, usize) -> f64,
    ) -> Self {
        let mut matrix = Self::zeros(rows, columns);
        for i in 0..rows {
            for j in 0..columns {
                matrix[(i, j)] = value(i, j);
            }
        }
        matrix
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row by row.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All values, row by row, to be changed.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// One row.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// One row, to be changed.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// The sum of the products of corresponding elements, in the order of storage.
    #[must_use]
    pub fn dot(&self, other: &Self) -> f64 {
        self.values
            .iter()
            .zip(&other.values)
            .map(|(a, b)| a * b)
            .sum()
    }

    /// The largest absolute value; NaN counts as infinite.
    #[must_use]
    pub fn max_abs(&self) -> f64 {
        self.values.iter().fold(0.0, |most, x| {
            if x.is_nan() {
                f64::INFINITY
            } else {
                most.max(x.abs())
            }
        })
    }

    /// Adds `factor` times `other`, element by element.
    pub fn add_scaled(&mut self, factor: f64, other: &Self) {
        for (a, b) in self.values.iter_mut().zip(&other.values) {
            *a += factor * b;
        }
    }
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        &self.row(row)[column]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut f64 {
        &mut self.row_mut(row)[column]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_that_does_not_fit_is_refused() {
        assert!(Matrix::from_values(2, 2, vec![1.0; 3]).is_err());
        assert!(Matrix::from_values(usize::MAX, 2, vec![1.0; 3]).is_err());
        let text = r#"{"rows":2,"columns":2,"values":[1.0,2.0,3.0]}"#;
        assert!(serde_json::from_str::<Matrix>(text).is_err());
    }
}
