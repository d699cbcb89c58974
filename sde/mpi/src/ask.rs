//! The clock of a waiting rank: when to ask which ranks are there, and when to report late ones.

use std::time::{Duration, Instant};

/// The time that other ranks have to answer before they are reported late.
const ANSWER: Duration = Duration::from_millis(100);
/// The number of looks at a round before the processor is yielded.
pub(crate) const SPINS: u32 = 500;

/// The clock of one round.
pub(crate) struct Waiting {
    since: Instant,
    patience: Duration,
    spins: u32,
    asked: bool,
    next: Duration,
}

/// The action that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Ask,
    Report,
}

impl Waiting {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            since: Instant::now(),
            patience,
            spins: 0,
            asked: false,
            next: patience,
        }
    }

    /// Whether the round has just begun, so that only the round itself is worth a look.
    pub(crate) fn just_begun(&mut self) -> bool {
        self.spins += 1;
        self.spins < SPINS
    }

    pub(crate) fn due(&mut self) -> Due {
        self.due_after(self.since.elapsed())
    }

    fn due_after(&mut self, waited: Duration) -> Due {
        if waited < self.next {
            return Due::Nothing;
        }
        if !self.asked {
            self.asked = true;
            self.next = waited.saturating_add(ANSWER.min(self.patience));
            return Due::Ask;
        }
        self.next = waited.saturating_add(self.patience);
        Due::Report
    }

    /// Yields the processor, since there may be more ranks than cores.
    pub(crate) fn pause(&self) {
        let waited = self.since.elapsed();
        if waited < Duration::from_millis(2) {
            std::thread::yield_now();
        } else if waited < Duration::from_millis(200) {
            std::thread::sleep(Duration::from_micros(100));
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_once_and_reports_each_time() {
        let second = Duration::from_secs(1);
        let mut waiting = Waiting::new(second);
        assert_eq!(waiting.due_after(second / 2), Due::Nothing);
        assert_eq!(waiting.due_after(second), Due::Ask);
        assert_eq!(waiting.due_after(second), Due::Nothing);
        assert_eq!(waiting.due_after(second + ANSWER), Due::Report);
        assert_eq!(waiting.due_after(2 * second), Due::Nothing);
        assert_eq!(waiting.due_after(2 * second + ANSWER), Due::Report);
        let mut waiting = Waiting::new(Duration::MAX);
        assert_eq!(waiting.due_after(second), Due::Nothing);
    }
}
