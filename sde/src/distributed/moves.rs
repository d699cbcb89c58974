//! Moving the elements of an array from one layout to another.
//!
//! Each rank sends every other what of its block the other is to have. Both know all blocks, so
//! nothing but elements is sent. Where they lie in the right order already, as rows do, they are
//! sent and received in place, without a copy.

use super::block::Block;
use crate::bulk::Element;
use crate::error::Error;
use crate::process_group::Ranks;

/// Where elements come from and go to. Blocks are listed by rank; ranks without one have
/// an empty one.
pub(super) struct Move<'a> {
    pub(super) ranks: &'a Ranks,
    pub(super) from: &'a [Block],
    pub(super) to: &'a [Block],
}

/// The lines of one block that one other rank sends or gets.
struct Piece {
    starts: Vec<usize>,
    length: usize,
}

impl Piece {
    fn of(block: &Block, other: &Block) -> Self {
        let (starts, length) = block.lines(&block.shared(other));
        Self { starts, length }
    }

    fn len(&self) -> usize {
        self.starts.len() * self.length
    }
}

impl Move<'_> {
    /// What this rank has afterwards.
    pub(super) fn run<T: Element>(&self, local: &[T]) -> Result<Vec<T>, Error> {
        let own = self.ranks.rank();
        let (source, target) = (&self.from[own], &self.to[own]);
        let sends: Vec<_> = self.to.iter().map(|to| Piece::of(source, to)).collect();
        let gets: Vec<_> = self
            .from
            .iter()
            .map(|from| Piece::of(target, from))
            .collect();
        let bytes = |pieces: &[Piece]| -> Vec<usize> {
            pieces
                .iter()
                .map(|piece| piece.len() * size_of::<T>())
                .collect()
        };
        let (send_counts, get_counts) = (bytes(&sends), bytes(&gets));
        let packed;
        let send = match in_place(&sends, local.len()) {
            true => local,
            false => {
                packed = pack(&sends, local);
                &packed[..]
            }
        };
        let mut received = vec![T::zeroed(); gets.iter().map(Piece::len).sum()];
        self.ranks.swap_bytes(
            "the parts of an array",
            bytemuck::cast_slice(send),
            &send_counts,
            bytemuck::cast_slice_mut(&mut received),
            &get_counts,
        )?;
        match in_place(&gets, target.len()) {
            true => Ok(received),
            false => Ok(unpack(&gets, &received, target.len())),
        }
    }
}

/// Whether the pieces are all elements of a block, in their order.
fn in_place(pieces: &[Piece], elements: usize) -> bool {
    let mut next = 0;
    for piece in pieces {
        for start in &piece.starts {
            if *start != next {
                return false;
            }
            next += piece.length;
        }
    }
    next == elements
}

fn pack<T: Element>(pieces: &[Piece], local: &[T]) -> Vec<T> {
    let mut packed = Vec::with_capacity(pieces.iter().map(Piece::len).sum());
    for piece in pieces {
        for start in &piece.starts {
            packed.extend_from_slice(&local[*start..start + piece.length]);
        }
    }
    packed
}

fn unpack<T: Element>(pieces: &[Piece], received: &[T], elements: usize) -> Vec<T> {
    let mut local = vec![T::zeroed(); elements];
    let mut rest = received;
    for piece in pieces {
        for start in &piece.starts {
            let (line, others) = rest.split_at(piece.length);
            local[*start..start + piece.length].copy_from_slice(line);
            rest = others;
        }
    }
    local
}

/// What of one block another one takes, where both are on this rank.
pub(super) fn copy<T: Element>(from: &Block, elements: &[T], to: &Block, local: &mut [T]) {
    let shared = from.shared(to);
    let (sources, source_length) = from.lines(&shared);
    let (targets, target_length) = to.lines(&shared);
    // The lines of one may be parts of those of the other.
    let length = source_length.min(target_length);
    let split = |starts: Vec<usize>, whole: usize| -> Vec<usize> {
        let parts = |start: usize| (0..whole / length).map(move |n| start + n * length);
        starts.into_iter().flat_map(parts).collect()
    };
    if length == 0 {
        return;
    }
    let sources = split(sources, source_length);
    let targets = split(targets, target_length);
    for (source, target) in sources.into_iter().zip(targets) {
        local[target..target + length].copy_from_slice(&elements[source..source + length]);
    }
}
