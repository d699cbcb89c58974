//! The session's state, which only the thread that started it can reach.
//!
//! MPI may be called by that thread only, and communicators must be freed before MPI is finalized. So they are all kept
//! here, and a group holds only its number. On another thread, or after the session, a number leads to nothing.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Group, Source};
use mpi::{Rank, Tag};
use sde::__private::renumbered;
use sde::ranks::GroupError;

use crate::book::Book;
use crate::in_flight::InFlight;
use crate::notice::{FEW, Kind, Notice, neighbours};
use crate::transfer::Limits;

const NOTICES: Tag = 0;

thread_local! {
    static HOME: RefCell<Option<Rc<Home>>> = const { RefCell::new(None) };
}

/// All MPI objects of the session. Fields are dropped in their order: communicators, then MPI.
pub(crate) struct Home {
    groups: RefCell<HashMap<u64, Rc<Members>>>,
    /// Notices that MPI has not sent yet.
    outbox: RefCell<Vec<InFlight>>,
    /// Groups that this rank has released and that are not quiet yet.
    retired: RefCell<Vec<u64>>,
    /// Groups that other threads have released.
    elsewhere: Arc<Mutex<Vec<u64>>>,
    /// Rises with each group, so that groups that share a rank have different numbers.
    serial: Cell<u64>,
    /// The node of each rank of the world.
    nodes: Vec<usize>,
    pub(crate) limits: Cell<Limits>,
    /// The communicator of notices and of the last barrier.
    pub(crate) control: SimpleCommunicator,
    _universe: Universe,
}

/// One group, as this rank sees it.
pub(crate) struct Members {
    pub(crate) number: u64,
    pub(crate) rank: usize,
    /// The members' ranks in the world.
    world: Vec<Rank>,
    pub(crate) book: RefCell<Book>,
    pub(crate) communicator: SimpleCommunicator,
}

impl Home {
    /// Takes over MPI. Collective.
    pub(crate) fn new(universe: Universe) -> Self {
        let control = universe.world().duplicate();
        Self {
            groups: RefCell::default(),
            outbox: RefCell::default(),
            retired: RefCell::default(),
            elsewhere: Arc::default(),
            serial: Cell::new(0),
            nodes: nodes(&control),
            limits: Cell::default(),
            control,
            _universe: universe,
        }
    }

    /// Makes this the thread's home.
    pub(crate) fn install(self) -> Rc<Self> {
        let home = Rc::new(self);
        HOME.with(|place| *place.borrow_mut() = Some(Rc::clone(&home)));
        home
    }

    /// Removes the thread's home.
    pub(crate) fn uninstall() {
        // A thread that is ending has none.
        let _ = HOME.try_with(|place| place.borrow_mut().take());
    }

    pub(crate) fn get() -> Result<Rc<Self>, GroupError> {
        let home = HOME.try_with(|place| place.borrow().clone());
        home.ok().flatten().ok_or_else(|| {
            GroupError::Other(
                "MPI was called off the thread that started its session, or after the session \
                 ended; use the group where `Session::start` was called, while the session lives"
                    .to_owned(),
            )
        })
    }

    pub(crate) fn elsewhere(&self) -> Arc<Mutex<Vec<u64>>> {
        Arc::clone(&self.elsewhere)
    }

    /// Gives a communicator a number and a book. Collective over the communicator, which nothing else may use.
    pub(crate) fn adopt(
        &self,
        communicator: SimpleCommunicator,
    ) -> Result<Rc<Members>, GroupError> {
        let group = communicator.group();
        let whole = self.control.group();
        let all = 0..communicator.size();
        let world: Option<Vec<Rank>> = all.map(|r| group.translate_rank(r, &whole)).collect();
        let world = world.ok_or_else(|| {
            GroupError::Other(
                "making a group: the communicator has processes that were not started together \
                 with this one; give it only ranks of MPI_COMM_WORLD"
                    .to_owned(),
            )
        })?;
        Ok(self.enroll(communicator, world))
    }

    /// As [`adopt`](Self::adopt), for all ranks.
    pub(crate) fn adopt_world(&self) -> Rc<Members> {
        let all = (0..self.control.size()).collect();
        self.enroll(self.control.duplicate(), all)
    }

    fn enroll(&self, communicator: SimpleCommunicator, world: Vec<Rank>) -> Rc<Members> {
        // Two groups that share a rank differ in the serial; of two that don't, each has a
        // lowest rank of its own.
        let mut serials = vec![0_u64; world.len()];
        communicator.all_gather_into(&[self.serial.get()][..], &mut serials[..]);
        let serial = serials.into_iter().max().unwrap_or(0) + 1;
        self.serial.set(serial);
        let lowest = world.iter().min().map_or(0, |rank| rank.unsigned_abs());
        let number = (serial << 32) | u64::from(lowest);
        let members = Rc::new(Members {
            number,
            rank: usize::try_from(communicator.rank()).unwrap_or(0),
            world,
            book: RefCell::default(),
            communicator,
        });
        self.groups.borrow_mut().insert(number, Rc::clone(&members));
        members
    }

    pub(crate) fn members(&self, number: u64) -> Result<Rc<Members>, GroupError> {
        let found = self.groups.borrow().get(&number).cloned();
        found.ok_or_else(|| GroupError::Other("this group has ended".to_owned()))
    }

    /// The node of each rank of a group, from 0 in the order of ranks.
    pub(crate) fn nodes(&self, members: &Members) -> Vec<usize> {
        let node = |rank: &Rank| self.nodes.get(rank.unsigned_abs() as usize).copied();
        renumbered(members.world.iter().map(|rank| node(rank).unwrap_or(0)))
    }

    /// Leaves a group: this rank enters no more rounds, and tells the others.
    pub(crate) fn leave(&self, members: &Members) {
        let mut book = members.book.borrow_mut();
        if book.close() {
            let rounds = book.entered();
            self.tell_left(members, members.rank, rounds);
        }
    }

    /// Ends a group, and frees it once it is quiet. MPI reuses the number of a free communicator, perhaps for other
    /// ranks, and delivers late messages to the new one: Open MPI crashed where a rank had entered a round that others
    /// left out.
    pub(crate) fn release(&self, number: u64) {
        let Ok(members) = self.members(number) else {
            return;
        };
        self.leave(&members);
        self.retired.borrow_mut().push(number);
        self.free_retired();
    }

    /// Keeps a communicator with an incomplete operation for good, since freeing it would wait.
    fn free_retired(&self) {
        self.retired.borrow_mut().retain(|number| {
            let mut groups = self.groups.borrow_mut();
            let Some(members) = groups.get(number) else {
                return false;
            };
            let quiet = members.book.borrow().is_quiet(members.size());
            let quiet = match std::thread::panicking() {
                true => Some(false),
                // In a large group not all ranks are told who has left.
                false if members.size() > FEW => quiet.or(Some(true)),
                false => quiet,
            };
            let Some(quiet) = quiet else { return true };
            match (quiet, groups.remove(number)) {
                (true, members) => drop(members),
                (false, members) => std::mem::forget(members),
            }
            false
        });
    }

    pub(crate) fn release_all(&self) {
        let numbers: Vec<u64> = self.groups.borrow().keys().copied().collect();
        numbers.into_iter().for_each(|number| self.release(number));
    }

    fn tell_left(&self, members: &Members, rank: usize, rounds: u64) {
        for to in neighbours(members.rank, members.size()) {
            self.tell(members, to, Kind::Left, rank, rounds);
        }
    }

    /// Sends a rank of a group a notice about this rank or another.
    pub(crate) fn tell(&self, to: &Members, rank: usize, kind: Kind, about: usize, rounds: u64) {
        let notice = Notice {
            kind,
            group: to.number,
            rank: about,
            rounds,
        };
        if let Some(rank) = to.world.get(rank) {
            let sent = InFlight::send(&self.control, *rank, NOTICES, notice.encode());
            self.outbox.borrow_mut().push(sent);
        }
    }

    /// Handles notices from other ranks, and groups that other threads have released.
    pub(crate) fn attend(&self) {
        let elsewhere = {
            let mut list = self
                .elsewhere
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *list)
        };
        elsewhere
            .into_iter()
            .for_each(|number| self.release(number));
        while let Some((message, _)) = self
            .control
            .any_process()
            .immediate_matched_probe_with_tag(NOTICES)
        {
            let mut bytes = [0; Notice::BYTES];
            message.matched_receive_into(&mut bytes[..]);
            if let Some(notice) = Notice::decode(&bytes) {
                self.take_in(notice);
            }
        }
        self.outbox
            .borrow_mut()
            .retain_mut(|sent| sent.take().is_none());
        self.free_retired();
    }

    fn take_in(&self, notice: Notice) {
        // A group that this rank has released needs no notices.
        let Ok(members) = self.members(notice.group) else {
            return;
        };
        let mut book = members.book.borrow_mut();
        match notice.kind {
            Kind::Left => {
                let new = book.has_left(notice.rank, notice.rounds);
                if new && members.size() > FEW {
                    self.tell_left(&members, notice.rank, notice.rounds);
                }
            }
            Kind::Posted(note) => book.has_posted(notice.rank, note),
            Kind::Here => book.is_here(notice.rank, notice.rounds),
            Kind::WhoIsHere => {
                book.is_here(notice.rank, notice.rounds);
                if book.entered() >= notice.rounds {
                    let entered = book.entered();
                    self.tell(&members, notice.rank, Kind::Here, members.rank, entered);
                }
            }
        }
    }
}

impl Members {
    pub(crate) fn size(&self) -> usize {
        self.world.len()
    }
}

/// The node of each rank, from 0 in the order of their lowest ranks. Collective.
fn nodes(world: &SimpleCommunicator) -> Vec<usize> {
    let shared = world.split_shared(world.rank());
    let lowest = shared.group().translate_rank(0, &world.group());
    let mut of_all: Vec<Rank> = vec![0; usize::try_from(world.size()).unwrap_or(1)];
    let mine = [lowest.unwrap_or_else(|| world.rank())];
    world.all_gather_into(&mine[..], &mut of_all[..]);
    renumbered(of_all.into_iter())
}
