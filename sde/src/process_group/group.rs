//! What a group of ranks can do.

use std::time::Duration;

use super::GroupError;

/// Ranks that do things together: each operation but `rank`, `size`, `nodes` and `leave` is
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

    /// Gives each rank the bytes that the others have for it: of `send` the first
    /// `send_counts[0]` go to rank 0, the next to rank 1, and so on; `receive` is filled in
    /// the same way, with `receive_counts[r]` bytes from rank `r`.
    ///
    /// # Errors
    /// If a rank has left, or the lengths do not fit.
    fn all_to_all(
        &self,
        send: &[u8],
        send_counts: &[usize],
        receive: &mut [u8],
        receive_counts: &[usize],
    ) -> Result<(), GroupError>;

    /// Makes a group of the ranks that give the same `color`, in the order of `key`, and of
    /// their ranks where keys are equal. `None` for a rank that gives no color.
    ///
    /// # Errors
    /// If a rank has left.
    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError>;

    /// Says that this rank will come to nothing more. Others that wait for it, or will, get
    /// [`GroupError::Left`]. Not collective; does nothing the second time.
    fn leave(&self);
}

/// What a split gives to one rank.
pub type Subgroup = Option<Box<dyn ProcessGroup>>;

/// What a split gives can be an engine's group too.
impl<G: ProcessGroup + ?Sized> ProcessGroup for Box<G> {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn nodes(&self) -> Vec<usize> {
        (**self).nodes()
    }

    fn meet(
        &self,
        message: &[u8],
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        (**self).meet(message, patience, late)
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        (**self).all_gather(mine, counts, all)
    }

    fn all_to_all(
        &self,
        send: &[u8],
        send_counts: &[usize],
        receive: &mut [u8],
        receive_counts: &[usize],
    ) -> Result<(), GroupError> {
        (**self).all_to_all(send, send_counts, receive, receive_counts)
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        (**self).split(color, key)
    }

    fn leave(&self) {
        (**self).leave();
    }
}
