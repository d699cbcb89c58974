//! Collective work, and its time.

use std::time::{Duration, Instant};

use mpi::Count;
use mpi::collective::SystemOperation;
use mpi::datatype::{Partition, PartitionMut};
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;
use sde::Sde;
use sde_archives::Cbor;
use sde_benches::Tries;
use sde_mpi::Session;

/// All ranks.
pub struct Together<'a> {
    session: &'a Session,
    world: SimpleCommunicator,
}

impl<'a> Together<'a> {
    pub fn new(session: &'a Session) -> Self {
        Self {
            session,
            world: SimpleCommunicator::world(),
        }
    }

    pub fn rank(&self) -> usize {
        self.session.rank()
    }

    pub fn size(&self) -> usize {
        self.session.size()
    }

    /// A new engine on all ranks.
    pub fn engine(&self) -> Sde {
        let builder = Sde::builder().process_group(self.session.world(), Cbor);
        builder.build().unwrap()
    }

    /// As [`engine`](Self::engine), with this many threads on each rank.
    pub fn engine_of(&self, threads: usize) -> Sde {
        let builder = Sde::builder().process_group(self.session.world(), Cbor);
        builder.threads(threads).build().unwrap()
    }

    /// The time of the slowest rank.
    pub fn time(&self, work: impl FnOnce()) -> Duration {
        self.world.barrier();
        let begin = Instant::now();
        work();
        let own = begin.elapsed().as_secs_f64();
        let mut longest = 0.0;
        let most = SystemOperation::max();
        self.world.all_reduce_into(&own, &mut longest, most);
        Duration::from_secs_f64(longest)
    }

    /// Cases in turn; all ranks must give the same number of rounds.
    pub fn tries(&self, rounds: usize) -> Tries<'_> {
        Tries::new(rounds, Duration::MAX)
    }

    /// One `MPI_Allreduce` of 8 bytes.
    pub fn allreduce(&self) {
        let mut sum = 0.0;
        self.world
            .all_reduce_into(&1.0, &mut sum, SystemOperation::sum());
        std::hint::black_box(sum);
    }

    /// One `MPI_Allgatherv`, of the bytes of `mine` from each rank.
    pub fn gather(&self, mine: &[u8], all: &mut [u8]) {
        let counts = vec![as_count(mine.len()); self.size()];
        let mut to = PartitionMut::new(all, &counts[..], starts(&counts));
        self.world.all_gather_varcount_into(mine, &mut to);
    }

    /// One `MPI_Alltoallv`, with the numbers of bytes for each rank and from each.
    pub fn exchange(
        &self,
        send: &[u8],
        receive: &mut [u8],
        (out, into): &(Vec<usize>, Vec<usize>),
    ) {
        let counts = |counts: &[usize]| -> Vec<Count> {
            counts.iter().map(|count| as_count(*count)).collect()
        };
        let (out, into) = (counts(out), counts(into));
        let from = Partition::new(send, &out[..], starts(&out));
        let mut to = PartitionMut::new(receive, &into[..], starts(&into));
        self.world.all_to_all_varcount_into(&from, &mut to);
    }
}

fn as_count(bytes: usize) -> Count {
    Count::try_from(bytes).unwrap()
}

fn starts(counts: &[Count]) -> Vec<Count> {
    let sum = |next: &mut Count, count: &Count| {
        *next += count;
        Some(*next - count)
    };
    counts.iter().scan(0, sum).collect()
}
