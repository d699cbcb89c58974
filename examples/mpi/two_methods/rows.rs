//! What both solvers need of a square whose rows lie on several ranks.
//!
//! Sums are taken row by row, in the order of rows, so that they have the same bits on any number of
//! ranks.

use sde::{DistArray, Handle};

/// This rank's rows of a square, and the rows next to them on other ranks.
pub struct Rows<'a> {
    sde: &'a Handle,
    size: usize,
    first: usize,
    count: usize,
}

impl<'a> Rows<'a> {
    pub fn of(sde: &'a Handle, array: &DistArray<f64>) -> Self {
        let block = array.block();
        Self {
            sde,
            size: array.shape()[1],
            first: block.offset[0],
            count: block.extent[0],
        }
    }

    /// The sum of products over all points.
    pub fn dot(&self, a: &[f64], b: &[f64]) -> Result<f64, sde::Error> {
        let row = |row: usize| {
            let range = row * self.size..(row + 1) * self.size;
            a[range.clone()]
                .iter()
                .zip(&b[range])
                .map(|(a, b)| a * b)
                .sum()
        };
        let mine: Vec<f64> = (0..self.count).map(row).collect();
        let all = self.sde.gather("sums of rows", mine)?;
        Ok(all.iter().flat_map(|rows| rows.iter()).sum())
    }

    /// The five-point Laplacian, with its sign changed and without the step: 4 at a point, -1 at its
    /// neighbours; zero outside of the square.
    pub fn laplacian(&self, values: &[f64]) -> Result<Vec<f64>, sde::Error> {
        let (above, below) = self.neighbours(values)?;
        let size = self.size;
        let at = |row: usize, column: usize| {
            let row_above = match row {
                0 => above.get(column),
                row => values.get((row - 1) * size + column),
            };
            let row_below = match row + 1 == self.count {
                true => below.get(column),
                false => values.get((row + 1) * size + column),
            };
            let line = &values[row * size..(row + 1) * size];
            let left = column.checked_sub(1).and_then(|left| line.get(left));
            let right = line.get(column + 1);
            let around = [row_above, row_below, left, right];
            4.0 * line[column] - around.into_iter().flatten().sum::<f64>()
        };
        let rows = (0..self.count).flat_map(|row| (0..size).map(move |column| (row, column)));
        Ok(rows.map(|(row, column)| at(row, column)).collect())
    }

    /// The rows before and after this rank's; empty at the border.
    fn neighbours(&self, values: &[f64]) -> Result<(Vec<f64>, Vec<f64>), sde::Error> {
        let edge = |row: usize| values.get(row * self.size..(row + 1) * self.size);
        let mine = match self.count {
            0 => (0, Vec::new(), Vec::new()),
            count => (
                self.first,
                edge(0).unwrap_or_default().to_vec(),
                edge(count - 1).unwrap_or_default().to_vec(),
            ),
        };
        let all = self.sde.gather("rows at the edge", (mine, self.count))?;
        let mut above = Vec::new();
        let mut below = Vec::new();
        for other in all.iter().filter(|other| other.1 > 0) {
            let ((first, first_row, last_row), count) = &**other;
            if first + count == self.first {
                above.clone_from(last_row);
            }
            if *first == self.first + self.count {
                below.clone_from(first_row);
            }
        }
        Ok((above, below))
    }
}
