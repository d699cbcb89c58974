//! Threads that act as ranks.
//!
//! Each operation is a round: every rank deposits its contribution, and waits until all have. Ranks number their
//! rounds, so a rank that is slow to collect does not hold up the next round.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::group::{GroupError, Note, ProcessGroup, Subgroup, deliver, fill, renumbered};
use crate::sync::{MutexGuard, lock, wait_timeout};

/// A group whose ranks are threads of this process, for trying out a program for many ranks
/// without MPI, and for tests.
///
/// ```
/// use sde::{ProcessGroup, ThreadGroup};
///
/// let sums = ThreadGroup::run(3, |group| {
///     let mut all = [0; 3];
///     group.all_gather(&[group.rank() as u8], &[1; 3], &mut all)?;
///     Ok::<u8, sde::GroupError>(all.iter().sum())
/// });
/// assert_eq!(sums, [Ok(3), Ok(3), Ok(3)]);
/// ```
pub struct ThreadGroup {
    rank: usize,
    shared: Arc<GroupState>,
    rounds: AtomicU64,
}

struct GroupState {
    size: usize,
    nodes: Vec<usize>,
    state: Mutex<Rounds>,
    changed: Condvar,
}

#[derive(Default)]
struct Rounds {
    rounds: HashMap<u64, Round>,
    /// The ranks that have left.
    gone: Vec<bool>,
    /// For each rank the notes that others have posted to it.
    posted: Vec<VecDeque<(usize, Note)>>,
}

/// The contributions to a round, and the number of ranks that have collected them.
struct Round {
    given: Vec<Option<Given>>,
    taken: usize,
}

/// The contribution of one rank, whose type depends on the operation.
type Given = Arc<dyn Any + Send + Sync>;

impl ThreadGroup {
    /// A group of this many ranks, all on one node; one object for each rank.
    #[must_use]
    pub fn new(size: usize) -> Vec<Self> {
        Self::on_nodes(vec![0; size])
    }

    /// As [`new`](Self::new), with the number of each rank's node.
    #[must_use]
    pub fn on_nodes(nodes: Vec<usize>) -> Vec<Self> {
        let shared = GroupState::new(nodes);
        let rank = |rank| Self {
            rank,
            shared: Arc::clone(&shared),
            rounds: AtomicU64::new(0),
        };
        (0..shared.size).map(rank).collect()
    }

    /// Calls a function on a thread for each of `size` ranks; gives the results in the order of ranks.
    ///
    /// # Panics
    /// If the function panics on any of them, after all have ended.
    pub fn run<R: Send>(size: usize, rank: impl Fn(Self) -> R + Sync) -> Vec<R> {
        let rank = &rank;
        std::thread::scope(|scope| {
            let threads: Vec<_> = Self::new(size)
                .into_iter()
                .map(|group| scope.spawn(move || rank(group)))
                .collect();
            let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            ended
                .into_iter()
                .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    /// Deposits this rank's contribution, waits for the others, and gives all contributions.
    fn round<T: Any + Send + Sync>(
        &self,
        given: T,
        mut waiting: impl FnMut(&[usize]),
        patience: Duration,
    ) -> Result<Vec<Arc<T>>, GroupError> {
        let number = self.rounds.fetch_add(1, Ordering::Relaxed);
        let shared = &*self.shared;
        let mut state = shared.lock();
        let size = shared.size;
        let round = state.rounds.entry(number).or_insert_with(|| Round {
            given: vec![None; size],
            taken: 0,
        });
        round.given[self.rank] = Some(Arc::new(given));
        shared.changed.notify_all();
        loop {
            let missing = state.missing(number);
            if missing.is_empty() {
                let given = state.take(number, size).into_iter().enumerate();
                return given.map(|(rank, given)| of_type(rank, given)).collect();
            }
            if let Some(rank) = missing.iter().copied().find(|rank| state.gone[*rank]) {
                return Err(GroupError::Left { rank });
            }
            let is_late;
            (state, is_late) = wait_timeout(&shared.changed, state, patience);
            if is_late {
                let missing = state.missing(number);
                drop(state);
                if !missing.is_empty() {
                    waiting(&missing);
                }
                state = shared.lock();
            }
        }
    }

    fn simple_round<T: Any + Send + Sync>(&self, given: T) -> Result<Vec<Arc<T>>, GroupError> {
        self.round(given, |_| {}, Duration::from_secs(60))
    }
}

impl GroupState {
    fn new(nodes: Vec<usize>) -> Arc<Self> {
        let size = nodes.len();
        let state = Rounds {
            gone: vec![false; size],
            posted: vec![VecDeque::new(); size],
            ..Rounds::default()
        };
        Arc::new(Self {
            size,
            nodes,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Rounds> {
        lock(&self.state)
    }
}

impl Rounds {
    /// The ranks that have not come to a round.
    fn missing(&self, number: u64) -> Vec<usize> {
        let given = self.rounds.get(&number).map_or(&[][..], |r| &r.given);
        let missing = given.iter().enumerate().filter(|(_, g)| g.is_none());
        missing.map(|(rank, _)| rank).collect()
    }

    /// All contributions to a round. The last rank to collect them removes the round.
    fn take(&mut self, number: u64, size: usize) -> Vec<Given> {
        let Some(round) = self.rounds.get_mut(&number) else {
            return Vec::new();
        };
        let given = round.given.iter().flatten().cloned().collect();
        round.taken += 1;
        if round.taken == size {
            self.rounds.remove(&number);
        }
        given
    }
}

fn of_type<T: Any + Send + Sync>(rank: usize, given: Given) -> Result<Arc<T>, GroupError> {
    let why = || format!("rank {rank} calls another operation of the group");
    given.downcast().map_err(|_| GroupError::Other(why()))
}

impl ProcessGroup for ThreadGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn nodes(&self) -> Vec<usize> {
        self.shared.nodes.clone()
    }

    fn meet(
        &self,
        message: &[u8],
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        let given = self.round(message.to_vec(), late, patience)?;
        match given.iter().position(|of| of.len() != message.len()) {
            Some(rank) => Err(GroupError::Length {
                rank,
                given: given[rank].len(),
                expected: message.len(),
            }),
            None => Ok(given.iter().flat_map(|of| of.iter().copied()).collect()),
        }
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        let given = self.simple_round(mine.to_vec())?;
        let mut rest = all;
        for (rank, given) in given.iter().enumerate() {
            let count = counts.get(rank).copied().unwrap_or(0);
            let (place, others) = rest.split_at_mut(count.min(rest.len()));
            fill(rank, place, Some(given))?;
            rest = others;
        }
        fill(self.rank, rest, Some(&[]))
    }

    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        let messages = send.iter().map(|(to, message)| (*to, message.to_vec()));
        let given = self.simple_round(messages.collect::<Vec<_>>())?;
        for (from, messages) in given.iter().enumerate() {
            let messages = messages.iter().map(|(to, message)| (*to, &message[..]));
            deliver(from, messages, self.rank, receive)?;
        }
        Ok(())
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        let choices = self.simple_round((color, key))?;
        let of_color = choices.iter().enumerate();
        let of_color = of_color.filter(|(_, choice)| choice.0 == color && color.is_some());
        let mut members: Vec<_> = of_color.map(|(rank, choice)| (choice.1, rank)).collect();
        members.sort_unstable();
        let members: Vec<_> = members.into_iter().map(|(_, rank)| rank).collect();
        // The first member makes the group, and the other members get it from that rank.
        let makes = (members.first() == Some(&self.rank)).then(|| {
            let nodes = members.iter().map(|rank| self.shared.nodes[*rank]);
            GroupState::new(renumbered(nodes))
        });
        let made = self.simple_round(makes)?;
        let shared = members.first().and_then(|first| (*made[*first]).clone());
        let rank = members.iter().position(|rank| *rank == self.rank);
        Ok(shared.zip(rank).map(|(shared, rank)| {
            Box::new(Self {
                rank,
                shared,
                rounds: AtomicU64::new(0),
            }) as _
        }))
    }

    fn post(&self, rank: usize, note: Note) -> Result<(), GroupError> {
        self.shared.lock().posted[rank].push_back((self.rank, note));
        Ok(())
    }

    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        let mut state = self.shared.lock();
        match (
            state.posted[self.rank].pop_front(),
            state.gone.iter().position(|gone| *gone),
        ) {
            (None, Some(rank)) => Err(GroupError::Left { rank }),
            (posted, _) => Ok(posted),
        }
    }

    fn leave(&self) {
        self.shared.lock().gone[self.rank] = true;
        self.shared.changed.notify_all();
    }
}

/// A thread that ends, by a panic too, leaves.
impl Drop for ThreadGroup {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests of the workspace's group contract cover the other ways of leaving.
    #[test]
    fn who_leaves_holds_up_nobody() {
        let met = ThreadGroup::run(3, |group| match group.rank() {
            2 => Ok(Vec::new()),
            _ => group.meet(&[], Duration::MAX, &mut |_| {}),
        });
        assert_eq!(met[0], Err(GroupError::Left { rank: 2 }));
        assert_eq!(met[1], Err(GroupError::Left { rank: 2 }));
    }
}
