//! The ranks that a piece of the program runs on, and how they keep in step.
//!
//! Whatever ranks do together begins with a meeting, at which each says what it is about to
//! do ([`Header`]). If they do not all say the same, all get the same error, which names who
//! does what, and nobody waits for what does not come.
//!
//! Runs nest. When one rank has come to the end of a run and another is still in the middle
//! of it, the run has failed for all of them. The one that is in the middle may still call
//! for the others until its body ends, so those calls give that error at once.

mod differ;
mod gather;
mod header;
mod patient;

pub(crate) use differ::RunInputs;
pub(crate) use gather::parts;
pub(crate) use header::{Body, CollectiveOp, Has, Header};

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

use header::BYTES;
use patient::{Patient, seldom};

use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::ranks::group::{GroupError, ProcessGroup};
use crate::sync::lock;

/// Hears of ranks that are late: what this one is about to do, and who they are.
pub(crate) type Late = Arc<dyn Fn(&str, &[usize]) + Send + Sync>;

/// A process set as the handles of its runs see it.
pub(crate) struct Ranks {
    group: Box<dyn ProcessGroup>,
    /// Tells process sets apart; the same on all of their ranks.
    id: u64,
    /// The numbers of these ranks in the whole program.
    world: Vec<usize>,
    patience: Duration,
    /// The one thread that may do anything together with other ranks.
    thread: ThreadId,
    sequence: AtomicU64,
    state: AtomicU8,
    closed: AtomicBool,
    /// For each run in progress, why it has failed already.
    doomed: Mutex<Vec<Option<Error>>>,
    /// Why nothing can be done together any more.
    broken: OnceLock<Error>,
    /// Whether this rank has saved the last state of an iteration that was to be saved, and is to save another.
    may_save_state: AtomicBool,
    /// Whether all ranks said so when they met: the next state is saved, by all of them.
    saves_state: AtomicBool,
    /// Who hears of ranks that are late.
    late: Late,
}

/// What the process set that the program began with is called.
const WORLD: u64 = 0;

const ACTIVE: u8 = 0;
const IS_SPLIT: u8 = 1;
const RELEASED: u8 = 2;

impl Ranks {
    /// The ranks that the program began with.
    pub(crate) fn world(group: Box<dyn ProcessGroup>, patience: Duration, late: Late) -> Self {
        let world = (0..group.size()).collect();
        Self::of(group, WORLD, world, patience, late)
    }

    fn of(
        group: Box<dyn ProcessGroup>,
        id: u64,
        world: Vec<usize>,
        patience: Duration,
        late: Late,
    ) -> Self {
        Self {
            group,
            id,
            world,
            patience,
            thread: std::thread::current().id(),
            sequence: AtomicU64::new(0),
            state: AtomicU8::new(ACTIVE),
            closed: AtomicBool::new(false),
            doomed: Mutex::default(),
            broken: OnceLock::new(),
            may_save_state: AtomicBool::new(false),
            saves_state: AtomicBool::new(false),
            late,
        }
    }

    /// A part of these ranks: `members` has their numbers, in the order in which they are there.
    pub(crate) fn part(&self, group: Box<dyn ProcessGroup>, color: u32, members: &[usize]) -> Self {
        let world = members.iter().map(|rank| self.in_program(*rank)).collect();
        // All ranks are at the same point, so this is a name that those of one color share.
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.id.to_le_bytes());
        hasher.update(&self.sequence.load(Ordering::Relaxed).to_le_bytes());
        hasher.update(&color.to_le_bytes());
        let id = hasher.finalize();
        let id = id.as_bytes().first_chunk().copied().unwrap_or_default();
        let late = Arc::clone(&self.late);
        Self::of(group, u64::from_le_bytes(id), world, self.patience, late)
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

    /// How many meetings there were: the same on all ranks that are at one point of the program.
    pub(crate) fn meetings(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Has a state of an iteration saved when all ranks are to.
    ///
    /// Were each to save when it likes, no state to go on from would be there of all. So none is saved before all have saved
    /// the one before, or could not; they tell one another at meetings that there are anyway. Of the last two that each
    /// has saved, one is there of all.
    pub(crate) fn want_state(&self) {
        self.may_save_state.store(true, Ordering::Relaxed);
    }

    /// Whether the state that is made now is to be saved: all ranks find the same.
    pub(crate) fn takes_state(&self) -> bool {
        self.saves_state.swap(false, Ordering::Relaxed)
    }

    /// Whether these are all the ranks of the program.
    pub(crate) fn is_world(&self) -> bool {
        self.id == WORLD
    }

    pub(crate) fn is_own_thread(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// That runs may still be made on these ranks.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.state.load(Ordering::Acquire) {
            RELEASED => Err(ErrorKind::Released.into()),
            _ => Ok(()),
        }
    }

    /// From here on these ranks do nothing together but release their parts.
    pub(crate) fn set_split(&self) {
        self.state.store(IS_SPLIT, Ordering::Release);
    }

    pub(crate) fn is_split(&self) -> bool {
        self.state.load(Ordering::Acquire) == IS_SPLIT
    }

    /// Their parts are released. If they are themselves, they stay so.
    pub(crate) fn end_split(&self) {
        // Not if they are released.
        let _ = self
            .state
            .compare_exchange(IS_SPLIT, ACTIVE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Tells the others that this rank comes to nothing more here: who waits for it gets an error.
    pub(crate) fn leave(&self) {
        self.group.leave();
    }

    pub(crate) fn set_released(&self) {
        self.state.store(RELEASED, Ordering::Release);
    }

    /// All ranks have come to the end together.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Tells the others that this rank comes to nothing more, unless they know.
    pub(crate) fn leave_unless_closed(&self) {
        if !self.closed.load(Ordering::Relaxed) {
            self.group.leave();
        }
    }

    /// Says what this rank is about to do, and hears the same of all others.
    ///
    /// # Errors
    /// The same on all ranks if they are about to do different things, or one has left. On this
    /// rank alone if it is not the thread's turn to do anything together.
    pub(crate) fn meet(&self, header: &Header) -> Result<Vec<Header>, Error> {
        self.meet_with_inputs(header, &RunInputs::new)
    }

    /// The same for a run of which this rank can tell what it gives it: who gives it another than the others is told that.
    fn meet_with_inputs(
        &self,
        header: &Header,
        given: &dyn Fn() -> RunInputs,
    ) -> Result<Vec<Header>, Error> {
        self.may_meet(header)?;
        self.closed.store(false, Ordering::Relaxed);
        let header = Header {
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
            saves_state: self.may_save_state.load(Ordering::Relaxed)
                || self.saves_state.load(Ordering::Relaxed),
            ..header.clone()
        };
        let what = header.describe();
        let stretch = crate::stretch!(
            "collective",
            doing = what,
            rank = self.rank(),
            ranks = self.size()
        );
        let mut late = seldom(|ranks| self.tell_late(&what, ranks));
        let met = self
            .group
            .meet(&header.to_bytes(), self.patience, &mut late);
        let met = met.map_err(|error| self.break_off(&what, error))?;
        let headers: Option<Vec<_>> = met.chunks(BYTES).map(Header::from_bytes).collect();
        let Some(headers) = headers.filter(|headers| headers.len() == self.size()) else {
            let foreign = "a rank sent something else than a header; do all run one program?";
            return Err(self.break_off(&what, GroupError::Other(foreign.to_owned())));
        };
        match headers.iter().all(|other| other.fits(&header)) {
            true => {
                if headers.iter().all(|other| other.saves_state) {
                    self.may_save_state.store(false, Ordering::Relaxed);
                    self.saves_state.store(true, Ordering::Relaxed);
                } else if self.takes_state() {
                    // Others have saved theirs: a run has failed here before it had one.
                    self.want_state();
                }
                stretch.end("met");
                Ok(headers)
            }
            false => Err(self.disagree(&header, &headers, given)),
        }
    }

    fn tell_late(&self, doing: &str, ranks: &[usize]) {
        let ranks: Vec<_> = ranks.iter().map(|rank| self.in_program(*rank)).collect();
        (self.late)(doing, &ranks);
    }

    fn may_meet(&self, header: &Header) -> Result<(), Error> {
        self.check()?;
        if !self.is_own_thread() {
            return Err(not_here(header.describe()));
        }
        if self.is_split() && header.op != CollectiveOp::Release {
            let doing = header.describe();
            return Err(ErrorKind::IsSplit { doing }.into());
        }
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        match self.levels().last() {
            Some(Some(error)) => Err(error.clone()),
            _ => Ok(()),
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

    /// What all ranks get that do not do the same.
    fn disagree(&self, own: &Header, headers: &[Header], given: &dyn Fn() -> RunInputs) -> Error {
        // Of all as they were sent, so that all find the same.
        let runs =
            |header: &Header| header.op == CollectiveOp::Run && header.what == headers[0].what;
        let is_one_app = headers.iter().all(runs);
        // One that has failed has no key.
        let failed =
            |header: &Header| (header.op == CollectiveOp::End || is_one_app) && header.has_failed();
        let error = match headers.iter().position(failed) {
            Some(rank) => self.failure(rank, headers, &own.failure),
            None => {
                let given = is_one_app.then(|| self.differing(&given()));
                let ranks = self.told(headers, &given.unwrap_or_default());
                ErrorKind::Disagree { ranks }.into()
            }
        };
        let ended = headers.iter().any(|header| header.op == CollectiveOp::End);
        if ended
            && own.op != CollectiveOp::End
            && let Some(level) = self.levels().last_mut()
        {
            *level = Some(error.clone());
        }
        error
    }

    /// What each rank gives to one app that not all give; all ranks are here.
    fn differing(&self, given: &RunInputs) -> Vec<String> {
        let header = Header::keyless(CollectiveOp::Agree, "what it gives");
        let all = self.gather_all(header, given);
        all.map_or_else(|_| Vec::new(), |all| differ::differing(&all))
    }

    /// Who does what, one rank for each different thing.
    fn told(&self, headers: &[Header], given: &[String]) -> Vec<String> {
        let mut told: Vec<(usize, String)> = Vec::new();
        for (rank, header) in headers.iter().enumerate() {
            let text = match given.get(rank).filter(|given| !given.is_empty()) {
                Some(given) => format!("{} with {given}", header.describe()),
                None => header.describe(),
            };
            if !told.iter().any(|(_, said)| *said == text) {
                told.push((self.in_program(rank), text));
            }
        }
        let texts = told
            .iter()
            .map(|(rank, text)| format!("rank {rank} {text}"));
        texts.collect()
    }

    /// Compares how something went that each rank did for itself. If it failed anywhere, all
    /// ranks get the error of the lowest rank where it did.
    pub(crate) fn agree<T>(&self, what: &str, went: Result<T, Error>) -> Result<T, Error> {
        let header = Header::keyless(CollectiveOp::Agree, what);
        self.meet_all_well(header.with_failure(went.as_ref().err().map(chain)))?;
        went
    }

    /// The same, at the end of something in whose middle other ranks may be: for them it has
    /// failed then. To be called while the [level](Self::level) of that is there.
    pub(crate) fn end<T>(&self, what: &str, key: Key, went: Result<T, Error>) -> Result<T, Error> {
        let why = went.as_ref().err().map(chain);
        self.end_with(Body::Nothing, what, key, why)?;
        went
    }

    /// The same where all ranks say something besides; gives what they say if it went well on all.
    pub(crate) fn end_with(
        &self,
        body: Body,
        what: &str,
        key: Key,
        why_not: Option<String>,
    ) -> Result<Vec<Header>, Error> {
        let header = Header::new(CollectiveOp::End, key, what).with_body(body);
        self.meet_all_well(header.with_failure(why_not))
    }

    /// A [meeting](Self::meet) of ranks of which some may have failed: then all get the error of
    /// the lowest of them.
    pub(crate) fn meet_all_well(&self, header: Header) -> Result<Vec<Header>, Error> {
        self.meet_all_well_with_inputs(header, &RunInputs::new)
    }

    /// The same for a run of which each rank can tell what it gives it.
    pub(crate) fn meet_all_well_with_inputs(
        &self,
        header: Header,
        given: &dyn Fn() -> RunInputs,
    ) -> Result<Vec<Header>, Error> {
        let met = self.meet_with_inputs(&header, given)?;
        match met.iter().position(Header::has_failed) {
            Some(rank) => Err(self.failure(rank, &met, &header.failure)),
            None => Ok(met),
        }
    }

    /// Why something failed on a rank, as it says.
    fn failure(&self, rank: usize, met: &[Header], own: &str) -> Error {
        let mut counts = vec![0; met.len()];
        counts[rank] = met[rank].bytes();
        let own = if rank == self.rank() { own } else { "" };
        match self.gather_bytes("an error", own.as_bytes(), &counts) {
            Ok(text) => {
                let message = crate::error::told(&String::from_utf8_lossy(&text));
                let rank = self.in_program(rank);
                ErrorKind::OnRank { rank, message }.into()
            }
            Err(error) => error,
        }
    }

    /// The bytes of all ranks, into memory that is there; all know how many each has.
    pub(crate) fn gather_into(
        &self,
        doing: &str,
        mine: &[u8],
        counts: &[usize],
        all: &mut [u8],
    ) -> Result<(), Error> {
        let gathered = self.group.all_gather(mine, counts, all);
        gathered.map_err(|error| self.break_off(&format!("gathers {doing}"), error))
    }

    /// Gives each rank what the others have for it; all lengths are known to who needs them.
    pub(crate) fn swap_bytes(
        &self,
        doing: &str,
        send: &[u8],
        send_counts: &[usize],
        receive: &mut [u8],
        receive_counts: &[usize],
    ) -> Result<(), Error> {
        let swapped = self
            .group
            .all_to_all(send, send_counts, receive, receive_counts);
        swapped.map_err(|error| self.break_off(&format!("exchanges {doing}"), error))
    }

    /// Has something done that calls for operations of the group itself. Collective.
    pub(crate) fn with_group<T>(&self, doing: &str, job: impl FnOnce(&dyn ProcessGroup) -> T) -> T {
        let late = |ranks: &[usize]| self.tell_late(doing, ranks);
        job(&Patient {
            group: &*self.group,
            patience: self.patience,
            late: &late,
        })
    }

    /// The group of the ranks that give this color.
    pub(crate) fn split(&self, color: u32, key: i64) -> Result<Box<dyn ProcessGroup>, Error> {
        let split = self.group.split(Some(color), key).and_then(|part| {
            let none = || GroupError::Other("a split gave this rank no group".to_owned());
            part.ok_or_else(none)
        });
        split.map_err(|error| self.break_off("splits its process set", error))
    }

    /// Says that a run begins, for as long as the guard lives.
    pub(crate) fn level(&self) -> LevelGuard<'_> {
        self.levels().push(None);
        LevelGuard(self)
    }

    fn levels(&self) -> MutexGuard<'_, Vec<Option<Error>>> {
        lock(&self.doomed)
    }
}

/// A run in progress.
pub(crate) struct LevelGuard<'a>(&'a Ranks);

impl Drop for LevelGuard<'_> {
    fn drop(&mut self) {
        self.0.levels().pop();
    }
}

/// Something collective was called where other ranks can't join in.
pub(crate) fn not_here(doing: String) -> Error {
    ErrorKind::NotCollective { doing }.into()
}

/// An error and all that led to it.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

impl std::fmt::Debug for Ranks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}
