//! Arrays as distributed values: how parts move, and how they are assembled.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sde_engine::bulk::{Element, try_zeroed};
use sde_engine::ranks::{Placement, Redistribution, SavedParts};
use sde_engine::{AppError, Distributed};

use super::block::Block;
use super::dist_array::{DistArray, header};
use super::layout::Layout;
use super::moves::{Move, copy};

impl<T: Element> Distributed for DistArray<T> {
    /// Shape, then the block.
    fn part_descriptor(&self) -> Vec<u64> {
        let block = self.block();
        let numbers = self
            .shape()
            .iter()
            .chain(&block.offset)
            .chain(&block.extent);
        numbers.map(|number| *number as u64).collect()
    }

    fn redistribute_parts(
        part: Option<&Self>,
        over: &Redistribution<'_>,
    ) -> Result<Option<Self>, AppError> {
        let (shape, blocks) = read_descriptors::<T>(over.descriptors())?;
        let mut from = vec![Block::empty(shape.len()); over.ranks()];
        for (rank, block) in over.from().iter().zip(blocks) {
            from[*rank] = block;
        }
        let layouts: Vec<_> = over
            .to()
            .iter()
            .map(|ranks| Layout::rows(&shape, ranks.len()))
            .collect();
        let mut to = vec![Block::empty(shape.len()); over.ranks()];
        for (ranks, layout) in over.to().iter().zip(&layouts) {
            for (place, rank) in ranks.iter().enumerate() {
                to[*rank] = layout.block(place);
            }
        }
        let local = Move::of_all(over.rank(), &from, &to).run(
            over.collective(),
            part.map_or(&[][..], |part| part.local()),
            header("moves", &Layout::rows(&shape, 1), &[]),
        )?;
        Ok(over.place().map(|(set, place)| {
            let layout = Arc::new(layouts[set].clone());
            Self::of(layout, place, local, u64::MAX)
        }))
    }

    fn assemble(parts: &SavedParts<'_, Self>, rank: usize, ranks: usize) -> Result<Self, AppError> {
        let (shape, blocks) = read_descriptors::<T>(parts.descriptors())?;
        let layout = Layout::rows(&shape, ranks);
        let own = layout.block(rank);
        let no_room =
            || AppError::message(format!("there is no memory for a block of {}", own.len()));
        let mut local: Vec<T> = try_zeroed(own.len()).ok_or_else(no_room)?;
        for (saved, block) in blocks.iter().enumerate() {
            if block.shared(&own).is_empty() {
                continue;
            }
            let part = parts.read(saved)?;
            let fits = part.shape() == shape && part.block() == *block;
            if !fits || part.local.len() != block.len() {
                let why = format!("part {saved} of an array is not the one that was saved with it");
                return Err(AppError::message(why));
            }
            copy(block, &part.local, &own, &mut local);
        }
        Ok(Self::of(Arc::new(layout), rank, local, u64::MAX))
    }

    /// Checks that the blocks tile the array.
    fn check(descriptors: &[Vec<u64>]) -> Result<(), AppError> {
        let (shape, blocks) = read_descriptors::<T>(descriptors)?;
        Layout::of_blocks(&shape, blocks)?;
        Ok(())
    }

    fn bind(&self, at: &Placement) {
        self.set.store(at.set(), Ordering::Relaxed);
        // An array that was an input keeps its identity.
        let _ = self.origin.set(at.next_origin());
    }
}

/// The shape, and the blocks of all parts. Checks that each is in an array that memory may hold, since descriptors may
/// come from a store or another rank.
fn read_descriptors<T>(descriptors: &[Vec<u64>]) -> Result<(Vec<usize>, Vec<Block>), AppError> {
    let bad = || AppError::message("the parts of an array are of different arrays");
    let outside = || AppError::message("a part of an array lies outside of it, or is too large");
    let first = descriptors.first().ok_or_else(bad)?;
    let dimensions = first.len() / 3;
    let shape = first.get(..dimensions).ok_or_else(bad)?;
    let sizes = |numbers: &[u64]| -> Result<Vec<usize>, AppError> {
        let size = |number: &u64| usize::try_from(*number).map_err(AppError::from);
        numbers.iter().map(size).collect()
    };
    let block = |part_descriptor: &Vec<u64>| -> Result<Block, AppError> {
        let (own, rest) = part_descriptor
            .split_at_checked(dimensions)
            .ok_or_else(bad)?;
        if own != shape || rest.len() != 2 * dimensions {
            return Err(bad());
        }
        let (offset, extent) = rest.split_at(dimensions);
        Ok(Block {
            offset: sizes(offset)?,
            extent: sizes(extent)?,
        })
    };
    let blocks = descriptors
        .iter()
        .map(block)
        .collect::<Result<Vec<_>, _>>()?;
    let shape = sizes(shape)?;
    match blocks
        .iter()
        .all(|block| block.is_in(&shape, size_of::<T>()))
    {
        true => Ok((shape, blocks)),
        false => Err(outside()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Impossible claims of a store or a peer are errors, and cause no panic or abort.
    #[test]
    fn descriptors_of_impossible_arrays_are_errors() {
        let huge = u64::MAX;
        let lists: [&[u64]; 7] = [
            &[huge, 0, huge],
            &[huge / 2, huge / 2, 0, 0, huge / 2, huge / 2],
            &[3, huge, 3],
            &[3, 1, huge],
            &[huge / 8, 0, huge / 8],
            &[huge, 0, 0],
            &[1 << 58, 0, 1 << 58],
        ];
        let read = |_: usize| -> Result<DistArray<f64>, sde_engine::archiver::ArchiveError> {
            panic!("it is not to be read")
        };
        for part_descriptor in lists {
            let descriptors = [part_descriptor.to_vec()];
            let assembled = DistArray::assemble(&SavedParts::new(&descriptors, &read), 0, 1);
            assert!(assembled.is_err(), "{part_descriptor:?}");
        }
        for part_descriptor in &lists[..6] {
            assert!(
                DistArray::<f64>::check(&[part_descriptor.to_vec()]).is_err(),
                "{part_descriptor:?}"
            );
        }
    }
}
