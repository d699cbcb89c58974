//! What a group of ranks can do.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Ranks that do things together: each operation but `rank`, `size`, `nodes`, `post`, `poll` and `leave` is
/// collective, which means that every rank of the group calls it, in the same order.
///
/// The engine calls all of them from one thread, the one it was built on. A group has its
/// own message space: what the program sends besides does not get in its way.
pub trait ProcessGroup: Send + Sync {
    /// Which of the ranks this is, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are, one at least.
    fn size(&self) -> usize;

    /// For each rank the number of the node that it is on: ranks with the same number share
    /// a memory and a local disk. Nodes are numbered from 0, in the order of their lowest rank.
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

    /// Gives each rank the bytes of all, in the order of ranks: rank `r` has `counts[r]` of them.
    /// All ranks give the same `counts`, and `all` has the length of their sum.
    ///
    /// # Errors
    /// If a rank has left, or the lengths do not fit.
    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError>;

    /// Gives ranks messages, from where they lie to where they are to be: `send` has the rank that each goes
    /// to, `receive` the rank that each comes from, which may be this one. Between two ranks the messages have one
    /// order in both lists, and the same lengths.
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

    /// Says something to a rank, without waiting for it; not collective. What one rank says to another comes in the order in
    /// which it was said.
    ///
    /// # Errors
    /// If it can't be said.
    fn post(&self, rank: usize, note: Note) -> Result<(), GroupError>;

    /// What a rank has said to this one, if it has come; not collective, and waits for nothing.
    ///
    /// # Errors
    /// If nothing has come and a rank has left.
    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError>;

    /// Says that this rank will come to nothing more. Others that wait for it, or will, get
    /// [`GroupError::Left`]. Not collective; does nothing the second time.
    fn leave(&self);
}

/// What a rank [posts](ProcessGroup::post) to another.
pub type Note = [u8; 16];

/// What a split gives to one rank.
pub type Subgroup = Option<Box<dyn ProcessGroup>>;

impl<G: ProcessGroup + 'static> From<G> for Box<dyn ProcessGroup> {
    fn from(group: G) -> Self {
        Box::new(group)
    }
}

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

/// The group of a program that runs on one process: what all ranks do together, it does alone.
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

    /// There is nobody to say it to.
    fn post(&self, _: usize, _: Note) -> Result<(), GroupError> {
        Ok(())
    }

    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        Ok(None)
    }

    fn leave(&self) {}
}

/// Copies the messages of a rank to where they are expected.
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

/// Copies what a rank has given, if it is as long as was expected.
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
