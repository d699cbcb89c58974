//! What a process group says when its ranks can't do something together.

/// Ranks could not do something together. Unless it says otherwise, each rank of the group
/// gets the same.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A rank ended, or dropped the group, while others wait for it.
    #[error("rank {rank} has left; the ranks of a process set make the same calls, up to `finish`")]
    Left {
        /// The rank, in this group.
        rank: usize,
    },
    /// The ranks gave lengths that do not fit together, which the engine does not do.
    #[error("rank {rank} gave {given} bytes where {expected} were expected")]
    Length {
        /// The rank, in this group.
        rank: usize,
        /// What it gave.
        given: usize,
        /// What was expected of it.
        expected: usize,
    },
    /// Anything else, on this rank.
    #[error("{0}")]
    Other(String),
}

crate::error::debug_as_said!(GroupError);
