//! The layout of an array: which rank has which block.

use sde_engine::Error;
use sde_engine::key::Digest;

use super::block::{Block, fits};

/// The shape of an array, and a block of it for each rank. Blocks may be uneven and empty; each element is in exactly
/// one of them.
///
/// ```
/// use sde::ranks::Layout;
///
/// let rows = Layout::rows(&[5, 2], 3);
/// assert_eq!(rows.block(0).extent, [2, 2]);
/// assert_eq!(rows.block(2).offset, [4, 0]);
/// let grid = Layout::grid(&[5, 2], &[2, 2])?;
/// assert_eq!(grid.block(3).offset, [3, 1]);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    shape: Vec<usize>,
    blocks: Vec<Block>,
    /// A digest of shape and blocks, cheap to compare: at each collective operation ranks check that their layouts
    /// agree.
    digest: Digest,
}

impl Layout {
    fn new(shape: &[usize], blocks: Vec<Block>) -> Self {
        let numbers = blocks.iter();
        let numbers = numbers.flat_map(|block| block.offset.iter().chain(&block.extent));
        let numbers = shape.iter().chain(numbers);
        let bytes: Vec<_> = numbers
            .flat_map(|number| (*number as u64).to_le_bytes())
            .collect();
        Self {
            shape: shape.to_vec(),
            blocks,
            digest: Digest::from_bytes(*blake3::hash(&bytes).as_bytes()),
        }
    }

    /// Each rank has consecutive indices of the first dimension; if these do not divide evenly, the first ranks have
    /// one more. Ranks beyond the length of the dimension have an empty block.
    #[must_use]
    pub fn rows(shape: &[usize], ranks: usize) -> Self {
        let mut parts = vec![1; shape.len()];
        if let Some(first) = parts.first_mut() {
            *first = ranks;
        }
        Self::new(shape, grid(shape, &parts))
    }

    /// Cuts each dimension into the given number of parts; the last dimension runs fastest over the ranks.
    ///
    /// # Errors
    /// If there is not a number of parts for each dimension.
    pub fn grid(shape: &[usize], parts: &[usize]) -> Result<Self, Error> {
        if shape.len() != parts.len() || parts.contains(&0) {
            let why = format!("a grid of {parts:?} does not cut an array of shape {shape:?}");
            return Err(refused(why));
        }
        Ok(Self::new(shape, grid(shape, parts)))
    }

    /// A layout of the given blocks, one for each rank.
    ///
    /// # Errors
    /// If the blocks are not of the array, overlap, or leave something out.
    pub fn of_blocks(shape: &[usize], blocks: Vec<Block>) -> Result<Self, Error> {
        let whole = Block::whole(shape);
        if !fits(shape, 1) {
            return Err(refused(format!(
                "no memory holds an array of shape {shape:?}"
            )));
        }
        for (rank, block) in blocks.iter().enumerate() {
            if !block.is_in(shape, 1) {
                let why = format!("the block of rank {rank} is not in an array of shape {shape:?}");
                return Err(refused(why));
            }
        }
        let lengths = blocks.iter().map(Block::len);
        let count = lengths.fold(0, usize::saturating_add);
        if let Some((a, b)) = overlap(&blocks) {
            return Err(refused(format!("the blocks of ranks {a} and {b} overlap")));
        }
        if count != whole.len() {
            let why = format!("the blocks have {count} of {} elements", whole.len());
            return Err(refused(why));
        }
        Ok(Self::new(shape, blocks))
    }

    /// The layout of one block of an array, without the other blocks.
    pub(super) fn part_of(shape: &[usize], block: Block) -> Self {
        Self::new(shape, vec![block])
    }

    /// The lengths of the array.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.blocks.len()
    }

    /// A rank's block; an empty one if there is no such rank.
    #[must_use]
    pub fn block(&self, rank: usize) -> Block {
        let block = self.blocks.get(rank).cloned();
        block.unwrap_or_else(|| Block::empty(self.shape.len()))
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }
}

pub(super) fn refused(why: String) -> Error {
    Error::refused("a layout", why)
}

/// Two blocks that overlap, found by going through them in the order of their first index.
fn overlap(blocks: &[Block]) -> Option<(usize, usize)> {
    let mut order: Vec<usize> = (0..blocks.len())
        .filter(|at| !blocks[*at].is_empty())
        .collect();
    order.sort_by_key(|at| blocks[*at].offset.first().copied());
    for (n, a) in order.iter().enumerate() {
        for b in &order[n + 1..] {
            let ended = !blocks[*a].offset.is_empty() && blocks[*b].offset[0] >= blocks[*a].end(0);
            if ended {
                break;
            }
            if !blocks[*a].shared(&blocks[*b]).is_empty() {
                return Some(((*a).min(*b), (*a).max(*b)));
            }
        }
    }
    None
}

/// The blocks of a grid, the last dimension running fastest.
fn grid(shape: &[usize], parts: &[usize]) -> Vec<Block> {
    let count = parts.iter().product();
    (0..count)
        .map(|number| {
            let mut block = Block::empty(shape.len());
            let mut rest: usize = number;
            for axis in (0..shape.len()).rev() {
                let part = rest % parts[axis];
                rest /= parts[axis];
                let (each, more) = (shape[axis] / parts[axis], shape[axis] % parts[axis]);
                block.offset[axis] = part * each + part.min(more);
                block.extent[axis] = each + usize::from(part < more);
            }
            block
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_tile_their_arrays() {
        for ranks in 1..9 {
            for shape in [&[7][..], &[3, 4], &[2, 3, 5], &[0, 3]] {
                let rows = Layout::rows(shape, ranks);
                assert_eq!(rows.ranks(), ranks);
                let again = Layout::of_blocks(shape, rows.blocks.clone());
                assert_eq!(again.unwrap(), rows);
            }
        }
        let grid = Layout::grid(&[5, 4, 3], &[2, 3, 2]).unwrap();
        assert_eq!(grid.ranks(), 12);
        assert!(Layout::of_blocks(&[5, 4, 3], grid.blocks).is_ok());
    }

    #[test]
    fn shapes_that_no_memory_holds_are_refused() {
        let whole = Block::whole(&[usize::MAX, 2]);
        let error = Layout::of_blocks(&[usize::MAX, 2], vec![whole]).unwrap_err();
        assert!(
            format!("{error:#}").contains("no memory holds"),
            "{error:#}"
        );
        let block = |offset| Block {
            offset: vec![offset],
            extent: vec![3],
        };
        assert!(Layout::of_blocks(&[3], vec![block(usize::MAX)]).is_err());
        // A layout that no memory could hold.
        assert_eq!(Layout::rows(&[usize::MAX, 2], 1).block(0).len(), usize::MAX);
    }

    #[test]
    fn what_does_not_tile_is_refused() {
        let block = |offset: usize, extent: usize| Block {
            offset: vec![offset],
            extent: vec![extent],
        };
        for (blocks, why) in [
            (vec![block(0, 3), block(2, 3)], "ranks 0 and 1 overlap"),
            (vec![block(0, 3)], "3 of 5 elements"),
            (vec![block(0, 6)], "rank 0 is not in"),
            (vec![Block::empty(2)], "rank 0 is not in"),
        ] {
            let error = format!("{:#}", Layout::of_blocks(&[5], blocks).unwrap_err());
            assert!(error.contains(why), "{error:#}");
        }
        assert!(Layout::grid(&[5], &[2, 2]).is_err());
        assert!(Layout::grid(&[5], &[0]).is_err());
    }
}
