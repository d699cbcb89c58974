//! A group for code that knows nothing of ranks that may be late.

use std::time::Duration;

use super::Ranks;
use crate::ranks::group::{GroupError, Note, ProcessGroup, Subgroup};

impl Ranks {
    /// Runs a job that uses the group's own operations. Collective.
    pub(crate) fn with_group<T>(&self, doing: &str, job: impl FnOnce(&dyn ProcessGroup) -> T) -> T {
        job(&Patient { ranks: self, doing })
    }
}

/// A group whose meetings report late ranks, whatever the caller passes for that.
struct Patient<'a> {
    ranks: &'a Ranks,
    doing: &'a str,
}

impl ProcessGroup for Patient<'_> {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn size(&self) -> usize {
        self.ranks.size()
    }

    fn nodes(&self) -> Vec<usize> {
        self.ranks.group.nodes()
    }

    fn meet(
        &self,
        message: &[u8],
        _: Duration,
        _: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        self.ranks.meet_group(message, Some(self.doing))
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        self.ranks
            .operate(|group| group.all_gather(mine, counts, all))
    }

    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        self.ranks.operate(|group| group.exchange(send, receive))
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        self.ranks.operate(|group| group.split(color, key))
    }

    fn post(&self, rank: usize, note: Note) -> Result<(), GroupError> {
        self.ranks.operate(|group| group.post(rank, note))
    }

    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        self.ranks.operate(|group| group.poll())
    }

    fn leave(&self) {
        self.ranks.group.leave();
    }
}
