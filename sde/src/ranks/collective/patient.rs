//! A group lent to somebody who knows nothing of who may be late.

use std::time::Duration;

use crate::ranks::group::{GroupError, ProcessGroup, Subgroup};

/// Tells of who is late the first time, and whenever it has been twice as long since: of a rank that is late for
/// hours some ten times.
pub(super) fn seldom(tell: impl Fn(&[usize])) -> impl FnMut(&[usize]) {
    let mut times = 0_u32;
    move |ranks| {
        times = times.saturating_add(1);
        if times.is_power_of_two() {
            tell(ranks);
        }
    }
}

/// A group whose meetings say who is late, whatever the caller would have it say.
pub(super) struct Patient<'a> {
    pub(super) group: &'a dyn ProcessGroup,
    pub(super) patience: Duration,
    pub(super) late: &'a (dyn Fn(&[usize]) + Send + Sync),
}

impl ProcessGroup for Patient<'_> {
    fn rank(&self) -> usize {
        self.group.rank()
    }

    fn size(&self) -> usize {
        self.group.size()
    }

    fn nodes(&self) -> Vec<usize> {
        self.group.nodes()
    }

    fn meet(
        &self,
        message: &[u8],
        _: Duration,
        _: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        let mut late = seldom(self.late);
        self.group.meet(message, self.patience, &mut late)
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        self.group.all_gather(mine, counts, all)
    }

    fn all_to_all(
        &self,
        send: &[u8],
        send_counts: &[usize],
        receive: &mut [u8],
        receive_counts: &[usize],
    ) -> Result<(), GroupError> {
        self.group
            .all_to_all(send, send_counts, receive, receive_counts)
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        self.group.split(color, key)
    }

    fn leave(&self) {
        self.group.leave();
    }
}
