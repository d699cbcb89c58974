//! A group that counts what goes through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sde::{GroupError, ProcessGroup, Subgroup};

/// What ranks have done together, all of them counted as one.
#[derive(Default)]
pub struct Counts {
    /// The bytes that went from one rank to another, where each has something else for each.
    pub moved: AtomicUsize,
    /// The bytes that each rank got, where all get the same.
    pub gathered: AtomicUsize,
}

impl Counts {
    /// Begins to count.
    pub fn begin(&self) {
        self.moved.store(0, Ordering::SeqCst);
        self.gathered.store(0, Ordering::SeqCst);
    }
}

/// Counts for all ranks.
pub struct Counting {
    pub group: Box<dyn ProcessGroup>,
    pub counts: Arc<Counts>,
    /// Called whenever a rank begins to wait for others.
    pub waits: Arc<dyn Fn() + Send + Sync>,
}

impl ProcessGroup for Counting {
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
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        (self.waits)();
        self.group.meet(message, patience, late)
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        self.counts.gathered.fetch_add(all.len(), Ordering::SeqCst);
        self.group.all_gather(mine, counts, all)
    }

    fn all_to_all(
        &self,
        send: &[u8],
        send_counts: &[usize],
        receive: &mut [u8],
        receive_counts: &[usize],
    ) -> Result<(), GroupError> {
        let to_others = send.len() - send_counts[self.rank()];
        self.counts.moved.fetch_add(to_others, Ordering::SeqCst);
        self.group
            .all_to_all(send, send_counts, receive, receive_counts)
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        let part = self.group.split(color, key)?;
        let counted = |group| Self {
            group,
            counts: Arc::clone(&self.counts),
            waits: Arc::clone(&self.waits),
        };
        Ok(part.map(|group| Box::new(counted(group)) as _))
    }

    fn leave(&self) {
        self.group.leave();
    }
}
