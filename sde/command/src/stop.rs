//! Signals that go to programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Passes signals on to the programs of commands that run.
///
/// A program that got one is not judged and not remembered, whatever its status. One that has not started when its
/// command gets one is not started. A signal does not reach commands that are run after it.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    sent: Arc<AtomicU64>,
    is_lasting: bool,
}

impl Stop {
    /// No signal yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a signal last, for a list of commands: none of its programs starts after it.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.is_lasting = true;
        self
    }

    /// Whether a signal was sent.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.sent().is_some()
    }

    /// What was sent before a call, to other runs.
    pub(crate) fn heard(&self) -> Option<(u32, i32)> {
        self.sent().filter(|_| !self.is_lasting)
    }

    /// Sends the programs this signal, such as 2 (INT) or 15 (TERM). Sent again, it is passed on again. It may be called in a
    /// signal handler.
    pub fn send(&self, signal: i32) {
        let next =
            |sent: u64| ((sent >> 32).wrapping_add(1) << 32) | u64::from(signal.cast_unsigned());
        let _ = self
            .sent
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sent| {
                Some(next(sent))
            });
    }

    /// The signal that was sent last, and how often one was.
    pub(crate) fn sent(&self) -> Option<(u32, i32)> {
        let sent = self.sent.load(Ordering::Relaxed);
        #[expect(clippy::cast_possible_truncation, reason = "each half is wanted")]
        let (count, signal) = ((sent >> 32) as u32, (sent as u32).cast_signed());
        (signal != 0).then_some((count, signal))
    }
}
