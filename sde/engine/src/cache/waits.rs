//! The waits between runs, and whether one more wait could never end.
//!
//! Nodes are runs. A thread that waits for a run adds edges to it. Each run of the thread's *ancestry* gets a
//! dependency edge: it can't end before the awaited run does. Each run that is merely suspended on the thread's *stack*
//! gets a stack edge: it can't go on before the thread comes back to it. A wait that closes a cycle would never end:
//! - if the cycle has dependency edges only, a run needs its own result, whichever thread computes it: an error, with
//!   the path;
//! - if a stack edge is in it, the run is only suspended at a bad place: the thread computes the result itself instead
//!   of waiting.
//!
//! Some threads wait for an *exclusive* run to be out of the way, not for its result. A cycle with such a wait in it is
//! no error either. Another wait of the cycle, one for a result, is resolved: its thread computes that result itself.
//! It is the last wait to come, or one that is called off. The exclusive run is an ancestor of that thread's run, and
//! runs nested in it have an exclusive run among themselves.
//!
//! The waits are those of the whole program: engines share no results, but a run of one engine may need a run of
//! another.
//!
//! Check and insertion are one step under one lock, so the last of the waits that would close a cycle sees it. Only
//! threads about to wait take the lock.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::modelled::{Mutex, MutexGuard, lock};

/// Something that can be waited for.
pub(crate) trait Awaited {
    /// Whether waiting for it is over; edges to it then no longer count.
    fn is_over(&self) -> bool;

    /// Has its waiters check again whether they still should wait.
    fn wake(&self);
}

/// The event that a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// The result of a run.
    Made,
    /// The end of an exclusive run.
    Gone,
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
    from: WaitSite<N>,
    to: N,
    awaited: Arc<T>,
    until: Until,
    called_off: Arc<AtomicBool>,
}

impl<N, T: Awaited> Edge<N, T> {
    fn counts(&self) -> bool {
        !self.awaited.is_over() && !self.called_off.load(Ordering::Acquire)
    }
}

/// The position of a thread that is about to wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitSite<N> {
    /// The runs that need the result, innermost first.
    pub(crate) ancestry: Vec<N>,
    /// The runs suspended on the thread, whether or not they are in the ancestry.
    pub(crate) stack: Vec<N>,
}

/// Whether to wait.
pub(crate) enum Verdict<'a, N: PartialEq + Clone, T: Awaited> {
    /// Wait; the edge stays for as long as the guard lives.
    Wait(WaitGuard<'a, N, T>),
    /// Waiting could never end, but computing can.
    Compute,
    /// A run needs its own result: the runs of the cycle, with the first again at the end.
    Cycle(Vec<N>),
}

/// One wait that is going on.
pub(crate) struct WaitGuard<'a, N: PartialEq + Clone, T: Awaited> {
    waits: &'a Waits<N, T>,
    id: u64,
    called_off: Arc<AtomicBool>,
}

impl<N: PartialEq + Clone, T: Awaited> WaitGuard<'_, N, T> {
    /// Set while the wait goes on if the thread is to compute the result itself, which breaks a cycle. The awaited run
    /// is woken after it is set.
    pub(crate) fn called_off(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.called_off)
    }
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

    /// Decides about waiting for `to`, and notes the wait if it is allowed.
    pub(crate) fn begin(
        &self,
        from: WaitSite<N>,
        to: N,
        awaited: &Arc<T>,
        until: Until,
    ) -> Verdict<'_, N, T> {
        let mut edges = self.lock();
        let mut called_off = Vec::new();
        let cycle = match until {
            Until::Made => made_by_itself(&edges.list, &from, &to),
            Until::Gone => {
                call_off(&edges.list, &from, &to, &mut called_off);
                None
            }
        };
        let verdict = match cycle {
            Some(path) => Verdict::Cycle(path),
            None if blocks_itself(&edges.list, &from, &to) => Verdict::Compute,
            None => self.add(&mut edges, from, to, awaited, until),
        };
        drop(edges);
        called_off.iter().for_each(|awaited| awaited.wake());
        verdict
    }

    /// Has threads that wait on behalf of a run check again whether they still should.
    pub(crate) fn wake_nested(&self, run: &N) {
        let edges = self.lock();
        let nested = edges
            .list
            .iter()
            .filter(|edge| edge.from.ancestry.contains(run));
        let awaited: Vec<_> = nested.map(|edge| Arc::clone(&edge.awaited)).collect();
        drop(edges);
        awaited.iter().for_each(|awaited| awaited.wake());
    }

    fn add(
        &self,
        edges: &mut Edges<N, T>,
        from: WaitSite<N>,
        to: N,
        awaited: &Arc<T>,
        until: Until,
    ) -> Verdict<'_, N, T> {
        let id = edges.next;
        edges.next += 1;
        let called_off = Arc::new(AtomicBool::new(false));
        edges.list.push(Edge {
            id,
            from,
            to,
            awaited: Arc::clone(awaited),
            until,
            called_off: Arc::clone(&called_off),
        });
        Verdict::Wait(WaitGuard {
            waits: self,
            id,
            called_off,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Edges<N, T>> {
        lock(&self.edges)
    }
}

/// The path of dependencies by which `to` needs a run of `from`'s ancestry.
fn made_by_itself<N: PartialEq + Clone, T: Awaited>(
    edges: &[Edge<N, T>],
    from: &WaitSite<N>,
    to: &N,
) -> Option<Vec<N>> {
    let (depth, way) = way_back(edges, from, to, |edge| edge.until == Until::Made)?;
    let mut path = from.ancestry[..=depth].to_vec();
    path.reverse();
    path.push(to.clone());
    let mut at = to;
    for edge in way {
        let depth = edge.from.ancestry.iter().position(|run| run == at)?;
        path.extend(edge.from.ancestry[..depth].iter().rev().cloned());
        path.push(edge.to.clone());
        at = &edge.to;
    }
    Some(path)
}

/// Calls off the first wait for a result, which is nested in `to`, on each path by which `to` can't end before a run of
/// `from`'s ancestry. A path of waits for exclusive runs alone stays.
fn call_off<N: PartialEq + Clone, T: Awaited>(
    edges: &[Edge<N, T>],
    from: &WaitSite<N>,
    to: &N,
    called_off: &mut Vec<Arc<T>>,
) {
    while let Some((_, way)) = way_back(edges, from, to, |_| true) {
        let Some(edge) = way.iter().find(|edge| edge.until == Until::Made) else {
            return;
        };
        edge.called_off.store(true, Ordering::Release);
        called_off.push(Arc::clone(&edge.awaited));
    }
}

/// A path of waits by which `to` can't end before a run of `from`'s ancestry, and that run's depth there.
fn way_back<'e, N: PartialEq + Clone, T: Awaited>(
    edges: &'e [Edge<N, T>],
    from: &WaitSite<N>,
    to: &'e N,
    through: impl Fn(&Edge<N, T>) -> bool,
) -> Option<(usize, Vec<&'e Edge<N, T>>)> {
    // Each item: a run that `to` needs, and the path of waits to it.
    let mut queue = VecDeque::from([(to, Vec::new())]);
    let mut seen = vec![to];
    while let Some((needed, way)) = queue.pop_front() {
        if let Some(depth) = from.ancestry.iter().position(|run| run == needed) {
            return Some((depth, way));
        }
        for edge in edges.iter().filter(|edge| edge.counts() && through(edge)) {
            if edge.from.ancestry.contains(needed) && !seen.contains(&&edge.to) {
                seen.push(&edge.to);
                let mut way = way.clone();
                way.push(edge);
                queue.push_back((&edge.to, way));
            }
        }
    }
    None
}

/// Whether `to` can't go on before the waiting thread does.
fn blocks_itself<N: PartialEq + Clone, T: Awaited>(
    edges: &[Edge<N, T>],
    from: &WaitSite<N>,
    to: &N,
) -> bool {
    let mut blocked = vec![to.clone()];
    let mut next = 0;
    while let Some(run) = blocked.get(next).cloned() {
        next += 1;
        if from.stack.contains(&run) || from.ancestry.contains(&run) {
            return true;
        }
        for edge in edges.iter().filter(|edge| edge.counts()) {
            let waits = edge.from.ancestry.contains(&run) || edge.from.stack.contains(&run);
            if waits && !blocked.contains(&edge.to) {
                blocked.push(edge.to.clone());
            }
        }
    }
    false
}
