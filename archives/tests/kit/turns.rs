//! Has processes make their calls one at a time, in an order that follows from a number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::random::Random;

/// No test takes its order from a time: after this long something has gone wrong.
const LIMIT: Duration = Duration::from_secs(120);

/// How long a thread waits before it looks whether all wait.
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Debug)]
pub struct Turns(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug)]
struct State {
    random: Random,
    /// So many calls a process makes one after the other, as a rule.
    stay: u64,
    running: BTreeSet<usize>,
    /// How many threads of each process wait.
    waiting: BTreeMap<usize, usize>,
    turn: Option<usize>,
    last: usize,
}

impl State {
    /// Once each process has a call to make one of them does.
    fn next(&mut self) {
        let all_wait = self.waiting.len() == self.running.len();
        if self.turn.is_some() || !all_wait || self.waiting.is_empty() {
            return;
        }
        let goes_on = self.waiting.contains_key(&self.last) && !self.random.once_in(self.stay);
        let waiting: Vec<usize> = self.waiting.keys().copied().collect();
        self.last = match goes_on {
            true => self.last,
            false => self.random.pick(&waiting),
        };
        self.turn = Some(self.last);
    }
}

impl Turns {
    /// Turns of these processes, none of which makes a call before each has one to make, or has ended.
    pub fn new(seed: u64, stay: u64, processes: impl IntoIterator<Item = usize>) -> Self {
        let state = State {
            random: Random::new(seed),
            stay,
            running: processes.into_iter().collect(),
            waiting: BTreeMap::new(),
            turn: None,
            last: 0,
        };
        Self(Arc::new((Mutex::new(state), Condvar::new())))
    }

    /// Waits until it is the turn of this process.
    pub fn pass(&self, process: usize) {
        let (state, changed) = &*self.0;
        let mut guard = state.lock().unwrap();
        if !guard.running.contains(&process) {
            return;
        }
        *guard.waiting.entry(process).or_default() += 1;
        guard.next();
        changed.notify_all();
        let begun = Instant::now();
        while guard.turn != Some(process) || !guard.waiting.contains_key(&process) {
            assert!(begun.elapsed() < LIMIT, "no turn came");
            guard = changed.wait_timeout(guard, PAUSE).unwrap().0;
            // The thread that had the turn may wait for one that waits here.
            guard.next();
            changed.notify_all();
            if !guard.running.contains(&process) {
                return;
            }
        }
        guard.turn = None;
        let left = guard.waiting.remove(&process).unwrap() - 1;
        if left > 0 {
            guard.waiting.insert(process, left);
        }
    }

    /// Says that this process makes no more calls.
    pub fn ended(&self, process: usize) {
        let (state, changed) = &*self.0;
        let mut guard = state.lock().unwrap();
        guard.running.remove(&process);
        guard.waiting.remove(&process);
        guard.turn.take_if(|turn| *turn == process);
        guard.next();
        changed.notify_all();
    }
}
