//! Small messages between ranks, outside of rounds.
//!
//! All go over one communicator of the session and name their group. So a notice to a group that has ended is dropped,
//! and never reaches a later group.

use sde::ranks::Note;
use serde::{Deserialize, Serialize};

/// A message from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) kind: Kind,
    /// The group's number.
    pub(crate) group: u64,
    /// The rank in the group that the notice is about.
    pub(crate) rank: usize,
    /// The number of rounds of the group that this rank has entered.
    pub(crate) rounds: u64,
}

/// The content of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// The rank will enter no more rounds.
    Left,
    /// The rank waits in its last round; ranks that are in it answer.
    WhoIsHere,
    /// The answer to `WhoIsHere`.
    Here,
    /// A note that the rank has posted.
    Posted(Note),
}

impl Notice {
    /// The length of every notice.
    pub(crate) const BYTES: usize = 48;

    pub(crate) fn encode(self) -> Vec<u8> {
        // A notice always fits; zeros would name no group.
        let mut bytes = postcard::to_allocvec(&self).unwrap_or_default();
        bytes.resize(Self::BYTES, 0);
        bytes
    }

    /// `None` if the bytes are no notice.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

/// The largest group whose ranks all tell one another everything.
pub(crate) const FEW: usize = 16;

/// The ranks that a rank tells of a departure: in a small group all, in a large one those at distances of a power of
/// two, which pass it on while they wait. So each rank sends few messages, and each rank that waits is told: told and
/// untold ranks have neighbours among each other, and those either wait or leave.
pub(crate) fn neighbours(rank: usize, size: usize) -> Vec<usize> {
    if size <= FEW {
        return (0..size).filter(|other| *other != rank).collect();
    }
    let distances = std::iter::successors(Some(1), |distance| Some(2 * distance));
    let distances = distances.take_while(|distance| *distance < size);
    let both = distances.flat_map(|d| [(rank + d) % size, (rank + size - d) % size]);
    let mut neighbours: Vec<_> = both.filter(|other| *other != rank).collect();
    neighbours.sort_unstable();
    neighbours.dedup();
    neighbours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_comes_as_it_was_sent() {
        for kind in [
            Kind::Left,
            Kind::WhoIsHere,
            Kind::Here,
            Kind::Posted([255; 16]),
        ] {
            let notice = Notice {
                kind,
                group: u64::MAX,
                rank: usize::MAX,
                rounds: u64::MAX,
            };
            let bytes = notice.encode();
            assert_eq!(bytes.len(), Notice::BYTES);
            assert_eq!(Notice::decode(&bytes), Some(notice));
        }
        assert_eq!(Notice::decode(&[4; Notice::BYTES]), None);
    }

    #[test]
    fn ranks_are_neighbours_of_each_other_and_few() {
        assert_eq!(neighbours(1, 3), [0, 2]);
        assert_eq!(neighbours(0, 1), [0; 0]);
        for size in [17, 100, 1024] {
            for rank in 0..size {
                let mine = neighbours(rank, size);
                assert!(mine.len() <= 2 * size.ilog2() as usize + 2);
                for other in mine {
                    assert_ne!(other, rank);
                    assert!(neighbours(other, size).contains(&rank));
                }
            }
        }
    }
}
