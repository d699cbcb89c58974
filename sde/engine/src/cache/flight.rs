//! One computation in progress, and the threads that wait for it.
//!
//! The states of a flight and its transitions:
//!
//! ```text
//!            runner fails for good, nobody waits, or it was taken over before
//!          +------------------------------------------------------------------+
//!          |                                                                  v
//!   Running --- runner succeeds ------------------------------------------> Complete
//!    ^     |                                                                  ^
//!    |     +--- runner panics or fails for now, a thread waits --> Vacant ----+
//!    |                                                               |  last waiter leaves
//!    +---------------- one waiter takes over ------------------------+
//! ```
//!
//! It completes once; the first outcome wins. A runner that never comes back would
//! leave the others waiting, so the engine's claim guard always ends in
//! [`complete`](Flight::complete) or [`fail`](Flight::fail), by panic too.
//!
//! Several threads may compute one flight. The first that [decides](Flight::decide) it may write its value to a disk
//! before it completes the flight. Once decided, no waiter takes over or gives up, and no runner fails the flight.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::modelled::{Condvar, Mutex, MutexGuard, lock, wait};

/// A computation in progress that ends in a `V` or an `E`.
pub(crate) struct Flight<V, E> {
    state: Mutex<FlightState<V, E>>,
    changed: Condvar,
    /// Set with the state locked; read without the lock, where a late answer does no harm.
    complete: AtomicBool,
    /// How many threads are in [`Flight::wait`]. Changed with the state locked; read without the lock by a runner that
    /// decides whether to go on.
    waiting: AtomicUsize,
}

struct FlightState<V, E> {
    phase: Phase<V, E>,
    /// The value that the flight is to complete with.
    decided: Option<V>,
    taken_over: bool,
    /// The runner failed for now while nobody waited. A thread that waits later is too late to take over, and must not
    /// get an error that came before its call.
    abandoned: bool,
}

enum Phase<V, E> {
    Running,
    /// The runner failed with this error; a waiter may take over.
    Vacant(E),
    Complete(Result<V, E>),
}

/// How waiting ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited<V, E> {
    /// The flight is complete.
    Complete(Result<V, E>),
    /// The runner failed for now, and the caller is the runner from here on.
    TakeOver,
    /// The runner failed for now before the caller began to wait: the flight is
    /// over, and may be made again.
    TooLate,
    /// The caller was told to stop waiting.
    Stopped,
}

/// When a waiter should stop waiting.
pub(crate) trait Patience {
    /// Whether to stop now, whatever the flight does.
    fn is_over(&self) -> bool;

    /// Sleeps until woken, or for as long as there is patience.
    fn sleep<'a, T>(&self, on: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        wait(on, guard)
    }
}

/// The patience of a waiter that is never to give up.
pub(crate) struct Forever;

impl Patience for Forever {
    fn is_over(&self) -> bool {
        false
    }
}

impl<V: Clone, E: Clone> Flight<V, E> {
    /// A flight whose runner is the caller.
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(FlightState {
                phase: Phase::Running,
                decided: None,
                taken_over: false,
                abandoned: false,
            }),
            changed: Condvar::new(),
            complete: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Decides the flight's outcome. An error gives the value that another runner has decided on.
    pub(crate) fn decide(&self, value: V) -> Result<(), V> {
        let mut state = self.lock();
        match (&state.decided, &state.phase) {
            (Some(winner), _) | (None, Phase::Complete(Ok(winner))) => Err(winner.clone()),
            (None, _) => {
                state.decided = Some(value);
                Ok(())
            }
        }
    }

    /// The value that the flight is to complete with, once it is decided.
    pub(crate) fn decided(&self) -> Option<V> {
        self.lock().decided.clone()
    }

    /// Ends the flight with this outcome, unless it has one. Gives the winner.
    pub(crate) fn complete(&self, outcome: Result<V, E>) -> Result<V, E> {
        let mut state = self.lock();
        if let Phase::Complete(winner) = &state.phase {
            return winner.clone();
        }
        state.phase = Phase::Complete(outcome.clone());
        self.complete.store(true, Ordering::Release);
        self.free_and_wake(state);
        outcome
    }

    /// The runner failed. One of the waiters takes over if the run `may_be_retried`, others wait, and none has taken
    /// over before. Else the flight completes with the error. Says whether the flight goes on: by that waiter, or
    /// because another runner has decided it.
    pub(crate) fn fail(&self, error: E, may_be_retried: bool) -> bool {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Complete(_)) {
            return false;
        }
        if state.decided.is_some() {
            return true;
        }
        let hand_over = may_be_retried && self.waiting() > 0 && !state.taken_over;
        if hand_over {
            state.taken_over = true;
            state.phase = Phase::Vacant(error);
        } else {
            state.phase = Phase::Complete(Err(error));
            state.abandoned = may_be_retried && self.waiting() == 0;
            self.complete.store(true, Ordering::Release);
        }
        self.free_and_wake(state);
        hand_over
    }

    /// Waits for the flight to complete, or to need a new runner.
    pub(crate) fn wait(&self, patience: &impl Patience) -> Waited<V, E> {
        let mut state = self.lock();
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let ended = loop {
            match &state.phase {
                Phase::Complete(_) if state.abandoned => break Waited::TooLate,
                Phase::Complete(outcome) => break Waited::Complete(outcome.clone()),
                _ if state.decided.is_some() => state = wait(&self.changed, state),
                _ if patience.is_over() => break Waited::Stopped,
                Phase::Vacant(_) => {
                    state.phase = Phase::Running;
                    break Waited::TakeOver;
                }
                Phase::Running => state = patience.sleep(&self.changed, state),
            }
        };
        let others = self.waiting.fetch_sub(1, Ordering::AcqRel) - 1;
        if others == 0 {
            self.complete_if_vacant(&mut state);
        }
        ended
    }

    /// A vacant flight without waiters would never complete.
    fn complete_if_vacant(&self, state: &mut FlightState<V, E>) {
        if let Phase::Vacant(error) = &state.phase {
            state.phase = Phase::Complete(Err(error.clone()));
            state.abandoned = true;
            self.complete.store(true, Ordering::Release);
        }
    }

    /// Whether the flight is complete; the answer may lag behind, never ahead.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// How many threads wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Has every waiter look at its patience.
    pub(crate) fn wake(&self) {
        // The lock is held: a waiter has either not yet looked at its patience or is asleep, never between the two.
        let _state = self.lock();
        self.changed.notify_all();
    }

    /// Wakes only if somebody waits: a wake-up is a system call even without a sleeper.
    fn free_and_wake(&self, state: MutexGuard<'_, FlightState<V, E>>) {
        let is_awaited = self.waiting() > 0;
        drop(state);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, FlightState<V, E>> {
        lock(&self.state)
    }
}
