//! Moving the elements of an array from one layout to another.
//!
//! Each rank sends every other what of its block the other is to have. Both know all blocks, so
//! nothing but elements is sent. Where they lie in the right order already on all ranks, as rows do,
//! they are sent and received in place, without a copy.
//!
//! Else they are packed, sent and unpacked in turns: what is packed in one turn stays within the processor's
//! cache, and no memory is needed besides the array. What a rank keeps is copied, and not sent.

use std::ops::Range;

use super::block::Block;
use crate::bulk::Element;
use crate::error::Error;
use crate::ranks::collective::{Body, Header, Ranks};

/// What a rank sends in a turn, in bytes.
const TURN: usize = 1 << 20;

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

    /// How many of its elements are in a turn, which is a range of them.
    fn count(&self, turn: &Range<usize>) -> usize {
        turn.end.min(self.len()).saturating_sub(turn.start)
    }

    /// Where in the block they lie.
    fn within(&self, turn: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let (length, mut next) = (self.length, turn.start);
        let end = turn.end.min(self.len());
        std::iter::from_fn(move || {
            let line = (next < end).then(|| self.starts[next / length])?;
            let offset = next % length;
            let count = (length - offset).min(end - next);
            next += count;
            Some(line + offset..line + offset + count)
        })
    }
}

impl Move<'_> {
    /// What this rank has afterwards. The header says what all are about to do.
    pub(super) fn run<T: Element>(&self, local: &[T], header: Header) -> Result<Vec<T>, Error> {
        let own = self.ranks.rank();
        let (source, target) = (&self.from[own], &self.to[own]);
        let pieces = |block: &Block, others: &[Block]| -> Vec<Piece> {
            others.iter().map(|other| Piece::of(block, other)).collect()
        };
        let (mut sends, mut gets) = (pieces(source, self.to), pieces(target, self.from));
        let is_in_place = in_place(&sends, local.len()) && in_place(&gets, target.len());
        let others = |pieces: &[Piece]| -> usize {
            let others = pieces.iter().enumerate().filter(|(rank, _)| *rank != own);
            others.map(|(_, piece)| piece.len()).max().unwrap_or(0)
        };
        let met = self.ranks.meet(header.with_body(Body::Elements {
            most: others(&sends),
            are_in_place: is_in_place,
        }))?;
        let elements = met.iter().filter_map(|header| match header.body {
            Body::Elements { most, are_in_place } => Some((most, are_in_place)),
            _ => None,
        });
        let (most, in_place): (Vec<_>, Vec<_>) = elements.unzip();
        if in_place.iter().all(|is_in_place| *is_in_place) {
            return self.at_once(local, &sends, &gets, target.len());
        }
        let mut moved = vec![T::zeroed(); target.len()];
        copy(source, local, target, &mut moved);
        sends[own].starts.clear();
        gets[own].starts.clear();
        self.in_turns(
            local,
            &sends,
            &mut moved,
            &gets,
            most.into_iter().max().unwrap_or(0),
        )?;
        Ok(moved)
    }

    /// All elements lie where they are sent from and where they arrive.
    fn at_once<T: Element>(
        &self,
        local: &[T],
        sends: &[Piece],
        gets: &[Piece],
        elements: usize,
    ) -> Result<Vec<T>, Error> {
        let mut moved = vec![T::zeroed(); elements];
        let all = |pieces: &[Piece]| -> Vec<usize> { pieces.iter().map(Piece::len).collect() };
        self.swap(local, &all(sends), &mut moved, &all(gets))?;
        Ok(moved)
    }

    /// `most` is the largest number of elements that one rank has for another.
    fn in_turns<T: Element>(
        &self,
        local: &[T],
        sends: &[Piece],
        moved: &mut [T],
        gets: &[Piece],
        most: usize,
    ) -> Result<(), Error> {
        let others = self.ranks.size().saturating_sub(1).max(1);
        let step = (TURN / size_of::<T>().max(1) / others).max(1);
        let (mut packed, mut received) = (Vec::new(), Vec::new());
        for start in (0..most).step_by(step) {
            let turn = start..start + step;
            packed.clear();
            for place in sends.iter().flat_map(|piece| piece.within(&turn)) {
                packed.extend_from_slice(&local[place]);
            }
            let counts = |pieces: &[Piece]| -> Vec<usize> {
                pieces.iter().map(|piece| piece.count(&turn)).collect()
            };
            let arrive = counts(gets);
            received.resize(arrive.iter().sum(), T::zeroed());
            self.swap(&packed, &counts(sends), &mut received, &arrive)?;
            let mut rest = &received[..];
            for place in gets.iter().flat_map(|piece| piece.within(&turn)) {
                let (line, others) = rest.split_at(place.len());
                moved[place].copy_from_slice(line);
                rest = others;
            }
        }
        Ok(())
    }

    /// Gives each rank so many elements, and gets as many as it has for this one.
    fn swap<T: Element>(
        &self,
        send: &[T],
        send_counts: &[usize],
        receive: &mut [T],
        receive_counts: &[usize],
    ) -> Result<(), Error> {
        let bytes = |counts: &[usize]| -> Vec<usize> {
            counts.iter().map(|count| count * size_of::<T>()).collect()
        };
        self.ranks.swap_bytes(
            "the parts of an array",
            bytemuck::cast_slice(send),
            &bytes(send_counts),
            bytemuck::cast_slice_mut(receive),
            &bytes(receive_counts),
        )
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
