//! A rank's block with its halo, as stencils need it.
//!
//! A block with its halo is a block too, in coordinates that begin before the array. Beyond a periodic edge lies
//! another copy of the array, shifted by its length. So a halo exchange is one move of elements, of which only those
//! near a border go to other ranks.

use std::sync::Arc;

use sde_engine::bulk::Element;
use sde_engine::{Error, Handle};

use super::block::{Block, fits};
use super::dist_array::{DistArray, header};
use super::layout::{Layout, refused};
use super::moves::{Move, copy};

/// The values beyond the two ends of a dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Edge<T> {
    /// The array's own elements, from its other end.
    Periodic,
    /// This value, on each side of the array.
    Constant(T),
}

/// The elements of a rank's block and its halo, as made by [`DistArray::padded`].
pub struct Padded<T> {
    layout: Arc<Layout>,
    place: usize,
    set: u64,
    widths: Vec<usize>,
    /// The extent of the block with its halo.
    extent: Vec<usize>,
    local: Vec<T>,
}

impl<T: Element> DistArray<T> {
    /// This rank's block with a halo of the given width in each dimension, corners included. Elements of other ranks
    /// are received from them. Collective.
    ///
    /// ```
    /// use sde::ranks::Edge;
    /// use sde::{DistArray, Sde};
    ///
    /// let sde = Sde::new();
    /// let line = DistArray::from_fn(&sde, &[5], |at| at[0] as f64)?;
    /// // Central differences.
    /// let slope = |edge| -> Result<Vec<f64>, sde::Error> {
    ///     let padded = line.padded(&sde, &[1], &[edge])?;
    ///     Ok(padded.map(|near| (near.at([1]) - near.at([-1])) / 2.0).local().to_vec())
    /// };
    /// assert_eq!(slope(Edge::Constant(0.0))?, [0.5, 1.0, 1.0, 1.0, -1.5]);
    /// assert_eq!(slope(Edge::Periodic)?, [-1.5, 1.0, 1.0, 1.0, -1.5]);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Cost
    /// A copy of the block, and messages to and from the ranks that have elements of the halo. To find these ranks,
    /// each rank's block is looked at.
    ///
    /// # Errors
    /// On all ranks alike, if one does something else, or asks for other widths or edges. On this rank, if the array
    /// lies on another process set, other ranks can't join in here, there is not a width and an edge for each
    /// dimension, or a periodic dimension is shorter than its width.
    pub fn padded(
        &self,
        sde: &Handle,
        widths: &[usize],
        edges: &[Edge<T>],
    ) -> Result<Padded<T>, Error> {
        let halo = Halo::new(self.shape(), widths, edges)?;
        let block = self.block();
        let target = halo.around(&block);
        let mut local = match self.here(sde, "pads")? {
            Some(ranks) => {
                let header = header("moves", &self.layout, &halo.numbers());
                let of_rank = halo.around_all(ranks.rank(), self.layout.blocks());
                of_rank.run(ranks, &self.local, header)?
            }
            None => {
                let mut local = vec![T::zeroed(); target.len()];
                for place in halo.places(&block, &block) {
                    copy(&place, &self.local, &target, &mut local);
                }
                local
            }
        };
        halo.fill(&target, &mut local);
        Ok(Padded {
            layout: Arc::clone(&self.layout),
            place: self.place,
            set: self.set(),
            widths: widths.to_vec(),
            extent: target.extent,
            local,
        })
    }
}

/// The halos of an array's blocks, in coordinates that begin before the array.
struct Halo<'a, T> {
    shape: &'a [usize],
    widths: &'a [usize],
    edges: &'a [Edge<T>],
}

impl<'a, T: Element> Halo<'a, T> {
    fn new(shape: &'a [usize], widths: &'a [usize], edges: &'a [Edge<T>]) -> Result<Self, Error> {
        let halo = Self {
            shape,
            widths,
            edges,
        };
        if widths.len() != shape.len() || edges.len() != shape.len() {
            let (widths, edges) = (widths.len(), edges.len());
            let why = format!("{widths} widths and {edges} edges for an array of shape {shape:?}");
            return Err(refused(why));
        }
        let padded = shape.iter().zip(widths);
        let padded = padded.map(|(length, width)| length.saturating_add(width.saturating_mul(2)));
        // Coordinates reach up to three times the length.
        let can_be = fits(&padded.collect::<Vec<_>>(), size_of::<T>().max(8));
        let is_bad = |axis| halo.is_periodic(axis) && shape[axis] < widths[axis];
        if !can_be || (0..shape.len()).any(is_bad) {
            let why = format!("widths of {widths:?} around an array of shape {shape:?}");
            return Err(refused(why));
        }
        Ok(halo)
    }

    fn is_periodic(&self, axis: usize) -> bool {
        matches!(self.edges[axis], Edge::Periodic)
    }

    /// The widths and edges, on which all ranks must agree.
    fn numbers(&self) -> Vec<usize> {
        let mut numbers = self.widths.to_vec();
        for edge in self.edges {
            match edge {
                Edge::Periodic => numbers.push(usize::MAX),
                Edge::Constant(constant) => {
                    let bytes = bytemuck::bytes_of(constant).iter();
                    numbers.extend(bytes.map(|byte| usize::from(*byte)));
                }
            }
        }
        numbers
    }

    /// The coordinate at which the array begins.
    fn start(&self, axis: usize) -> usize {
        if self.is_periodic(axis) {
            self.shape[axis]
        } else {
            self.widths[axis]
        }
    }

    /// A block with its halo. An empty block has none.
    fn around(&self, block: &Block) -> Block {
        if block.is_empty() {
            return Block::empty(self.shape.len());
        }
        let axes = 0..self.shape.len();
        Block {
            offset: axes
                .clone()
                .map(|axis| self.start(axis) + block.offset[axis] - self.widths[axis])
                .collect(),
            extent: axes
                .map(|axis| block.extent[axis] + 2 * self.widths[axis])
                .collect(),
        }
    }

    /// The move of one rank's halo exchange. A rank sends to the same ranks that it receives from.
    fn around_all(&self, rank: usize, blocks: &[Block]) -> Move {
        let own = &blocks[rank];
        let mut of_rank = Move::new(self.places(own, own), self.around(own));
        for (other, block) in blocks.iter().enumerate() {
            if other != rank && self.are_near(own, block) {
                let places = self.places(own, block);
                of_rank.add(
                    other,
                    &places,
                    &self.around(block),
                    &self.places(block, own),
                );
            }
        }
        of_rank
    }

    fn are_near(&self, one: &Block, other: &Block) -> bool {
        let mut axes = 0..self.shape.len();
        let is_any = axes.all(|axis| self.starts(axis, one, other).next().is_some());
        is_any && !one.is_empty() && !other.is_empty()
    }

    /// All places at which a block, or a periodic copy of it, overlaps another block with its halo.
    fn places(&self, block: &Block, other: &Block) -> Vec<Block> {
        let mut places = vec![block.clone()];
        for axis in 0..self.shape.len() {
            let moved = |place: Block| {
                self.starts(axis, block, other).map(move |start| {
                    let mut place = place.clone();
                    place.offset[axis] += start;
                    place
                })
            };
            places = places.into_iter().flat_map(moved).collect();
        }
        places
    }

    /// The starts, along one dimension, of the array's copies whose `block` overlaps the other block with its halo.
    fn starts(&self, axis: usize, block: &Block, other: &Block) -> impl Iterator<Item = usize> {
        let first = self.start(axis) + other.offset[axis] - self.widths[axis];
        let end = first + other.extent[axis] + 2 * self.widths[axis];
        let (length, offset, extent) = (self.shape[axis], block.offset[axis], block.extent[axis]);
        let (lowest, count) = if self.is_periodic(axis) {
            (0, 3)
        } else {
            (self.widths[axis], 1)
        };
        let starts = (0..count).map(move |times| lowest + times * length);
        starts.filter(move |start| start + offset < end && first < start + offset + extent)
    }

    /// Fills the halo beyond the edges that are not periodic.
    fn fill(&self, target: &Block, local: &mut [T]) {
        for (axis, edge) in self.edges.iter().enumerate() {
            let Edge::Constant(constant) = edge else {
                continue;
            };
            let (width, length) = (self.widths[axis], self.shape[axis]);
            for start in [0, width + length] {
                let mut beyond = target.clone();
                beyond.offset[axis] = start;
                beyond.extent[axis] = width;
                let lines = target.lines(&target.shared(&beyond));
                for run in lines.runs(0..lines.len(), usize::MAX) {
                    local[run].fill(*constant);
                }
            }
        }
    }
}

impl<T: Element> Padded<T> {
    /// The elements of the block with its halo, by rows.
    #[must_use]
    pub fn local(&self) -> &[T] {
        &self.local
    }

    /// The number of elements with the halo in each dimension.
    #[must_use]
    pub fn extent(&self) -> &[usize] {
        &self.extent
    }

    /// An array with the original layout, whose elements the function makes from each element and its neighbours. Not
    /// collective.
    #[must_use]
    pub fn map<U: Element>(&self, mut each: impl FnMut(Near<'_, T>) -> U) -> DistArray<U> {
        let block = self.layout.block(self.place);
        let inner = Block {
            offset: self.widths.clone(),
            extent: block.extent,
        };
        let outer = Block::whole(&self.extent);
        let mut local = Vec::with_capacity(inner.len());
        let lines = outer.lines(&inner);
        for place in lines.runs(0..lines.len(), usize::MAX).flatten() {
            local.push(each(Near {
                padded: self,
                place,
            }));
        }
        DistArray::of(Arc::clone(&self.layout), self.place, local, self.set)
    }
}

/// One element and its neighbours.
pub struct Near<'a, T> {
    padded: &'a Padded<T>,
    place: usize,
}

impl<T: Element> Near<'_, T> {
    /// The element at this distance in each dimension.
    ///
    /// # Panics
    /// If a distance is larger than the width, or there is not one distance for each dimension.
    #[inline]
    #[must_use]
    pub fn at<const N: usize>(&self, distance: [isize; N]) -> T {
        let padded = self.padded;
        assert_eq!(N, padded.extent.len(), "a distance for each dimension");
        let mut place = self.place as isize;
        let mut stride = 1;
        for axis in (0..N).rev() {
            let is_near = distance[axis].unsigned_abs() <= padded.widths[axis];
            assert!(is_near, "it is further away than the array is padded");
            place += distance[axis] * stride;
            stride *= padded.extent[axis] as isize;
        }
        padded.local[place as usize]
    }
}

impl<T> std::fmt::Debug for Padded<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Padded")
            .field("block", &self.layout.block(self.place))
            .field("widths", &self.widths)
            .finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for Near<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Near({} of {:?})", self.place, self.padded)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Prints the row of docs/scaling.md.
    #[test]
    #[ignore = "long: it prints how long planning takes on 10,000 ranks"]
    fn what_planning_takes() {
        for (shape, parts) in [
            (&[6400, 6400][..], &[100, 100][..]),
            (&[640_000, 64], &[10_000, 1]),
            (&[1600, 1280, 1280], &[25, 20, 20]),
        ] {
            let layout = Layout::grid(shape, parts).unwrap();
            for edge in [Edge::Constant(0.0), Edge::Periodic] {
                let (widths, edges) = (vec![1; shape.len()], vec![edge; shape.len()]);
                let halo = Halo::<f64>::new(shape, &widths, &edges).unwrap();
                let begun = Instant::now();
                let times = 100;
                for rank in 0..times {
                    let numbers = halo.numbers();
                    let _header = std::hint::black_box(header("moves", &layout, &numbers));
                    std::hint::black_box(halo.around_all(rank * 100, layout.blocks()));
                }
                let each = begun.elapsed() / times as u32;
                println!("{parts:?}, {edge:?}: {each:.1?} a step");
            }
        }
    }
}
