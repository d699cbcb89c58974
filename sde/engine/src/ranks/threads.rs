//! Threads that act as ranks.
//!
//! Each operation is a round: every rank deposits its contribution for each of them, and waits until all have.
//! Contributions queue up, so a rank that is slow to collect does not hold up the next round.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::group::{GroupError, Note, ProcessGroup, Subgroup, deliver, fill, renumbered};
use crate::sync::{MutexGuard, lock, wait_timeout};

/// A group whose ranks are threads of this process, for trying out a program for many ranks
/// without MPI, and for tests.
///
/// ```
/// use sde::ranks::{ProcessGroup, ThreadGroup};
///
/// let sums = ThreadGroup::run(3, |group| {
///     let mut all = [0; 3];
///     group.all_gather(&[group.rank() as u8], &[1; 3], &mut all)?;
///     Ok::<u8, sde::ranks::GroupError>(all.iter().sum())
/// });
/// assert_eq!(sums, [Ok(3), Ok(3), Ok(3)]);
/// ```
pub struct ThreadGroup {
    rank: usize,
    shared: Arc<GroupState>,
}

struct GroupState {
    nodes: Vec<usize>,
    state: Mutex<Rounds>,
    changed: Condvar,
}

struct Rounds {
    /// For each rank the contributions of each that it has not collected.
    given: Vec<Vec<VecDeque<Given>>>,
    /// The ranks that have left.
    gone: Vec<bool>,
    /// For each rank the notes that others have posted to it.
    posted: Vec<VecDeque<(usize, Note)>>,
}

/// The contribution of one rank, whose type depends on the operation.
type Given = Arc<dyn Any + Send + Sync>;

impl fmt::Debug for ThreadGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.shared.nodes.len();
        write!(f, "ThreadGroup(rank {} of {size})", self.rank)
    }
}

impl ThreadGroup {
    /// A group of this many ranks, all on one node; one object for each rank.
    #[must_use]
    pub fn ranks(size: usize) -> Vec<Self> {
        Self::on_nodes(vec![0; size])
    }

    /// Makes ranks of threads that lie on nodes, by the number of each rank's node.
    #[must_use]
    pub fn on_nodes(nodes: Vec<usize>) -> Vec<Self> {
        let size = nodes.len();
        let shared = GroupState::new(nodes);
        let rank = |rank| Self {
            rank,
            shared: Arc::clone(&shared),
        };
        (0..size).map(rank).collect()
    }

    /// Calls a function on a thread for each of `size` ranks; gives the results in the order of ranks.
    ///
    /// # Panics
    /// If the function panics on any of them, after all have ended.
    pub fn run<R: Send>(size: usize, rank: impl Fn(Self) -> R + Sync) -> Vec<R> {
        let rank = &rank;
        std::thread::scope(|scope| {
            let groups = Self::ranks(size).into_iter();
            let threads = groups.map(|group| scope.spawn(move || rank(group)));
            let threads: Vec<_> = threads.collect();
            let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            let ended = ended.into_iter();
            ended
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
        let (shared, given): (_, Given) = (&*self.shared, Arc::new(given));
        let mut state = shared.lock();
        for of_rank in &mut state.given {
            of_rank[self.rank].push_back(Arc::clone(&given));
        }
        shared.changed.notify_all();
        loop {
            let missing = state.missing(self.rank);
            if missing.is_empty() {
                let given = state.given[self.rank].iter_mut();
                let given = given.filter_map(VecDeque::pop_front).enumerate();
                let other = |rank| format!("rank {rank} calls another operation of the group");
                let given = given.map(|(rank, given)| {
                    let given = given.downcast();
                    given.map_err(|_| GroupError::Other(other(rank)))
                });
                return given.collect();
            }
            if let Some(rank) = missing.iter().copied().find(|rank| state.gone[*rank]) {
                return Err(GroupError::Left { rank });
            }
            let is_late;
            (state, is_late) = wait_timeout(&shared.changed, state, patience);
            if is_late {
                let missing = state.missing(self.rank);
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
            given: vec![vec![VecDeque::new(); size]; size],
            gone: vec![false; size],
            posted: vec![VecDeque::new(); size],
        };
        Arc::new(Self {
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
    /// The ranks that have not come to the next round of a rank.
    fn missing(&self, rank: usize) -> Vec<usize> {
        let given = self.given[rank].iter().enumerate();
        let missing = given.filter(|(_, given)| given.is_empty());
        missing.map(|(rank, _)| rank).collect()
    }
}

impl ProcessGroup for ThreadGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.nodes.len()
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
        let part = shared.zip(rank);
        Ok(part.map(|(shared, rank)| Box::new(Self { rank, shared }) as _))
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
