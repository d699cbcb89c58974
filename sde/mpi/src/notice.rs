//! Small messages between ranks, out of turn.
//!
//! They all go over one communicator of the session and say which group they are about, so that
//! one that nobody waits for any more is dropped, and never comes to a later group.

/// What one rank tells another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The rank enters no round any more.
    Left,
    /// The rank waits in its last round. Who is there too answers.
    WhoIsHere,
    /// The answer.
    Here,
}

impl Notice {
    pub(crate) fn encode(self) -> [u64; 4] {
        let kind = match self.kind {
            Kind::Left => 0,
            Kind::WhoIsHere => 1,
            Kind::Here => 2,
        };
        [kind, self.group, self.rank as u64, self.rounds]
    }

    pub(crate) fn decode([kind, group, rank, rounds]: [u64; 4]) -> Option<Self> {
        let kind = match kind {
            0 => Kind::Left,
            1 => Kind::WhoIsHere,
            2 => Kind::Here,
            _ => return None,
        };
        let rank = usize::try_from(rank).ok()?;
        Some(Self {
            kind,
            group,
            rank,
            rounds,
        })
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
        for kind in [Kind::Left, Kind::WhoIsHere, Kind::Here] {
            let notice = Notice {
                kind,
                group: u64::MAX,
                rank: 7,
                rounds: 3,
            };
            assert_eq!(Notice::decode(notice.encode()), Some(notice));
        }
        assert_eq!(Notice::decode([3, 0, 0, 0]), None);
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
