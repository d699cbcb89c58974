//! Holds up whoever comes until it is opened.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// No test takes its order from a time: after this long something has gone wrong.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    came: bool,
    nobody: bool,
    open: bool,
}

impl Gate {
    /// Waits until somebody is held up, or it is said that nobody will; gives whether somebody is.
    pub fn wait_for_somebody(&self) -> bool {
        self.wait(|state| state.came || state.nobody);
        self.0.0.lock().unwrap().came
    }

    /// Says that whoever could come has passed elsewhere.
    pub fn nobody_will_come(&self) {
        self.0.0.lock().unwrap().nobody = true;
        self.0.1.notify_all();
    }

    /// Lets everybody pass, for good.
    pub fn open(&self) {
        self.0.0.lock().unwrap().open = true;
        self.0.1.notify_all();
    }

    /// Forgets who came, and holds up whoever comes from now on.
    pub fn close(&self) {
        *self.0.0.lock().unwrap() = State::default();
    }

    /// Is held up.
    pub fn pass(&self) {
        self.0.0.lock().unwrap().came = true;
        self.0.1.notify_all();
        self.wait(|state| state.open);
    }

    fn wait(&self, until: impl Fn(&State) -> bool) {
        let (state, changed) = &*self.0;
        let guard = state.lock().unwrap();
        let (_guard, waited) = changed
            .wait_timeout_while(guard, LIMIT, |state| !until(state))
            .unwrap();
        assert!(!waited.timed_out(), "nobody came, or nobody opened");
    }
}
