//! The ranks of a process set, and how they keep in step.
//!
//! Every collective operation begins with a meeting, at which each rank tells what it is about to do ([`Header`]). If
//! they disagree, all ranks get one error, which names who does what, and none waits for a message that never comes.
//!
//! Runs nest. When one rank has ended a run and another is still in its body, the run has failed for all of them. The
//! collective calls that the slower rank makes until its body ends give that error at once.

mod desk;
mod differ;
mod gather;
mod header;
mod joint;
mod meeting;
mod patient;
mod rounds;
mod state_turn;

pub(crate) use desk::Desk;
pub(crate) use differ::RunInputs;
pub(crate) use gather::{not_sent, pieces};
pub use header::MEETING_BYTES;
pub(crate) use header::{Body, CollectiveOp, Has, Header, ShortDigest, digest_of, short};
pub use joint::Collective;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

use desk::Lent;
use state_turn::SharedTurn;

use crate::error::{Error, ErrorKind};
use crate::parallel::Finally;
use crate::ranks::group::{GroupError, Note, ProcessGroup};
use crate::sync::lock;

/// Called when ranks are late, with what this rank is about to do, and the late ranks.
pub(crate) type Late = Arc<dyn Fn(&str, &[usize]) + Send + Sync>;

/// A process set as the handles of its runs see it.
pub(crate) struct Ranks {
    group: Box<dyn ProcessGroup>,
    /// The number of the process set, equal on all of its ranks.
    id: u64,
    /// The numbers of these ranks in the whole program.
    world: Vec<usize>,
    patience: Duration,
    /// The one thread that may take part in collective operations.
    thread: ThreadId,
    /// Another thread that may do so too, by way of that one.
    lent: OnceLock<Lent>,
    sequence: AtomicU64,
    state: AtomicU8,
    closed: AtomicBool,
    /// One entry for each run in progress: why it has failed already, if it has.
    doomed: Mutex<Vec<Option<Error>>>,
    /// The error that ended all collective operations.
    broken: OnceLock<Error>,
    state_turn: Mutex<SharedTurn>,
    late: Late,
}

/// The id of the process set that the program began with.
const WORLD: u64 = 0;

const ACTIVE: u8 = 0;
const IS_SPLIT: u8 = 1;
const RELEASED: u8 = 2;

impl Ranks {
    /// The ranks that the program began with.
    pub(crate) fn world(group: Box<dyn ProcessGroup>, patience: Duration, late: Late) -> Self {
        Self {
            world: (0..group.size()).collect(),
            group,
            id: WORLD,
            patience,
            thread: std::thread::current().id(),
            lent: OnceLock::new(),
            sequence: AtomicU64::new(0),
            state: AtomicU8::new(ACTIVE),
            closed: AtomicBool::new(false),
            doomed: Mutex::default(),
            broken: OnceLock::new(),
            state_turn: Mutex::default(),
            late,
        }
    }

    /// Runs a test on threads as ranks.
    #[cfg(test)]
    pub(crate) fn on_threads<T: Send>(size: usize, test: impl Fn(&Self) -> T + Sync) -> Vec<T> {
        crate::ranks::threads::ThreadGroup::run(size, |group| test(&Self::of_test(group)))
    }

    /// Ranks for a test, which are never late.
    #[cfg(test)]
    pub(crate) fn of_test(group: impl ProcessGroup + 'static) -> Self {
        Self::world(Box::new(group), Duration::MAX, Arc::new(|_, _| ()))
    }

    /// A process set of some of these ranks: `members` has their numbers, in the order that they have there.
    pub(crate) fn subset(
        &self,
        group: Box<dyn ProcessGroup>,
        color: u32,
        members: &[usize],
    ) -> Self {
        let world = members.iter().map(|rank| self.in_program(*rank)).collect();
        // All ranks are at one sequence number, so the hash is equal on the ranks of one color.
        let id = digest_of(&(self.id, self.meetings(), color));
        Self {
            id: u64::from_le_bytes(id),
            world,
            lent: self.lent.clone(),
            ..Self::world(group, self.patience, Arc::clone(&self.late))
        }
    }

    /// The number of one of these ranks in the whole program, by which messages name it.
    pub(crate) fn in_program(&self, rank: usize) -> usize {
        self.world.get(rank).copied().unwrap_or(rank)
    }

    pub(crate) fn rank(&self) -> usize {
        self.group.rank()
    }

    pub(crate) fn size(&self) -> usize {
        self.group.size()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The number of meetings so far, equal on all ranks that are at one point of the program.
    pub(crate) fn meetings(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Whether these are all the ranks of the program.
    pub(crate) fn is_world(&self) -> bool {
        self.id == WORLD
    }

    pub(crate) fn is_own_thread(&self) -> bool {
        let here = std::thread::current().id();
        here == self.thread || self.lent.get().is_some_and(|lent| lent.to == here)
    }

    /// Fails if these ranks are released.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.state.load(Ordering::Acquire) {
            RELEASED => Err(ErrorKind::Released.into()),
            _ => Ok(()),
        }
    }

    /// From here on these ranks only release their parts.
    pub(crate) fn set_split(&self) {
        self.state.store(IS_SPLIT, Ordering::Release);
    }

    pub(crate) fn is_split(&self) -> bool {
        self.state.load(Ordering::Acquire) == IS_SPLIT
    }

    /// Ends the split when the parts are released.
    pub(crate) fn end_split(&self) {
        // A set that is itself released stays so.
        let _ = self
            .state
            .compare_exchange(IS_SPLIT, ACTIVE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Tells the others that this rank has left: ranks that wait for it get an error.
    pub(crate) fn leave(&self) {
        self.group.leave();
    }

    pub(crate) fn set_released(&self) {
        self.state.store(RELEASED, Ordering::Release);
    }

    /// Records that all ranks have ended together.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Tells the others that this rank has left, unless all have ended together.
    pub(crate) fn leave_unless_closed(&self) {
        if !self.closed.load(Ordering::Relaxed) {
            self.leave();
        }
    }

    pub(super) fn break_off(&self, doing: &str, source: GroupError) -> Error {
        let doing = doing.to_owned();
        let source = match source {
            GroupError::Left { rank } => GroupError::Left {
                rank: self.in_program(rank),
            },
            source => source,
        };
        let error = Error::from(ErrorKind::Ranks { doing, source });
        self.broken.get_or_init(|| error).clone()
    }

    pub(crate) fn split(&self, color: u32, key: i64) -> Result<Box<dyn ProcessGroup>, Error> {
        self.operated("splits its process set", |group| {
            let none = || GroupError::Other("a split gave this rank no group".to_owned());
            group.split(Some(color), key)?.ok_or_else(none)
        })
    }

    /// Sends a note to a rank, without waiting for it.
    pub(crate) fn post(&self, rank: usize, note: Note) -> Result<(), Error> {
        self.operated("deals out points", |group| group.post(rank, note))
    }

    /// The next note to this rank, if one has arrived.
    pub(crate) fn poll(&self) -> Result<Option<(usize, Note)>, Error> {
        self.operated("deals out points", |group| group.poll())
    }

    /// Registers a run in progress, for as long as the guard lives.
    pub(crate) fn level(&self) -> Finally<impl FnMut()> {
        lock(&self.doomed).push(None);
        Finally(|| _ = lock(&self.doomed).pop())
    }
}

/// The error for a collective call at a place where other ranks can't join in.
pub(crate) fn not_here(doing: String) -> Error {
    ErrorKind::NotCollective { doing }.into()
}
