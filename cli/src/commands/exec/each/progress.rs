//! How far a list has come.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::warn;
use crate::{text, time};

/// How often a line is written where there is no terminal.
const PAUSE: Duration = Duration::from_secs(60);

/// Told on standard error: a line that changes on a terminal, and a line a minute elsewhere.
pub struct Progress {
    total: usize,
    at_once: usize,
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

struct State {
    done: usize,
    failed: usize,
    /// How long each program took that ran here.
    took: Vec<Duration>,
    told: Instant,
}

impl Progress {
    pub fn new(total: usize, at_once: usize) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let bar = (std::io::stderr().is_terminal() && !is_dumb).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // The template is a constant.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        let state = State {
            done: 0,
            failed: 0,
            took: Vec::new(),
            told: Instant::now(),
        };
        let progress = Self {
            total,
            at_once,
            bar,
            state: Mutex::new(state),
        };
        progress.tell(&progress.state());
        progress
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Another row is done; `took` is how long its program took, if one ran.
    pub fn done(&self, is_failure: bool, took: Option<Duration>) {
        let mut state = self.state();
        state.done += 1;
        state.failed += usize::from(is_failure);
        state.took.extend(took);
        let is_due = state.told.elapsed() >= PAUSE;
        if self.bar.is_some() || is_due {
            state.told = Instant::now();
            self.tell(&state);
        }
    }

    fn tell(&self, state: &State) {
        let message = state.message(self.total, self.at_once);
        match &self.bar {
            Some(bar) => bar.set_message(message),
            None if state.done > 0 => warn(message),
            None => {}
        }
    }

    pub fn end(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl State {
    fn message(&self, total: usize, at_once: usize) -> String {
        let mut message = format!("{} of {total}", self.done);
        if self.failed > 0 {
            message += &format!(", {} failed", self.failed);
        }
        if let Some(left) = self.left(total, at_once) {
            message += &format!(", about {} left", text::duration(left.as_secs_f64()));
        }
        message
    }

    /// As if of the rows that are left such a part ran as of those that are done, each for the median of their times.
    fn left(&self, total: usize, at_once: usize) -> Option<Duration> {
        let typical = time::median(&self.took)?.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
        let [left, ran, done, at_once] = [
            total - self.done.min(total),
            self.took.len(),
            self.done.max(1),
            at_once,
        ]
        .map(|count| count as f64);
        let seconds = typical * left * (ran / done) / at_once;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_runs_that_are_left() {
        let seconds = Duration::from_secs;
        let mut state = State {
            done: 0,
            failed: 0,
            took: Vec::new(),
            told: Instant::now(),
        };
        assert_eq!(state.message(400, 4), "0 of 400");
        state.done = 100;
        assert_eq!(state.message(400, 4), "100 of 400");
        // Half of those that are done were remembered.
        state.took = vec![seconds(10); 50];
        state.took[0] = seconds(1000);
        assert_eq!(state.left(400, 1), Some(seconds(1500)));
        assert_eq!(state.left(400, 2), Some(seconds(750)));
        state.failed = 2;
        assert!(
            state
                .message(400, 1)
                .starts_with("100 of 400, 2 failed, about ")
        );
    }
}
