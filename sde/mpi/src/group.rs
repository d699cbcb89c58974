//! The engine's group operations, on MPI.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mpi::topology::Color;
use mpi::traits::Communicator;
use sde::ranks::{GroupError, Note, ProcessGroup, Subgroup};

use crate::ask::{Due, Waiting};
use crate::frame::{self, Frame, Operation};
use crate::home::{Home, Members};
use crate::in_flight::InFlight;
use crate::notice::{FEW, Kind};
use crate::transfer;

/// A group of ranks with a communicator of its own.
///
/// It can be sent to any thread and asked for its rank there. Its operations work only on the thread that started the
/// [session](crate::Session), while the session lives; otherwise they return [`GroupError::Other`].
///
/// After an operation has failed because a rank has left, all later operations fail too.
#[derive(Debug)]
pub struct MpiGroup {
    number: u64,
    rank: usize,
    nodes: Arc<[usize]>,
    /// The list that a group dropped on another thread is added to.
    elsewhere: Arc<Mutex<Vec<u64>>>,
}

impl MpiGroup {
    /// A group of the ranks of a communicator, which is duplicated. Collective over it.
    ///
    /// # Errors
    /// [`GroupError::Other`] if there is no session on this thread, the communicator is
    /// between two groups, or it has processes outside of `MPI_COMM_WORLD`.
    pub fn from_communicator(communicator: &impl Communicator) -> Result<Self, GroupError> {
        let home = Home::get()?;
        if communicator.test_inter() {
            return Err(GroupError::Other(
                "making a group: this is an inter-communicator; merge its two sides first"
                    .to_owned(),
            ));
        }
        Self::adopt(&home, communicator.duplicate())
    }

    /// A group that takes over a communicator which nothing else uses. Collective over it.
    fn adopt(home: &Home, own: mpi::topology::SimpleCommunicator) -> Result<Self, GroupError> {
        let members = home.adopt(own)?;
        Ok(Self::new(home, &members))
    }

    fn new(home: &Home, members: &Members) -> Self {
        Self {
            number: members.number,
            rank: members.rank,
            nodes: home.nodes(members).into(),
            elsewhere: home.elsewhere(),
        }
    }

    /// A group of all ranks. Collective.
    pub(crate) fn of_all(home: &Home) -> Self {
        let members = home.adopt_world();
        Self::new(home, &members)
    }

    /// Gathers the frames of all ranks. Waits for ranks that have not left.
    fn round(
        &self,
        frame: Frame,
        message: &[u8],
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Joined, GroupError> {
        let home = Home::get()?;
        let members = home.members(self.number)?;
        let (number, mut flight) = enter(&members, frame.encode(message))?;
        let mut waiting = Waiting::new(patience);
        loop {
            if let Some(all) = flight.take() {
                return Ok(Joined {
                    members,
                    home,
                    frames: Frame::decode(&all)?,
                    all,
                });
            }
            if waiting.just_begun() {
                std::hint::spin_loop();
                continue;
            }
            home.attend();
            // A rank that has left before this round will not complete it.
            if let Some(rank) = members.book.borrow_mut().fails(number) {
                return Err(GroupError::left(rank));
            }
            match waiting.due() {
                Due::Nothing => {}
                Due::Ask => ask(&home, &members, number),
                Due::Report => report(&members, number, late),
            }
            waiting.pause();
        }
    }

    /// A round without reports of late ranks.
    fn join(&self, frame: Frame) -> Result<Joined, GroupError> {
        self.round(frame, &[], Duration::MAX, &mut |_| {})
    }
}

/// A round that all ranks have entered. The group's communicator is dropped before MPI ends.
struct Joined {
    members: Rc<Members>,
    home: Rc<Home>,
    frames: Vec<Frame>,
    /// All frames with their messages, as bytes.
    all: Vec<u8>,
}

/// Begins a round.
fn enter(members: &Members, frame: Vec<u8>) -> Result<(u64, InFlight), GroupError> {
    if std::thread::panicking() {
        return Err(GroupError::Other(
            "this rank panics; it takes part in nothing any more".to_owned(),
        ));
    }
    let mut book = members.book.borrow_mut();
    if let Some(rank) = book.broken() {
        return Err(GroupError::left(rank));
    }
    if book.closed() {
        return Err(GroupError::left(members.rank));
    }
    let flight = InFlight::gather(&members.communicator, frame);
    Ok((book.enter(), flight))
}

/// In a large group only the first ranks ask: otherwise there would be a message for each pair of ranks.
fn ask(home: &Home, members: &Members, round: u64) {
    if members.rank >= FEW {
        return;
    }
    let others = (0..members.size()).filter(|rank| *rank != members.rank);
    for rank in others {
        home.tell(members, rank, Kind::WhoIsHere, members.rank, round);
    }
}

fn report(members: &Members, round: u64, late: &mut dyn FnMut(&[usize])) {
    if members.rank >= FEW {
        return;
    }
    let missing = members
        .book
        .borrow()
        .late(round, members.rank, members.size());
    if !missing.is_empty() {
        late(&missing);
    }
}

impl ProcessGroup for MpiGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.nodes.len()
    }

    fn nodes(&self) -> Vec<usize> {
        self.nodes.to_vec()
    }

    /// In a group of more than 16 ranks only the first 16 report late ranks.
    fn meet(
        &self,
        message: &[u8],
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        let length = message.len();
        let frame = Operation::Meet { length }.into();
        let joined = self.round(frame, message, patience, late)?;
        frame::same_length(&joined.frames)?;
        let counts = vec![length; self.size()];
        if let Some(all) = frame::messages(&joined.all, counts.iter().copied()) {
            return Ok(all);
        }
        let mut all = vec![0; length * self.size()];
        let limits = joined.home.limits.get();
        transfer::gather(
            &joined.members.communicator,
            limits,
            message,
            &counts,
            &mut all,
        );
        Ok(all)
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        let frame = Frame::gather(self.rank, self.size(), mine.len(), counts, all.len());
        let joined = self.round(frame, mine, Duration::MAX, &mut |_| {})?;
        frame::same_counts(&joined.frames)?;
        if let Some(messages) = frame::messages(&joined.all, counts.iter().copied()) {
            all.copy_from_slice(&messages);
            return Ok(());
        }
        let limits = joined.home.limits.get();
        transfer::gather(&joined.members.communicator, limits, mine, counts, all);
        Ok(())
    }

    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        let sent = send.iter().map(|(to, message)| (*to, message.len()));
        let expected = receive.iter().map(|(from, place)| (*from, place.len()));
        let operation = Operation::Exchange {
            sent: frame::messages_sum(sent, |to| (self.rank, to)),
            expected: frame::messages_sum(expected, |from| (from, self.rank)),
        };
        let joined = self.join(operation.into())?;
        frame::same_messages(&joined.frames)?;
        let limits = joined.home.limits.get();
        transfer::exchange(&joined.members.communicator, limits, send, receive);
        Ok(())
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        let joined = self.join(Operation::Split { color, key }.into())?;
        let choices = joined.frames.iter().map(|frame| match frame.operation {
            Operation::Split { color, key } => (color, key),
            _ => (None, 0),
        });
        // MPI's colors and keys are C ints, so each is replaced by its place in their order.
        let (colors, keys): (Vec<_>, Vec<_>) = choices.unzip();
        let color = color.map(|color| place(colors.into_iter().flatten(), &color));
        let key = place(keys.into_iter(), &key);
        let color = color.map_or_else(Color::undefined, Color::with_value);
        // MPI has few communicators: groups that are quiet by now are freed first.
        joined.home.attend();
        let communicator = &joined.members.communicator;
        match communicator.split_by_color_with_key(color, key) {
            Some(own) => Ok(Some(Box::new(Self::adopt(&joined.home, own)?))),
            None => Ok(None),
        }
    }

    fn post(&self, rank: usize, note: Note) -> Result<(), GroupError> {
        let home = Home::get()?;
        let members = home.members(self.number)?;
        match rank == self.rank {
            true => members.book.borrow_mut().has_posted(rank, note),
            false => home.tell(&members, rank, Kind::Posted(note), self.rank, 0),
        }
        Ok(())
    }

    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        let home = Home::get()?;
        let members = home.members(self.number)?;
        home.attend();
        let posted = members.book.borrow_mut().take_posted();
        posted.map_err(GroupError::left)
    }

    fn leave(&self) {
        let here = Home::get().and_then(|home| Ok((home.members(self.number)?, home)));
        match here {
            Ok((members, home)) => home.leave(&members),
            // The session's own thread tells the others, at its next call of MPI.
            Err(_) => self.leave_elsewhere(),
        }
    }
}

impl MpiGroup {
    fn leave_elsewhere(&self) {
        let list = self.elsewhere.lock();
        list.unwrap_or_else(PoisonError::into_inner)
            .push(self.number);
    }
}

/// Frees the communicator, on any thread. A rank that ends, also by a panic, leaves the group.
impl Drop for MpiGroup {
    fn drop(&mut self) {
        match Home::get() {
            Ok(home) => home.release(self.number),
            Err(_) => self.leave_elsewhere(),
        }
    }
}

/// The number of different values that are lower.
fn place<T: Ord + Copy>(all: impl Iterator<Item = T>, one: &T) -> i32 {
    let mut lower: Vec<T> = all.filter(|other| other < one).collect();
    lower.sort_unstable();
    lower.dedup();
    i32::try_from(lower.len()).unwrap_or(i32::MAX)
}
