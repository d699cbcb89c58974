//! Which rank writes for which.
//!
//! Each node has at most one writer, and the number of writers is limited, so that their files stay few whatever
//! the number of ranks. If there are more nodes than writers, neighbouring nodes share one.

/// The ranks of a program, and the writer of each. All ranks compute the same parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// The node of each rank.
    nodes: Vec<usize>,
    /// The lowest rank of each node.
    leaders: Vec<usize>,
    /// The number of writers.
    writers: usize,
}

impl Parts {
    /// Parts of ranks on these nodes, with at most `most` writers.
    pub(super) fn new(nodes: Vec<usize>, most: usize) -> Self {
        let count = nodes.iter().max().map_or(0, |last| last + 1);
        let mut leaders = vec![usize::MAX; count];
        for (rank, node) in nodes.iter().enumerate() {
            leaders[*node] = leaders[*node].min(rank);
        }
        Self {
            writers: most.clamp(1, count.max(1)),
            nodes,
            leaders,
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn writers(&self) -> usize {
        self.writers
    }

    /// The lowest rank on the node of a rank.
    pub(super) fn leader(&self, rank: usize) -> usize {
        self.leaders[self.nodes[rank]]
    }

    /// The number of the writer that writes for a rank.
    pub(super) fn writer(&self, rank: usize) -> usize {
        self.nodes[rank] * self.writers / self.leaders.len()
    }

    /// The rank of a writer: the lowest on the first of its nodes.
    fn rank_of(&self, writer: usize) -> usize {
        // The first node `n` with `n * writers / nodes == writer`.
        let node = (writer * self.leaders.len()).div_ceil(self.writers);
        self.leaders[node]
    }

    /// The rank's number as a writer, if it is one.
    pub(super) fn own(&self, rank: usize) -> Option<usize> {
        let writer = self.writer(rank);
        (self.rank_of(writer) == rank).then_some(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This many ranks on each of this many nodes, by blocks and in turn.
    fn parts(nodes: usize, each: usize, most: usize) -> [Parts; 2] {
        let ranks = nodes * each;
        let blocks = (0..ranks).map(|rank| rank / each).collect();
        let turns = (0..ranks).map(|rank| rank % nodes).collect();
        [Parts::new(blocks, most), Parts::new(turns, most)]
    }

    #[test]
    fn each_rank_has_one_writer_and_each_node_one_at_most() {
        for (nodes, each, most) in [
            (1, 1, 1),
            (1, 8, 32),
            (2, 3, 32),
            (5, 2, 3),
            (7, 1, 32),
            (33, 2, 32),
            (100, 100, 32),
            (100, 1, 0),
        ] {
            for parts in parts(nodes, each, most) {
                let writers = parts.writers();
                assert_eq!(writers, most.clamp(1, nodes));
                let all: Vec<_> = (0..writers).map(|w| parts.rank_of(w)).collect();
                for (writer, rank) in all.iter().enumerate() {
                    assert_eq!(parts.own(*rank), Some(writer));
                    assert_eq!(parts.leader(*rank), *rank);
                }
                let mut distinct = all.clone();
                distinct.dedup();
                assert_eq!(distinct.len(), writers);
                let own = (0..parts.ranks()).filter_map(|rank| parts.own(rank));
                assert_eq!(own.count(), writers);
                for rank in 0..parts.ranks() {
                    assert!(parts.writer(rank) < writers);
                    let leader = parts.leader(rank);
                    assert!(writers < nodes || all[parts.writer(rank)] == leader);
                }
            }
        }
    }
}
