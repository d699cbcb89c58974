//! The operations of a group of ranks.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Ranks that work together. Each operation but `rank`, `size`, `nodes`, `post`, `poll` and `leave` is collective:
/// every rank of the group calls it, in the same order.
///
/// The engine calls all of them from one thread, the one it was built on. A group has its own message space, apart from
/// the program's own messages.
///
/// A later release adds methods only with a default, so that an implementation of today still compiles.
pub trait ProcessGroup: Send + Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks, one at least.
    fn size(&self) -> usize;

    /// The number of the node of each rank: ranks with one number share a memory and a local disk. Nodes are numbered
    /// from 0, in the order of their lowest rank.
    fn nodes(&self) -> Vec<usize>;

    /// Waits for all ranks, and gives the messages of all, one after the other in the order of
    /// ranks. All messages have the same length.
    ///
    /// While it waits it says which ranks have not come, each time that `patience` has passed;
    /// an implementation that can't know all of them names those that it knows of.
    ///
    /// # Errors
    /// If a rank has left, or gave another length.
    fn meet(
        &self,
        message: &[u8],
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError>;

    /// Gathers the bytes of all ranks on each, in the order of ranks: rank `r` has `counts[r]` of them. All ranks
    /// give the same `counts`, and `all` has the length of their sum.
    ///
    /// # Errors
    /// If a rank has left, or the lengths do not fit.
    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError>;

    /// Sends messages directly between buffers: `send` names the rank that each message goes to, `receive` the rank
    /// that each comes from, which may be this one. Between two ranks the messages have the same order and the same
    /// lengths in both lists.
    ///
    /// # Errors
    /// If a rank has left, or the lengths do not fit.
    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError>;

    /// Makes a group of the ranks that give the same `color`, in the order of `key`, and of
    /// their ranks where keys are equal. `None` for a rank that gives no color.
    ///
    /// # Errors
    /// If a rank has left.
    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError>;

    /// Sends a note to a rank, without waiting for it; not collective. Notes from one rank to another arrive in the
    /// order in which they were posted.
    ///
    /// # Errors
    /// If the note can't be sent.
    fn post(&self, rank: usize, note: Note) -> Result<(), GroupError>;

    /// The next note to this rank, if one has arrived; not collective, and does not wait.
    ///
    /// # Errors
    /// If nothing has come and a rank has left.
    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError>;

    /// Announces that this rank has left. Ranks that wait for it, now or later, get [`GroupError::Left`]. Not
    /// collective; further calls have no effect.
    fn leave(&self);
}

/// The message of a [post](ProcessGroup::post).
pub type Note = [u8; 16];

/// The result of a split on one rank.
pub type Subgroup = Option<Box<dyn ProcessGroup>>;

impl<G: ProcessGroup + 'static> From<G> for Box<dyn ProcessGroup> {
    fn from(group: G) -> Self {
        Box::new(group)
    }
}

/// A collective operation failed. Unless the variant says otherwise, each rank of the group gets the same error.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A rank ended, or dropped the group, while others wait for it.
    #[error("rank {rank} has left; the ranks of a process set make the same calls, up to `finish`")]
    #[non_exhaustive]
    Left {
        /// The rank, in this group.
        rank: usize,
    },
    /// The ranks gave lengths that do not fit together, which the engine does not do.
    #[error("rank {rank} gave {given} bytes where {expected} were expected")]
    #[non_exhaustive]
    Length {
        /// The rank, in this group.
        rank: usize,
        /// The length it gave.
        given: usize,
        /// The length that was expected of it.
        expected: usize,
    },
    /// Anything else, on this rank.
    #[error("{0}")]
    Other(String),
}

crate::error::debug_as_said!(GroupError);

impl GroupError {
    /// The error where this rank of the group has left.
    #[must_use]
    pub const fn left(rank: usize) -> Self {
        Self::Left { rank }
    }

    /// The error where this rank gave so many bytes, and not as many as expected.
    #[must_use]
    pub const fn length(rank: usize, given: usize, expected: usize) -> Self {
        Self::Length {
            rank,
            given,
            expected,
        }
    }
}

/// The group of a program that runs on one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneProcess;

impl ProcessGroup for OneProcess {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn nodes(&self) -> Vec<usize> {
        vec![0]
    }

    fn meet(
        &self,
        message: &[u8],
        _: Duration,
        _: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        Ok(message.to_vec())
    }

    fn all_gather(&self, mine: &[u8], _: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        fill(0, all, Some(mine))
    }

    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        deliver(0, send.iter().copied(), 0, receive)
    }

    fn split(&self, color: Option<u32>, _: i64) -> Result<Subgroup, GroupError> {
        Ok(color.map(|_| Box::new(Self) as _))
    }

    fn post(&self, _: usize, _: Note) -> Result<(), GroupError> {
        Ok(())
    }

    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        Ok(None)
    }

    fn leave(&self) {}
}

/// Copies the messages of a rank into the buffers that expect them.
pub(super) fn deliver<'a>(
    from: usize,
    messages: impl Iterator<Item = (usize, &'a [u8])>,
    rank: usize,
    receive: &mut [(usize, &mut [u8])],
) -> Result<(), GroupError> {
    let mut messages = messages.filter(|(to, _)| *to == rank);
    for (_, place) in receive.iter_mut().filter(|(of, _)| *of == from) {
        fill(from, place, messages.next().map(|(_, message)| message))?;
    }
    match messages.next() {
        None => Ok(()),
        Some((_, message)) => fill(from, &mut [], Some(message)),
    }
}

/// Copies the bytes of a rank into a buffer of the same length.
pub(super) fn fill(rank: usize, place: &mut [u8], given: Option<&[u8]>) -> Result<(), GroupError> {
    let fits = given.filter(|given| given.len() == place.len());
    fits.map(|given| place.copy_from_slice(given))
        .ok_or_else(|| GroupError::Length {
            rank,
            given: given.map_or(0, <[u8]>::len),
            expected: place.len(),
        })
}

/// Numbers from 0 in the order in which names first come, for [`ProcessGroup::nodes`].
pub fn renumbered<T: Hash + Eq>(names: impl Iterator<Item = T>) -> Vec<usize> {
    let mut numbers = HashMap::new();
    let number = |name| {
        let next = numbers.len();
        *numbers.entry(name).or_insert(next)
    };
    names.map(number).collect()
}
