//! Bytes from rank to rank, in one call of MPI where they fit.
//!
//! MPI's counts and displacements are C ints. A gather of many ranks can be too large by its total, although each part
//! is small. All ranks have checked that the lengths fit together, and see the same total, so they make the same calls.
//!
//! An empty slice is given to MPI at an address of its own ([`NOTHING`]): that of an empty `Vec<u8>` is 1, and Open
//! MPI's `MPI_IN_PLACE` is 1 too.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use mpi::datatype::PartitionMut;
use mpi::request::{Request, Scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use mpi::{Count, Rank};

use crate::ask::SPINS;

/// The limits above which buffers are sent in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The longest buffer that one call sends.
    pub(crate) whole: usize,
    /// The length of a piece.
    pub(crate) piece: usize,
}

impl Limits {
    /// The length of the pieces of a buffer.
    fn piece_of(self, length: usize) -> usize {
        let piece = if length <= self.whole {
            length
        } else {
            self.piece
        };
        piece.max(1)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            whole: i32::MAX as usize,
            piece: 256 << 20,
        }
    }
}

/// Gathers the bytes of all ranks. Rank `r` has `counts[r]` bytes, and `all` holds their sum.
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
        mpi::request::scope(|scope| {
            wait(communicator.immediate_all_gather_varcount_into(scope, from, &mut to));
        });
    }
}

/// Exchanges messages, one distance between ranks after another: each rank sends to the rank that far ahead, and
/// receives from the rank that far behind.
pub(crate) fn exchange(
    communicator: &SimpleCommunicator,
    limits: Limits,
    send: &[(usize, &[u8])],
    receive: &mut [(usize, &mut [u8])],
) {
    let size = usize::try_from(communicator.size()).unwrap_or(1);
    let rank = usize::try_from(communicator.rank()).unwrap_or(0);
    let (mut sends, mut receives) = (BTreeMap::new(), BTreeMap::new());
    for (to, message) in send {
        let messages: &mut Vec<&[u8]> = sends.entry((to + size - rank) % size).or_default();
        messages.push(message);
    }
    for (from, place) in receive {
        let places: &mut Vec<&mut [u8]> = receives.entry((rank + size - *from) % size).or_default();
        places.push(place);
    }
    let distances: BTreeSet<usize> = sends.keys().chain(receives.keys()).copied().collect();
    for distance in distances {
        let send = sends.remove(&distance).unwrap_or_default();
        let receive = receives.remove(&distance).unwrap_or_default();
        if distance == 0 {
            let own = send.into_iter().zip(receive);
            own.for_each(|(message, place)| place.copy_from_slice(message));
            continue;
        }
        let process = |rank: usize| {
            let rank = Rank::try_from(rank % size).unwrap_or(Rank::MAX);
            communicator.process_at_rank(rank)
        };
        let (next, previous) = (process(rank + distance), process(rank + size - distance));
        mpi::request::scope(|scope| {
            let places = receive
                .into_iter()
                .flat_map(|place| place.chunks_mut(limits.piece_of(place.len())));
            let receives = places.map(|place| previous.immediate_receive_into(scope, place));
            let mut requests: Vec<_> = receives.collect();
            let messages = send
                .into_iter()
                .flat_map(|message| message.chunks(limits.piece_of(message.len())));
            requests.extend(messages.map(|message| next.immediate_send(scope, message)));
            requests.into_iter().for_each(wait);
        });
    }
}

/// Waits for an operation, and soon yields the processor: there may be more ranks than cores, and MPI itself would spin
/// until the system takes the core from it.
fn wait<'a, D: ?Sized>(mut request: Request<'a, D, impl Scope<'a>>) {
    let mut spins = 0..SPINS;
    while let Err(waiting) = request.test() {
        request = waiting;
        if spins.next().is_none() {
            std::thread::yield_now();
        }
    }
}

/// An empty slice whose address has no meaning for MPI.
const NOTHING: &[u8] = b"nothing".split_at(0).0;

/// The range of each rank's bytes.
fn places(counts: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let place = |count: &usize| {
        let start = end;
        end += count;
        start..end
    };
    counts.iter().map(place).collect()
}

/// The ranges of a buffer that one call each gathers; none for an empty buffer.
fn windows(length: usize, limits: Limits) -> impl Iterator<Item = Range<usize>> {
    let piece = limits.piece_of(length);
    let starts = (0..length).step_by(piece);
    starts.map(move |start| start..length.min(start + piece))
}

/// The part of a place that is in a window; empty, inside of the window, if there is none.
fn within(place: &Range<usize>, window: &Range<usize>) -> Range<usize> {
    let start = place.start.clamp(window.start, window.end);
    start..place.end.clamp(start, window.end)
}

/// Lengths and starts as MPI's C ints; they fit, since the window does.
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
        }
    }
}
