//! Bodies that run on another thread than the one that may talk to other ranks.
//!
//! That thread sits at a desk meanwhile: it does what the other would do with a group, and something of its own in between.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{ThreadId, current};
use std::time::{Duration, Instant};

use super::Ranks;
use crate::parallel::{Errand, run_errand};
use crate::ranks::group::{GroupError, ProcessGroup};
use crate::sync::{lock, wait_timeout};

/// So long a meeting waits at most before its thread does what else it has to.
const LONGEST: Duration = Duration::from_millis(1);

/// Where a thread takes operations of groups that another asks for.
pub(crate) struct Desk {
    thread: ThreadId,
    asked: Mutex<VecDeque<Arc<Errand>>>,
    changed: Condvar,
    meanwhile: Box<dyn Fn() + Send + Sync>,
}

/// The desk of the ranks of a body, and the thread that the body runs on.
#[derive(Clone)]
pub(super) struct Lent {
    desk: Arc<Desk>,
    pub(super) to: ThreadId,
}

impl Desk {
    /// The desk of this thread, which does something `meanwhile` where it waits for other ranks.
    pub(crate) fn new(meanwhile: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            thread: current().id(),
            asked: Mutex::default(),
            changed: Condvar::new(),
            meanwhile: Box::new(meanwhile),
        }
    }

    /// Does what was asked for, or waits for so long that something is. Whether there was anything.
    pub(crate) fn serve(&self, longest: Duration) -> bool {
        let mut asked = lock(&self.asked);
        if asked.is_empty() {
            asked = wait_timeout(&self.changed, asked, longest).0;
        }
        let errand = asked.pop_front();
        drop(asked);
        errand.is_some_and(|errand| {
            errand.work();
            true
        })
    }

    fn ask<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        run_errand(job, |errand| {
            lock(&self.asked).push_back(errand);
            self.changed.notify_one();
        })
    }
}

impl Ranks {
    /// From here on this thread may do things together with other ranks, by that of the desk.
    pub(crate) fn lend(&self, desk: &Arc<Desk>) {
        let to = current().id();
        let desk = Arc::clone(desk);
        // They are lent once.
        let _ = self.lent.set(Lent { desk, to });
    }

    /// Does something with the group, on the thread that may.
    pub(super) fn operate<T: Send>(
        &self,
        operation: impl FnOnce(&dyn ProcessGroup) -> T + Send,
    ) -> T {
        match self.desk() {
            Some(desk) => desk.ask(|| operation(&*self.group)),
            None => operation(&*self.group),
        }
    }

    /// A meeting of the group. `late` hears of it as the group says.
    pub(super) fn meet_group(
        &self,
        message: &[u8],
        mut late: impl FnMut(&[usize]) + Send,
    ) -> Result<Vec<u8>, GroupError> {
        let Some(desk) = self.desk() else {
            return self.group.meet(message, self.patience, &mut late);
        };
        desk.ask(|| {
            let mut told = Instant::now();
            let often = self.patience.min(LONGEST);
            self.group.meet(message, often, &mut |ranks| {
                (desk.meanwhile)();
                if told.elapsed() >= self.patience {
                    told = Instant::now();
                    late(ranks);
                }
            })
        })
    }

    /// The desk to go to, on another thread than its own.
    fn desk(&self) -> Option<&Desk> {
        let lent = self.lent.get()?;
        (lent.desk.thread != current().id()).then_some(&*lent.desk)
    }
}
