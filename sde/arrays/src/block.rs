//! A box of indices.

use std::ops::Range;

/// Some consecutive indices in each dimension of an array. It may be empty.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Block {
    /// The first index in each dimension.
    pub offset: Vec<usize>,
    /// The number of indices in each dimension.
    pub extent: Vec<usize>,
}

impl Block {
    /// The block of these first indices and numbers of indices, one of each for each dimension.
    #[must_use]
    pub fn new(offset: impl Into<Vec<usize>>, extent: impl Into<Vec<usize>>) -> Self {
        Self {
            offset: offset.into(),
            extent: extent.into(),
        }
    }

    /// The number of elements; `usize::MAX` if no memory could hold as many.
    #[must_use]
    pub fn len(&self) -> usize {
        let lengths = self.extent.iter();
        lengths.fold(1, |all, length| all.saturating_mul(*length))
    }

    /// Whether the block has no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.extent.contains(&0)
    }

    pub(super) fn empty(dimensions: usize) -> Self {
        Self {
            offset: vec![0; dimensions],
            extent: vec![0; dimensions],
        }
    }

    /// The block that covers a whole array.
    pub(super) fn whole(shape: &[usize]) -> Self {
        Self {
            offset: vec![0; shape.len()],
            extent: shape.to_vec(),
        }
    }

    /// Whether two blocks share an element.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let overlap = |axis: usize| {
            let start = self.offset[axis].max(other.offset[axis]);
            start < self.end(axis).min(other.end(axis))
        };
        (0..self.offset.len()).all(overlap)
    }

    /// The elements that two blocks share, as a block.
    pub(super) fn shared(&self, other: &Self) -> Self {
        let mut shared = Self::empty(self.offset.len());
        for axis in 0..self.offset.len() {
            let start = self.offset[axis].max(other.offset[axis]);
            let end = self.end(axis).min(other.end(axis));
            if start >= end {
                return Self::empty(self.offset.len());
            }
            shared.offset[axis] = start;
            shared.extent[axis] = end - start;
        }
        shared
    }

    pub(super) fn end(&self, axis: usize) -> usize {
        self.offset[axis].saturating_add(self.extent[axis])
    }

    /// Whether this is a block of an array of this shape, and an array of so many values of `size` bytes fits in
    /// memory. If so, no arithmetic with it overflows.
    pub(super) fn is_in(&self, shape: &[usize], size: usize) -> bool {
        let ends = self.offset.iter().zip(&self.extent);
        let inside = |((offset, extent), length): ((&usize, &usize), &usize)| {
            offset
                .checked_add(*extent)
                .is_some_and(|end| end <= *length)
        };
        self.offset.len() == shape.len()
            && self.extent.len() == shape.len()
            && (self.is_empty() || ends.zip(shape).all(inside))
            && fits(shape, size)
    }

    /// The lines of a block within this one, along the last dimension. Elements lie by rows; adjacent lines are merged.
    pub(super) fn lines(&self, inner: &Self) -> Lines {
        let dimensions = self.extent.len();
        // From dimension `first` on, the inner block spans this one in full.
        let mut first = dimensions.saturating_sub(1);
        while first > 0 && inner.extent[first] == self.extent[first] {
            first -= 1;
        }
        let mut lines = Lines {
            first: 0,
            length: inner.extent[first..].iter().product(),
            axes: Vec::new(),
        };
        if inner.is_empty() {
            return Lines { length: 0, ..lines };
        }
        let mut stride = 1;
        for axis in (0..dimensions).rev() {
            lines.first += (inner.offset[axis] - self.offset[axis]) * stride;
            if axis < first && inner.extent[axis] > 1 {
                lines.axes.push((inner.extent[axis], stride));
            }
            stride *= self.extent[axis];
        }
        lines
    }
}

/// The runs of equal length that a block occupies within another.
pub(super) struct Lines {
    first: usize,
    length: usize,
    /// For each dimension, the number of runs and their distance; the fastest dimension first.
    axes: Vec<(usize, usize)>,
}

impl Lines {
    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        let along = self.axes.iter().map(|(extent, _)| extent);
        self.length * along.product::<usize>()
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn is_one(&self) -> bool {
        self.axes.is_empty()
    }

    /// The single run, if there is just one, as a block of one dimension.
    pub(super) fn as_block(&self) -> Option<Block> {
        self.is_one().then(|| Block {
            offset: vec![self.first],
            extent: vec![self.length],
        })
    }

    fn start(&self, line: usize) -> usize {
        let (mut at, mut rest) = (self.first, line);
        for (extent, stride) in &self.axes {
            at += rest % extent * stride;
            rest /= extent;
        }
        at
    }

    /// The runs that some of the elements occupy, each of at most `most` elements.
    pub(super) fn runs(
        &self,
        elements: Range<usize>,
        most: usize,
    ) -> impl Iterator<Item = Range<usize>> {
        let mut next = elements.start;
        std::iter::from_fn(move || {
            let remaining = elements.end.checked_sub(next).filter(|count| *count > 0)?;
            let offset = next % self.length;
            let start = self.start(next / self.length) + offset;
            let count = (self.length - offset).min(remaining).min(most);
            next += count;
            Some(start..start + count)
        })
    }
}

/// Whether memory could hold an array of this shape, of values of `size` bytes.
pub(super) fn fits(shape: &[usize], size: usize) -> bool {
    // A length of 0 counts as 1, since lines are computed from the other lengths.
    let mut lengths = shape.iter().map(|length| (*length).max(1));
    let bytes = lengths.try_fold(size.max(1), |all, length| all.checked_mul(length));
    bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: [usize; 2], extent: [usize; 2]) -> Block {
        Block {
            offset: offset.to_vec(),
            extent: extent.to_vec(),
        }
    }

    #[test]
    fn blocks_share_what_lies_in_both() {
        let a = block([0, 0], [4, 4]);
        assert_eq!(a.shared(&block([2, 3], [5, 5])), block([2, 3], [2, 1]));
        assert!(a.shared(&block([4, 0], [1, 1])).is_empty());
        assert!(a.shared(&block([1, 1], [0, 2])).is_empty());
    }

    #[test]
    fn what_no_memory_can_hold_is_in_no_array() {
        let huge = usize::MAX;
        assert_eq!(block([0, 0], [huge, huge]).len(), huge);
        assert_eq!(block([0, 0], [huge, 0]).len(), 0);
        assert_eq!(block([huge, 0], [huge, 1]).end(0), huge);
        assert!(block([1, 2], [2, 1]).is_in(&[3, 3], 8));
        assert!(!block([1, 2], [2, 2]).is_in(&[3, 3], 8));
        assert!(!block([huge, 0], [2, 1]).is_in(&[3, 3], 8));
        assert!(!block([0, 0], [1, 1]).is_in(&[huge, 3], 8));
        assert!(block([huge, 9], [0, 1]).is_in(&[3, 3], 8));
        assert!(!block([0, 0], [0, 0]).is_in(&[huge / 8, 0], 8));
        assert!(fits(&[huge / 32, 0], 8));
    }

    #[test]
    fn lines_that_lie_side_by_side_are_one() {
        let outer = block([2, 0], [4, 3]);
        let runs = |inner: &Block, elements: Range<usize>, most: usize| -> Vec<(usize, usize)> {
            let lines = outer.lines(inner);
            let runs = lines.runs(elements, most);
            runs.map(|run| (run.start, run.end)).collect()
        };
        assert_eq!(runs(&block([3, 0], [2, 3]), 0..6, 9), [(3, 9)]);
        assert_eq!(runs(&block([3, 1], [2, 2]), 0..4, 9), [(4, 6), (7, 9)]);
        assert_eq!(runs(&block([3, 1], [2, 2]), 1..3, 9), [(5, 6), (7, 8)]);
        assert_eq!(
            runs(&block([3, 1], [2, 2]), 0..3, 1),
            [(4, 5), (5, 6), (7, 8)]
        );
        assert_eq!(outer.lines(&Block::empty(2)).len(), 0);
    }
}
