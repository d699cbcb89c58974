//! Moving the elements of an array from one layout to another.
//!
//! Each rank sends every other rank the part of its block that the other is to have. Both know all blocks, so only
//! elements are sent. A part that is one run, as rows are, is sent and received without a copy.
//!
//! Other parts are packed, sent and unpacked in turns: the elements of a turn fit in the processor's cache, and no
//! memory is needed besides the array. A rank copies the part that it keeps.

use std::ops::Range;

use sde_engine::Error;
use sde_engine::bulk::{Element, try_zeroed};
use sde_engine::key::Digest;
use sde_engine::ranks::Collective;

use super::block::{Block, Lines};

/// The number of bytes that a rank packs in a turn.
const TURN: usize = 1 << 20;

/// The operation that all ranks announce when they begin to move elements.
pub(super) struct Header {
    pub(super) doing: String,
    /// A digest of all that the ranks must agree on.
    pub(super) alike: Digest,
}

/// The elements that one rank sends, receives and keeps.
pub(super) struct Move {
    /// The places of the rank's own elements.
    own: Vec<Block>,
    /// The block that the rank is to have.
    target: Block,
    sends: Vec<Piece>,
    gets: Vec<Piece>,
}

/// The elements that one other rank receives from a block, or sends for it.
struct Piece {
    rank: usize,
    lines: Vec<Lines>,
}

impl Piece {
    fn new(rank: usize, lines: impl Iterator<Item = Lines>) -> Option<Self> {
        let lines: Vec<_> = lines.collect();
        (!lines.is_empty()).then_some(Self { rank, lines })
    }

    fn len(&self) -> usize {
        self.lines.iter().map(Lines::len).sum()
    }

    /// The runs in the block that one turn of `turns` covers.
    fn runs(&self, turn: usize, turns: usize) -> Vec<Range<usize>> {
        let cut = |turn: usize| (self.len() as u128 * turn as u128 / turns as u128) as usize;
        let (mut start, mut end) = (cut(turn), cut(turn + 1));
        let mut runs = Vec::new();
        for lines in &self.lines {
            let all = lines.len();
            runs.extend(lines.runs(start.min(all)..end.min(all), usize::MAX));
            (start, end) = (start.saturating_sub(all), end.saturating_sub(all));
        }
        runs
    }

    /// The number of elements that are packed: none if the piece is a single run.
    fn packed(&self) -> usize {
        match &self.lines[..] {
            [one] if one.is_one() => 0,
            _ => self.len(),
        }
    }
}

/// One turn's elements between this rank and another: the rank, and the ranges in the block.
type Part = (usize, Vec<Range<usize>>);

impl Move {
    /// The move of a rank with elements at these places, without any other rank yet.
    pub(super) fn new(own: Vec<Block>, target: Block) -> Self {
        Self {
            own,
            target,
            sends: Vec::new(),
            gets: Vec::new(),
        }
    }

    /// One rank's share of moving all ranks from their blocks `from` to their blocks `to`. It may be empty.
    pub(super) fn of_all(rank: usize, from: &[Block], to: &[Block]) -> Self {
        let own = std::slice::from_ref(&from[rank]);
        let mut of_rank = Self::new(own.to_vec(), to[rank].clone());
        for (other, (from, to)) in from.iter().zip(to).enumerate() {
            if other != rank {
                of_rank.add(other, own, to, std::slice::from_ref(from));
            }
        }
        of_rank
    }

    /// Adds another rank, which is to have `to` and has elements at the places `from`. This rank has elements for it at
    /// `own`. Both ranks take the places in one order.
    pub(super) fn add(&mut self, rank: usize, own: &[Block], to: &Block, from: &[Block]) {
        let met = own.iter().filter(|block| block.meets(to));
        let lines = met.map(|block| block.lines(&block.shared(to)));
        self.sends.extend(Piece::new(rank, lines));
        let met = from.iter().filter(|block| block.meets(&self.target));
        let lines = met.map(|block| self.target.lines(&block.shared(&self.target)));
        self.gets.extend(Piece::new(rank, lines));
    }

    /// Moves the elements; gives those that this rank has afterwards. The header tells the operation.
    pub(super) fn run<T: Element>(
        &self,
        ranks: &dyn Collective,
        local: &[T],
        header: Header,
    ) -> Result<Vec<T>, Error> {
        let turns = self.turns::<T>(ranks, header)?;
        let elements = self.target.len();
        let mut moved = try_zeroed(elements).ok_or_else(|| {
            let of = std::any::type_name::<T>();
            let why = format!("there is no memory for {elements} of {of}");
            ranks.give_up("gathers an array", why)
        })?;
        for block in &self.own {
            copy(block, local, &self.target, &mut moved);
        }
        let (mut packed, mut received) = (Vec::new(), Vec::new());
        for turn in 0..turns {
            let send = send_of(local, &parts(&self.sends, turn, turns), &mut packed);
            let gets = parts(&self.gets, turn, turns);
            let mut receive = receive_of(&mut moved, &gets, &mut received);
            ranks.exchange("the parts of an array", &send, &mut receive)?;
            let mut rest = &received[..];
            for run in gets.iter().filter(is_packed).flat_map(|(_, runs)| runs) {
                let (line, others) = rest.split_at(run.len());
                moved[run.clone()].copy_from_slice(line);
                rest = others;
            }
        }
        Ok(moved)
    }

    /// The number of turns in which the ranks exchange packed elements.
    fn turns<T>(&self, ranks: &dyn Collective, header: Header) -> Result<usize, Error> {
        let packed = |pieces: &[Piece]| pieces.iter().map(Piece::packed).sum::<usize>();
        let most = packed(&self.sends).max(packed(&self.gets));
        let own = if self.sends.is_empty() && self.gets.is_empty() {
            0
        } else {
            most.saturating_mul(size_of::<T>()).div_ceil(TURN).max(1)
        };
        let turns = ranks.meet(&header.doing, &header.alike, Ok(own))?;
        Ok(turns.into_iter().max().unwrap_or(0))
    }
}

/// The parts of all pieces in a turn.
fn parts(pieces: &[Piece], turn: usize, turns: usize) -> Vec<Part> {
    let parts = pieces
        .iter()
        .map(|piece| (piece.rank, piece.runs(turn, turns)));
    parts.filter(|(_, runs)| !runs.is_empty()).collect()
}

fn is_packed((_, runs): &&Part) -> bool {
    runs.len() > 1
}

fn elements((_, runs): &Part) -> usize {
    runs.iter().map(Range::len).sum()
}

/// The messages to send in a turn. Parts of several runs are packed.
fn send_of<'a, T: Element>(
    local: &'a [T],
    parts: &[Part],
    packed: &'a mut Vec<T>,
) -> Vec<(usize, &'a [u8])> {
    packed.clear();
    for run in parts.iter().filter(is_packed).flat_map(|(_, runs)| runs) {
        packed.extend_from_slice(&local[run.clone()]);
    }
    let mut rest = &packed[..];
    let message = |part: &Part| {
        let elements = match &part.1[..] {
            [run] => &local[run.clone()],
            _ => {
                let (own, others) = rest.split_at(elements(part));
                rest = others;
                own
            }
        };
        (part.0, bytemuck::cast_slice(elements))
    };
    parts.iter().map(message).collect()
}

/// The buffers to receive a turn's messages. Parts of several runs are unpacked later.
fn receive_of<'a, T: Element>(
    moved: &'a mut [T],
    parts: &[Part],
    received: &'a mut Vec<T>,
) -> Vec<(usize, &'a mut [u8])> {
    received.resize(
        parts.iter().filter(is_packed).map(elements).sum(),
        T::zeroed(),
    );
    let mut places = Vec::with_capacity(parts.len());
    let mut rest = &mut received[..];
    for part in parts.iter().filter(is_packed) {
        let (own, others) = rest.split_at_mut(elements(part));
        places.push((part.0, bytemuck::cast_slice_mut(own)));
        rest = others;
    }
    let in_place = parts.iter().filter(|part| !is_packed(part));
    let mut in_place: Vec<_> = in_place.map(|(rank, runs)| (*rank, &runs[0])).collect();
    in_place.sort_by_key(|(_, run)| run.start);
    let (mut rest, mut end) = (moved, 0);
    for (rank, run) in in_place {
        let (before, others) = rest.split_at_mut(run.end - end);
        places.push((
            rank,
            bytemuck::cast_slice_mut(&mut before[run.start - end..]),
        ));
        (rest, end) = (others, run.end);
    }
    places
}

/// Copies the elements that two blocks on this rank share.
pub(super) fn copy<T: Element>(from: &Block, elements: &[T], to: &Block, local: &mut [T]) {
    let shared = from.shared(to);
    let (sources, targets) = (from.lines(&shared), to.lines(&shared));
    // A line of one block may be a part of a line of the other.
    let most = sources.length().min(targets.length());
    let all = 0..sources.len();
    let pairs = sources.runs(all.clone(), most).zip(targets.runs(all, most));
    for (source, target) in pairs {
        local[target].copy_from_slice(&elements[source]);
    }
}
