//! Who waits for what, and whether one more wait could never end.
//!
//! Nodes are runs. A thread that waits for a run adds edges to it: from each run
//! of its *ancestry* a dependency edge (they can't end before this one does),
//! and from each run that is merely suspended on its *stack* a stack edge (it
//! can't go on before the thread comes back to it). A wait that closes a cycle
//! would never end:
//!
//! - if the cycle has dependency edges only, a run needs its own result, whatever
//!   thread does what: an error, with the path;
//! - if a stack edge is in it, the run is only in the wrong place: the thread
//!   computes the result itself, and nothing waits.
//!
//! The check and the adding of the edge are one step under one lock, so of the
//! waits that would close a cycle the last one sees it. The lock is taken only by
//! those about to wait.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::{Mutex, MutexGuard};

/// Something that can be waited for.
pub(crate) trait Awaited {
    /// Whether waiting for it is over; edges to it are then of no account.
    fn is_over(&self) -> bool;
}

/// The waits that are going on.
pub(crate) struct Waits<N, T> {
    edges: Mutex<Edges<N, T>>,
}

struct Edges<N, T> {
    list: Vec<Edge<N, T>>,
    next: u64,
}

struct Edge<N, T> {
    id: u64,
    from: From<N>,
    to: N,
    awaited: Arc<T>,
}

/// Where a thread is that is about to wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct From<N> {
    /// The runs that need the result, innermost first.
    pub(crate) ancestry: Vec<N>,
    /// The runs suspended on the thread, those of the ancestry among them or not.
    pub(crate) stack: Vec<N>,
}

/// Whether to wait.
pub(crate) enum Verdict<'a, N: PartialEq + Clone, T: Awaited> {
    /// Wait; the edge stays for as long as the guard lives.
    Wait(WaitGuard<'a, N, T>),
    /// Waiting could never end, but computing can.
    Compute,
    /// A run needs its own result: the runs of the cycle, the first one again at
    /// the end.
    Cycle(Vec<N>),
}

/// One wait that is going on.
pub(crate) struct WaitGuard<'a, N: PartialEq + Clone, T: Awaited> {
    waits: &'a Waits<N, T>,
    id: u64,
}

impl<N: PartialEq + Clone, T: Awaited> Drop for WaitGuard<'_, N, T> {
    fn drop(&mut self) {
        let mut edges = self.waits.lock();
        if let Some(at) = edges.list.iter().position(|edge| edge.id == self.id) {
            edges.list.swap_remove(at);
        }
    }
}

impl<N: PartialEq + Clone, T: Awaited> Waits<N, T> {
    pub(crate) fn new() -> Self {
        Self {
            edges: Mutex::new(Edges {
                list: Vec::new(),
                next: 0,
            }),
        }
    }

    /// Decides about waiting for `to`, and if it may be waited for, notes it.
    pub(crate) fn begin(&self, from: From<N>, to: N, awaited: &Arc<T>) -> Verdict<'_, N, T> {
        let mut edges = self.lock();
        if let Some(path) = cycle(&edges.list, &from, &to) {
            return Verdict::Cycle(path);
        }
        if blocks_itself(&edges.list, &from, &to) {
            return Verdict::Compute;
        }
        let id = edges.next;
        edges.next += 1;
        edges.list.push(Edge {
            id,
            from,
            to,
            awaited: Arc::clone(awaited),
        });
        drop(edges);
        Verdict::Wait(WaitGuard { waits: self, id })
    }

    fn lock(&self) -> MutexGuard<'_, Edges<N, T>> {
        self.edges
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The path of dependencies by which `to` needs a run of `from`'s ancestry.
fn cycle<N: PartialEq + Clone, T: Awaited>(
    edges: &[Edge<N, T>],
    from: &From<N>,
    to: &N,
) -> Option<Vec<N>> {
    // Each item: a run that `to` needs, and the way there from `to`.
    let mut queue = VecDeque::from([vec![to.clone()]]);
    let mut seen = vec![to.clone()];
    while let Some(way) = queue.pop_front() {
        let needed = way.last()?;
        if let Some(depth) = from.ancestry.iter().position(|run| run == needed) {
            let mut path = from.ancestry[..=depth].to_vec();
            path.reverse();
            path.extend(way);
            return Some(path);
        }
        for edge in edges.iter().filter(|edge| !edge.awaited.is_over()) {
            let Some(depth) = edge.from.ancestry.iter().position(|run| run == needed) else {
                continue;
            };
            if seen.contains(&edge.to) {
                continue;
            }
            seen.push(edge.to.clone());
            let mut way = way.clone();
            way.extend(edge.from.ancestry[..depth].iter().rev().cloned());
            way.push(edge.to.clone());
            queue.push_back(way);
        }
    }
    None
}

/// Whether `to` can't go on before the waiting thread does.
fn blocks_itself<N: PartialEq + Clone, T: Awaited>(
    edges: &[Edge<N, T>],
    from: &From<N>,
    to: &N,
) -> bool {
    let mut blocked = vec![to.clone()];
    let mut next = 0;
    while let Some(run) = blocked.get(next).cloned() {
        next += 1;
        if from.stack.contains(&run) || from.ancestry.contains(&run) {
            return true;
        }
        for edge in edges.iter().filter(|edge| !edge.awaited.is_over()) {
            let waits = edge.from.ancestry.contains(&run) || edge.from.stack.contains(&run);
            if waits && !blocked.contains(&edge.to) {
                blocked.push(edge.to.clone());
            }
        }
    }
    false
}
