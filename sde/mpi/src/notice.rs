//! Small messages between ranks, out of turn.
//!
//! They all go over one communicator of the session and say which group they are about, so that
//! one that nobody waits for any more is dropped, and never comes to a later group.

use sde::Note;
use serde::{Deserialize, Serialize};

/// What one rank tells another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) kind: Kind,
    /// The group's number.
    pub(crate) group: u64,
    /// The rank, in the group, that it is about.
    pub(crate) rank: usize,
    /// How many rounds of the group this rank has entered.
    pub(crate) rounds: u64,
}

/// What a notice says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// The rank enters no round any more.
    Left,
    /// The rank waits in its last round. Who is there too answers.
    WhoIsHere,
    /// The answer.
    Here,
    /// The rank has posted this.
    Posted(Note),
}

impl Notice {
    /// How long the message is, whatever it says.
    pub(crate) const BYTES: usize = 48;

    pub(crate) fn encode(self) -> Vec<u8> {
        // It fits, and what has no bytes is no notice.
        let mut bytes = postcard::to_allocvec(&self).unwrap_or_default();
        bytes.resize(Self::BYTES, 0);
        bytes
    }

    /// `None` if the bytes are no notice.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

/// Up to this many ranks tell each other everything.
pub(crate) const FEW: usize = 16;

/// Whom a rank tells that a rank has left: in a small group all, in a large one those at
/// distances of a power of two, who pass it on while they wait. So each rank sends few messages,
/// and each that waits is told: the ranks that are told and those that are not have
/// neighbours among each other, and those come or leave.
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
