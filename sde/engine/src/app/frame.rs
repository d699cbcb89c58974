//! The runs in progress: their callers, and their order on the stacks of threads.
//!
//! A run that waits for another must know two sets of runs. Its *ancestry*, by handles: the runs that can't end before
//! it does, because they called it. Its *stack*: the runs that are suspended on its thread, or on the thread that waits
//! for this one. With rayon the two differ, since a worker that waits may have stolen an unrelated job. A frame has
//! both links.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::cancel::{CancelToken, Wake};
use super::dependencies::Dependencies;
use super::own_time::RunClock;
use super::prepared::ResolvedApp;
use crate::event::RunId;
use crate::key::Key;

pub(crate) struct Frame {
    pub(crate) resolved: Arc<ResolvedApp>,
    pub(crate) key: Key,
    /// The engine it runs in, by its address: a program may have several.
    pub(crate) engine: usize,
    /// The run of the same engine that called this one.
    pub(crate) parent: Option<Arc<Frame>>,
    /// The run that can't end before this one does: the parent, or a run of another engine.
    pub(crate) above: Option<Arc<Frame>>,
    /// The run on top of the thread's stack when this run began.
    pub(crate) below: Option<Arc<Frame>>,
    /// The length of the longest chain of its callers and of runs below it on its thread, with itself.
    pub(crate) depth: usize,
    /// The token by which its caller gives up.
    pub(crate) cancel: Vec<CancelToken>,
    /// The flight that it computes for all callers; `None` if it computes for its own caller alone.
    flight: Option<Arc<dyn Wake>>,
    /// Whether the caller or a run of its ancestry can give up.
    can_be_cancelled: bool,
    /// Whether it is on a rayon worker, or nested in a run that is: that worker may be blocked until this run ends,
    /// whatever thread it is on.
    pub(crate) on_rayon: bool,
    active: AtomicBool,
    /// Whether any code was told that nobody wants the result.
    told_unwanted: AtomicBool,
    pub(crate) dependencies: Dependencies,
    pub(crate) clock: RunClock,
    pub(crate) states: StateNumbers,
}

/// Numbers the states of a run that ranks make together.
#[derive(Default)]
pub(crate) struct StateNumbers {
    /// The run, and the process set that makes it.
    of: OnceLock<(RunId, Option<u64>)>,
    last: AtomicU64,
}

impl StateNumbers {
    pub(crate) fn begin(&self, run: RunId, set: Option<u64>) {
        // A body is begun once.
        let _ = self.of.set((run, set));
    }

    /// The run, if it is made by this process set.
    pub(crate) fn run(&self, set: Option<u64>) -> Option<RunId> {
        let (run, own) = self.of.get()?;
        (*own == set).then_some(*run)
    }

    /// The number of the next state: the number of `meetings` before it. `None` without a meeting since the last state:
    /// ranks could then be any number of states apart. A run of one rank (`meetings` is `None`) numbers all its states.
    pub(crate) fn next(&self, meetings: Option<u64>) -> Option<u64> {
        let next = match meetings {
            Some(meetings) => meetings,
            None => self.last.load(Ordering::Relaxed) + 1,
        };
        (self.last.swap(next, Ordering::Relaxed) != next).then_some(next)
    }
}

impl Frame {
    pub(crate) fn new(
        resolved: Arc<ResolvedApp>,
        key: Key,
        engine: usize,
        parent: Option<Arc<Self>>,
        above: Option<Arc<Self>>,
        cancel: Vec<CancelToken>,
        flight: Option<Arc<dyn Wake>>,
    ) -> Self {
        let below = ThreadContext::here().top;
        let runs = [&parent, &above, &below];
        let on_rayon = on_rayon_worker() || runs.into_iter().flatten().any(|run| run.on_rayon);
        let caller = parent.as_ref();
        Self {
            resolved,
            key,
            engine,
            can_be_cancelled: !cancel.is_empty() || caller.is_some_and(|run| run.can_be_cancelled),
            on_rayon,
            depth: 1 + depth(caller, below.as_ref()),
            parent,
            above,
            below,
            cancel,
            flight,
            active: AtomicBool::new(true),
            told_unwanted: AtomicBool::new(false),
            dependencies: Dependencies::default(),
            clock: RunClock::default(),
            states: StateNumbers::default(),
        }
    }

    /// Whether nobody wants the result any more: its caller, or the run that it is part of, gave up, and nobody else
    /// waits for it.
    pub(crate) fn is_unwanted(&self) -> bool {
        if !self.can_be_cancelled {
            return false;
        }
        let (parent, flight) = (self.parent.as_ref(), self.flight.as_ref());
        let given_up = self.cancel.iter().any(CancelToken::is_cancelled)
            || parent.is_some_and(|parent| parent.is_unwanted());
        let unwanted = given_up && !flight.is_some_and(|flight| flight.is_wanted());
        if unwanted {
            self.told_unwanted.store(true, Ordering::Relaxed);
        }
        unwanted
    }

    /// Whether it, or a run nested in it, was told that nobody wants its result.
    pub(crate) fn was_told_unwanted(&self) -> bool {
        self.told_unwanted.load(Ordering::Relaxed)
    }

    /// Whether it computes for all callers, not for its own alone.
    pub(crate) fn is_claimed(&self) -> bool {
        self.flight.is_some()
    }

    /// `app [short key]`.
    pub(crate) fn label(&self) -> String {
        format!("{} [{}]", self.resolved.name, self.key.short())
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    pub(crate) fn end(&self) {
        self.active.store(false, Ordering::Release);
    }
}

fn depth(a: Option<&Arc<Frame>>, b: Option<&Arc<Frame>>) -> usize {
    let of = |frame: Option<&Arc<Frame>>| frame.map_or(0, |frame| frame.depth);
    of(a).max(of(b))
}

/// How many runs a run called here by `parent` would be part of or lie upon: its thread's stack holds no more.
pub(crate) fn depth_here(parent: Option<&Arc<Frame>>) -> usize {
    depth(parent, ThreadContext::here().top.as_ref())
}

/// The runs that called this one, itself first, in whatever engine they are.
pub(crate) fn ancestry(frame: Option<&Arc<Frame>>) -> impl Iterator<Item = &Arc<Frame>> {
    std::iter::successors(frame, |frame| frame.above.as_ref())
}

/// The runs suspended below this one on its thread, itself first.
pub(crate) fn stack(frame: Option<&Arc<Frame>>) -> impl Iterator<Item = &Arc<Frame>> {
    std::iter::successors(frame, |frame| frame.below.as_ref())
}

/// Whether this thread is a rayon worker. Its stack may have pieces of runs, unseen by the engine, between those that
/// the engine sees.
fn on_rayon_worker() -> bool {
    rayon::current_thread_index().is_some()
}

/// The work in progress on a thread.
#[derive(Clone, Default)]
pub(crate) struct ThreadContext {
    /// The run on top of its stack.
    pub(crate) top: Option<Arc<Frame>>,
    /// Whether the thread does a share of work that other threads do shares of.
    shares: bool,
    /// The engine that plans what this thread does, by its address; 0 if none does.
    planned_by: usize,
}

thread_local! {
    static CONTEXT: RefCell<ThreadContext> = const { RefCell::new(ThreadContext { top: None, shares: false, planned_by: 0 }) };
}

impl ThreadContext {
    pub(crate) fn here() -> Self {
        CONTEXT.with_borrow(Clone::clone)
    }

    /// Whether a rayon worker may be blocked until a call ends that is made here on behalf of a run. Such a call must
    /// wait neither without bound for another run, nor for helpers.
    pub(crate) fn is_on_rayon(&self, on_behalf_of: Option<&Arc<Frame>>) -> bool {
        let runs = [self.top.as_ref(), on_behalf_of];
        on_rayon_worker() || runs.into_iter().flatten().any(|run| run.on_rayon)
    }

    /// This context for a share of work that other threads do shares of.
    pub(crate) fn sharing(self) -> Self {
        Self {
            shares: true,
            ..self
        }
    }

    /// This thread's context with an engine that plans.
    pub(crate) fn planned(engine: usize) -> Self {
        Self {
            planned_by: engine,
            ..Self::here()
        }
    }

    /// Whether this engine plans what this thread does.
    pub(crate) fn is_planned_by(engine: usize) -> bool {
        CONTEXT.with_borrow(|context| context.planned_by == engine)
    }

    /// Whether other threads may do parts of this thread's work, so that events here are in no order of the program.
    pub(crate) fn is_beside(&self) -> bool {
        self.shares || on_rayon_worker()
    }

    /// This thread's context with one more run on top.
    pub(crate) fn on_top(frame: Arc<Frame>) -> Self {
        Self {
            top: Some(frame),
            ..Self::here()
        }
    }

    /// The run that a call without a handle belongs to: the one on top of this thread, or none on a rayon worker, which
    /// may be doing several things.
    #[inline]
    pub(crate) fn caller() -> Option<Arc<Frame>> {
        CONTEXT.with_borrow(|context| context.top.as_ref().and_then(sole_caller))
    }

    /// Makes this the context of this thread for as long as the guard lives.
    pub(crate) fn enter(self) -> OnThread {
        OnThread {
            before: CONTEXT.replace(self),
            _not_send: std::marker::PhantomData,
        }
    }
}

#[inline(never)]
fn sole_caller(top: &Arc<Frame>) -> Option<Arc<Frame>> {
    (!on_rayon_worker()).then(|| Arc::clone(top))
}

/// Restores the context that [`ThreadContext::enter`] replaced.
pub(crate) struct OnThread {
    before: ThreadContext,
    /// The guard must be dropped on the thread that made it.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for OnThread {
    fn drop(&mut self) {
        CONTEXT.set(std::mem::take(&mut self.before));
    }
}
