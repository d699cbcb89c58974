//! Sums and other reductions over all elements.
//!
//! Rounding makes a sum depend on the order of its terms. So elements are taken by rows and cut into pieces, at places
//! that depend only on the shape. Each piece is reduced by the rank on which it begins, and every rank joins the
//! results in their order.

use std::ops::Add;

use sde_engine::bulk::Element;
use sde_engine::{Error, Handle, Storable};

use super::block::Block;
use super::dist_array::{DistArray, header};
use super::layout::Layout;
use super::moves::Move;

/// The number of elements that are added as one piece.
const PIECE: usize = 1 << 14;

impl<T: Element> DistArray<T> {
    /// The sum of all elements; collective. Its bits are equal on all ranks, for any number of ranks and any layout.
    ///
    /// ```
    /// use sde::{DistArray, Sde};
    ///
    /// let sde = Sde::new();
    /// let x = DistArray::from_fn(&sde, &[100], |at| at[0] as f64)?;
    /// assert_eq!(x.sum(&sde)?, 4950.0);
    /// // A scalar product.
    /// assert_eq!(x.zip(&x, |a, b| a * b)?.sum(&sde)?, 328_350.0);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Cost
    /// Elements stay where they are, except parts of pieces (of 16,384 elements) that begin on another rank. If ranks
    /// do not have consecutive elements by rows, as in a [grid](Layout::grid), the array is redistributed once.
    ///
    /// # Errors
    /// As [`redistribute`](Self::redistribute).
    pub fn sum(&self, sde: &Handle) -> Result<T, Error>
    where
        T: Add<Output = T>,
    {
        let sum = self.reduce(sde, "a sum", sum_of, |a, b| a + b)?;
        Ok(sum.unwrap_or_else(T::zeroed))
    }

    /// The least element, without those that can't be compared (NaN); `None` if no other is left. Collective.
    ///
    /// # Errors
    /// As [`redistribute`](Self::redistribute).
    pub fn min(&self, sde: &Handle) -> Result<Option<T>, Error>
    where
        T: PartialOrd,
    {
        self.first_by(sde, |a, b| a <= b)
    }

    /// The largest element, without those that can't be compared (NaN); `None` if no other is left. Collective.
    ///
    /// # Errors
    /// As [`redistribute`](Self::redistribute).
    pub fn max(&self, sde: &Handle) -> Result<Option<T>, Error>
    where
        T: PartialOrd,
    {
        self.first_by(sde, |a, b| a >= b)
    }

    fn first_by(&self, sde: &Handle, precedes: fn(&T, &T) -> bool) -> Result<Option<T>, Error>
    where
        T: PartialOrd,
    {
        let first = move |a: T, b: T| if precedes(&a, &b) { a } else { b };
        let of_piece = |piece: &[T]| {
            // A NaN can't be compared with itself either.
            let comparable = piece.iter().copied().filter(|x| x.partial_cmp(x).is_some());
            comparable.reduce(first)
        };
        let join = |a: Option<T>, b: Option<T>| match (a, b) {
            (Some(a), Some(b)) => Some(first(a, b)),
            (a, b) => a.or(b),
        };
        Ok(self.reduce(sde, "an extreme", of_piece, join)?.flatten())
    }

    /// Reduces all elements: `of_piece` reduces each piece, and `join` joins the results of adjacent pieces. `None` if
    /// there are no elements. Collective; `what` is for messages.
    ///
    /// Pieces have up to 16,384 elements, do not depend on the number of ranks, and are joined in their order. So the
    /// result is the same on any number of ranks, whatever the functions do.
    ///
    /// ```
    /// use sde::{DistArray, Sde};
    ///
    /// let sde = Sde::new();
    /// let x = DistArray::from_fn(&sde, &[10, 10], |at| (at[0] * at[1]) as f64)?;
    /// let squares = |piece: &[f64]| piece.iter().map(|x| x * x).sum::<f64>();
    /// assert_eq!(x.reduce(&sde, "squares", squares, |a, b| a + b)?, Some(81_225.0));
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Cost
    /// As [`sum`](Self::sum).
    ///
    /// # Errors
    /// As [`redistribute`](Self::redistribute).
    pub fn reduce<A: Storable + Clone>(
        &self,
        sde: &Handle,
        what: &str,
        of_piece: impl Fn(&[T]) -> A,
        join: impl Fn(A, A) -> A,
    ) -> Result<Option<A>, Error> {
        let mut mine = Vec::new();
        self.pieces(sde, PIECE, |number, piece| {
            mine.push((number, of_piece(piece)))
        })?;
        let all = sde.gather(what, mine)?;
        let mut pieces: Vec<_> = all.iter().flat_map(|of_rank| of_rank.iter()).collect();
        pieces.sort_by_key(|(number, _)| *number);
        Ok(pieces
            .into_iter()
            .map(|(_, made)| made.clone())
            .reduce(join))
    }

    /// Calls a function with each piece of `length` elements by rows that begins on this rank, and its number.
    /// Collective.
    pub(super) fn pieces(
        &self,
        sde: &Handle,
        length: usize,
        mut each: impl FnMut(u64, &[T]),
    ) -> Result<(), Error> {
        let Some(ranks) = self.here(sde, "goes through")? else {
            let pieces = (0..).zip(self.local.chunks(length));
            pieces.for_each(|(number, piece)| each(number, piece));
            return Ok(());
        };
        let whole = Block::whole(self.shape());
        let lines = self.layout.blocks().iter().map(|block| whole.lines(block));
        let Some(from) = lines
            .map(|lines| lines.as_block())
            .collect::<Option<Vec<_>>>()
        else {
            let by_rows = Layout::rows(self.shape(), ranks.size());
            return self.redistribute(sde, by_rows)?.pieces(sde, length, each);
        };
        let all = whole.len();
        let to = from.iter().map(|block| end_of_last(block, length, all));
        let of_rank = Move::of_all(ranks.rank(), &from, &to.collect::<Vec<_>>());
        let header = header("gathers", &self.layout, &[length]);
        let end = of_rank.run(ranks, &self.local, header)?;
        let own = &from[ranks.rank()];
        let first = own.offset[0].next_multiple_of(length);
        let skipped = (first - own.offset[0]).min(self.local.len());
        let pieces = self.local[skipped..].chunks_exact(length);
        let last = [pieces.remainder(), &end[..]].concat();
        let pieces = pieces.chain([&last[..]]).filter(|piece| !piece.is_empty());
        (first / length..)
            .zip(pieces)
            .for_each(|(number, piece)| each(number as u64, piece));
        Ok(())
    }
}

/// The rest of the last piece that begins in a block of elements by rows, which lies on the ranks after it.
fn end_of_last(block: &Block, length: usize, all: usize) -> Block {
    let (first, end) = (block.offset[0].next_multiple_of(length), block.end(0));
    let after = end.next_multiple_of(length).min(all);
    let extent = if first < end { after - end } else { 0 };
    Block {
        offset: vec![end],
        extent: vec![extent],
    }
}

/// Adds eight interleaved sums, which a processor computes at once.
fn sum_of<T: Element + Add<Output = T>>(piece: &[T]) -> T {
    let mut sums = [T::zeroed(); 8];
    for eight in piece.chunks(8) {
        for (sum, x) in sums.iter_mut().zip(eight) {
            *sum = *sum + *x;
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}
