//! A group lent to code that knows nothing of ranks that may be late.

use std::time::Duration;

use crate::ranks::group::{GroupError, Note, ProcessGroup, Subgroup, all_but_meet_by};

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
    all_but_meet_by!(self => self.group);

    fn meet(
        &self,
        message: &[u8],
        _: Duration,
        _: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        let mut late = seldom(self.late);
        self.group.meet(message, self.patience, &mut late)
    }
}
