//! Desks: a body runs on a second thread while the one thread that may talk to other ranks serves its group operations.
//!
//! Between these operations the serving thread does work of its own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, current};
use std::time::{Duration, Instant};

use super::Ranks;
use crate::error::Error;
use crate::parallel::{Errand, run_errand};
use crate::ranks::group::{GroupError, ProcessGroup};
use crate::sync::lock;

/// The longest wait within a meeting before the serving thread turns to its own work.
const LONGEST: Duration = Duration::from_millis(1);

/// The queue of group operations that one thread runs on behalf of another.
pub(crate) struct Desk {
    thread: ThreadId,
    ask: Sender<Arc<Errand>>,
    asked: Mutex<Receiver<Arc<Errand>>>,
    meanwhile: Box<dyn Fn() + Send + Sync>,
}

/// The desk that a body's group operations go to, and the thread that the body runs on.
#[derive(Clone)]
pub(super) struct Lent {
    desk: Arc<Desk>,
    pub(super) to: ThreadId,
}

impl Desk {
    /// The desk of this thread, which calls `meanwhile` while it waits for other ranks.
    pub(crate) fn new(meanwhile: impl Fn() + Send + Sync + 'static) -> Self {
        let (ask, asked) = channel();
        Self {
            thread: current().id(),
            ask,
            asked: Mutex::new(asked),
            meanwhile: Box::new(meanwhile),
        }
    }

    /// Runs one queued operation, after waiting up to `longest` for one to arrive. Returns whether there was one.
    pub(crate) fn serve(&self, longest: Duration) -> bool {
        let errand = lock(&self.asked).recv_timeout(longest);
        errand.map(|errand| errand.work()).is_ok()
    }

    fn ask<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        // This desk itself receives it.
        run_errand(job, |errand| _ = self.ask.send(errand))
    }
}

impl Ranks {
    /// Lets this thread take part in collective operations, by way of the desk's thread.
    pub(crate) fn lend(&self, desk: &Arc<Desk>) {
        let to = current().id();
        let desk = Arc::clone(desk);
        // `lend` is called once, so the cell is empty.
        let _ = self.lent.set(Lent { desk, to });
    }

    /// Runs an operation of the group on the thread that may talk to other ranks.
    pub(super) fn operate<T: Send>(
        &self,
        operation: impl FnOnce(&dyn ProcessGroup) -> T + Send,
    ) -> T {
        match self.desk() {
            Some(desk) => desk.ask(|| operation(&*self.group)),
            None => operation(&*self.group),
        }
    }

    /// As [`operate`](Self::operate). No collective operation works after an error.
    pub(super) fn operated<T: Send>(
        &self,
        doing: &str,
        operation: impl FnOnce(&dyn ProcessGroup) -> Result<T, GroupError> + Send,
    ) -> Result<T, Error> {
        let went = self.operate(operation);
        went.map_err(|error| self.break_off(doing, error))
    }

    /// A meeting of the group. Late ranks are reported as such for whom this rank waits in `doing`, at intervals that
    /// double: about ten times in some hours.
    pub(super) fn meet_group(
        &self,
        message: &[u8],
        doing: Option<&str>,
    ) -> Result<Vec<u8>, GroupError> {
        let mut times = 0_u32;
        let mut late = |ranks: &[usize]| {
            times = times.saturating_add(1);
            if let Some(doing) = doing.filter(|_| times.is_power_of_two()) {
                let ranks: Vec<_> = ranks.iter().map(|rank| self.in_program(*rank)).collect();
                (self.late)(doing, &ranks);
            }
        };
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

    /// The desk to send operations to; `None` on the desk's own thread.
    fn desk(&self) -> Option<&Desk> {
        let lent = self.lent.get()?;
        (lent.desk.thread != current().id()).then_some(&*lent.desk)
    }
}
