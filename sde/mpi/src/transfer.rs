//! Bytes from rank to rank, in one call of MPI where they fit.
//!
//! MPI's counts and displacements are C ints. A gather of many ranks can be too large by its
//! total, although each part is small. All that is checked here was checked on all ranks: the
//! lengths fit together, and all ranks see the same total, so that they make the same calls.
//!
//! An empty slice is given to MPI at an address of its own ([`real`]): that of an empty `Vec<u8>`
//! is 1, and Open MPI's `MPI_IN_PLACE` is 1 too.

use std::ops::Range;

use mpi::Count;
use mpi::datatype::{Partition, PartitionMut};
use mpi::point_to_point::send_receive_into;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

/// What goes in one call, and in pieces of what length the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// A buffer of up to so many bytes is one call.
    pub(crate) whole: usize,
    /// The length of a piece.
    pub(crate) piece: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            whole: i32::MAX as usize,
            piece: 256 << 20,
        }
    }
}

/// Gives each rank the bytes of all. Rank `r` has `counts[r]`, and `all` is as long as all.
pub(crate) fn gather(
    communicator: &SimpleCommunicator,
    limits: Limits,
    mine: &[u8],
    counts: &[usize],
    all: &mut [u8],
) {
    let places = places(counts);
    let rank = usize::try_from(communicator.rank()).unwrap_or(0);
    let start = places.get(rank).map_or(0, |place| place.start);
    for window in windows(all.len(), limits) {
        let parts: Vec<_> = places.iter().map(|p| within(p, &window)).collect();
        let part = parts.get(rank).map_or(0..0, Range::clone);
        let from = if part.is_empty() {
            NOTHING
        } else {
            &mine[part.start - start..part.end - start]
        };
        let (counts, starts) = as_counts(&parts, window.start);
        let mut to = PartitionMut::new(&mut all[window], counts, starts);
        communicator.all_gather_varcount_into(from, &mut to);
    }
}

/// Gives each rank what the others have for it. `largest` are the longest buffer and the largest
/// count on any rank.
pub(crate) fn exchange(
    communicator: &SimpleCommunicator,
    limits: Limits,
    (largest_buffer, largest_count): (usize, usize),
    (send, send_counts): (&[u8], &[usize]),
    (receive, receive_counts): (&mut [u8], &[usize]),
) {
    let (from, to) = (places(send_counts), places(receive_counts));
    let (send, mut nothing) = (real(send), [0]);
    let receive = if receive.is_empty() {
        &mut nothing[..0]
    } else {
        receive
    };
    if largest_buffer <= limits.whole {
        let (counts, starts) = as_counts(&from, 0);
        let from = Partition::new(send, counts, starts);
        let (counts, starts) = as_counts(&to, 0);
        let mut to = PartitionMut::new(receive, counts, starts);
        communicator.all_to_all_varcount_into(&from, &mut to);
        return;
    }
    // Each rank gives to the one so many further, and takes from the one so many behind. All go
    // through the same number of pieces, empty ones too, so that each finds its partner.
    let (size, rank) = (communicator.size(), communicator.rank());
    for distance in 0..size {
        let (next, previous) = ((rank + distance) % size, (rank + size - distance) % size);
        let (out, into) = (&from[next as usize], &to[previous as usize]);
        let next = communicator.process_at_rank(next);
        let previous = communicator.process_at_rank(previous);
        for piece in pieces(largest_count, limits.piece) {
            // Empty parts too are within buffers that have addresses.
            let out = &send[part_of(out, &piece)];
            let into = &mut receive[part_of(into, &piece)];
            send_receive_into(out, &next, into, &previous);
        }
    }
}

/// No bytes, at an address that means nothing to MPI.
const NOTHING: &[u8] = b"nothing".split_at(0).0;

/// The same bytes, not at an address that means something.
fn real(bytes: &[u8]) -> &[u8] {
    if bytes.is_empty() { NOTHING } else { bytes }
}

/// Where the bytes of each rank are.
fn places(counts: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let place = |count: &usize| {
        let start = end;
        end += count;
        start..end
    };
    counts.iter().map(place).collect()
}

/// The calls that a buffer is gathered by. None for an empty one.
fn windows(length: usize, limits: Limits) -> impl Iterator<Item = Range<usize>> {
    let piece = if length <= limits.whole {
        length
    } else {
        limits.piece
    };
    pieces(length, piece)
}

fn pieces(length: usize, piece: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..length).step_by(piece.max(1));
    starts.map(move |start| start..length.min(start + piece))
}

/// The part of a place that is in a window; empty, inside of the window, if there is none.
fn within(place: &Range<usize>, window: &Range<usize>) -> Range<usize> {
    let start = place.start.clamp(window.start, window.end);
    start..place.end.clamp(start, window.end)
}

/// A piece of a place, empty where the place has ended before.
fn part_of(place: &Range<usize>, piece: &Range<usize>) -> Range<usize> {
    let start = place.end.min(place.start + piece.start);
    start..place.end.min(place.start + piece.end)
}

/// Lengths and starts as MPI takes them; they fit, since the window does.
fn as_counts(parts: &[Range<usize>], origin: usize) -> (Vec<Count>, Vec<Count>) {
    let count = |n: usize| Count::try_from(n).unwrap_or(Count::MAX);
    let counts = parts.iter().map(|part| count(part.len())).collect();
    let starts = parts.iter().map(|part| count(part.start - origin));
    (counts, starts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits {
        whole: 10,
        piece: 4,
    };

    #[test]
    fn what_fits_is_one_call_and_the_rest_is_in_pieces() {
        let of = |length| windows(length, SMALL).collect::<Vec<_>>();
        assert_eq!(of(0), []);
        assert_eq!(of(10).len(), 1);
        assert_eq!(of(11), [0..4, 4..8, 8..11]);
        let beyond = (i32::MAX as usize) + 1;
        let calls: Vec<_> = windows(beyond, Limits::default()).collect();
        assert_eq!(calls.len(), 8);
        assert!(calls.iter().all(|call| call.len() <= 256 << 20));
    }

    #[test]
    fn the_parts_of_all_windows_are_the_whole() {
        let places = places(&[3, 0, 9, 1]);
        assert_eq!(places, [0..3, 3..3, 3..12, 12..13]);
        for place in &places {
            let parts = windows(13, SMALL).map(|window| {
                let part = within(place, &window);
                assert!(part.start >= window.start && part.end <= window.end);
                part
            });
            let bytes: Vec<usize> = parts.flatten().collect();
            assert_eq!(bytes, place.clone().collect::<Vec<_>>());
            let pieces: Vec<usize> = pieces(9, 4).flat_map(|p| part_of(place, &p)).collect();
            assert_eq!(pieces, place.clone().collect::<Vec<_>>());
        }
    }
}
