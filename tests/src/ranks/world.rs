//! What stands for ranks.

use sde::archiver::Wire;
use sde::ranks::{ProcessGroup, ThreadGroup};
use sde::store::Cbor;
use sde::{Builder, EventLog, Sde};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Folder;
use crate::{LIMIT, Watchdog};

/// One rank of a test, before it has an engine.
pub struct Rank(Box<dyn ProcessGroup>);

impl Rank {
    /// This rank of a group.
    #[must_use]
    pub fn of(group: impl Into<Box<dyn ProcessGroup>>) -> Self {
        Self(group.into())
    }

    /// Which of the ranks it is.
    #[must_use]
    pub fn number(&self) -> usize {
        self.0.rank()
    }

    /// The group that it is in.
    #[must_use]
    pub fn group(&self) -> &dyn ProcessGroup {
        &*self.0
    }

    /// Has an engine be this rank's.
    pub fn join(self, builder: Builder) -> Builder {
        self.join_by(builder, Cbor)
    }

    /// The same, where values are written for others in another way.
    pub fn join_by(self, builder: Builder, wire: impl Wire + 'static) -> Builder {
        builder.process_group(self.0, wire)
    }
}

/// Where ranks come from.
pub trait World {
    /// The most ranks that there can be.
    fn most(&self) -> usize;

    /// Has so many ranks run a program; gives what each of them returned, in their order, to every
    /// process. Collective over all processes, of which some may have no part in it.
    fn run(&self, size: usize, program: &(dyn Fn(Rank) -> Vec<u8> + Sync)) -> Vec<Vec<u8>>;

    /// Whether this is the process that does what shall happen once.
    fn is_first(&self) -> bool;

    /// Gives all processes what the first of them has. Collective; none returns before the first
    /// has called it.
    fn share(&self, bytes: &[u8]) -> Vec<u8>;
}

/// Threads of one process stand for ranks.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

impl World for Threads {
    fn most(&self) -> usize {
        usize::MAX
    }

    fn run(&self, size: usize, program: &(dyn Fn(Rank) -> Vec<u8> + Sync)) -> Vec<Vec<u8>> {
        let _in_time = Watchdog::new("a program on several ranks", LIMIT);
        ThreadGroup::run(size, |group| program(Rank::of(group)))
    }

    fn is_first(&self) -> bool {
        true
    }

    fn share(&self, bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }
}

/// The ranks that a test is run on.
#[derive(Clone, Copy)]
pub struct Ranks<'a> {
    world: &'a dyn World,
    size: usize,
}

impl<'a> Ranks<'a> {
    /// So many of a world.
    #[must_use]
    pub fn of(world: &'a dyn World, size: usize) -> Self {
        Self { world, size }
    }

    /// As many as there are.
    #[must_use]
    pub fn all_of(world: &'a dyn World) -> Self {
        Self::of(world, world.most())
    }

    /// Another number of them.
    #[must_use]
    pub fn resized(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// How many there are.
    #[must_use]
    pub fn size(self) -> usize {
        self.size
    }

    /// Has each rank run a program with an engine; gives what they returned, in their order.
    ///
    /// # Panics
    /// If a rank does, or what it returns can't be sent to others.
    pub fn run<R: Serialize + DeserializeOwned>(self, program: impl Fn(Sde) -> R + Sync) -> Vec<R> {
        self.run_with_log(|sde, _| program(sde))
    }

    /// The same, with what the engine says to its observers.
    ///
    /// # Panics
    /// As [`Ranks::run`].
    pub fn run_with_log<R: Serialize + DeserializeOwned>(
        self,
        program: impl Fn(Sde, EventLog) -> R + Sync,
    ) -> Vec<R> {
        self.run_ranks(|rank| {
            let log = EventLog::new();
            let builder = rank.join(Sde::builder().observer(log.clone()));
            program(builder.build().unwrap(), log)
        })
    }

    /// The same for a program that builds its engine itself.
    ///
    /// # Panics
    /// As [`Ranks::run`].
    pub fn run_ranks<R: Serialize + DeserializeOwned>(
        self,
        program: impl Fn(Rank) -> R + Sync,
    ) -> Vec<R> {
        let as_bytes = |rank| serde_json::to_vec(&program(rank)).unwrap();
        let all = self.world.run(self.size, &as_bytes);
        let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).unwrap();
        all.into_iter().map(read).collect()
    }

    /// A folder that all ranks see.
    #[must_use]
    pub fn folder(self) -> Folder {
        Folder::new(self.world)
    }

    /// Does something on one process; none goes on before it is done.
    pub fn once(self, work: impl FnOnce()) {
        if self.world.is_first() {
            work();
        }
        self.world.share(&[]);
    }
}
