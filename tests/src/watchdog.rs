//! Ends a test program that hangs.
//!
//! A test of "this does not hang" that fails would hang itself, and take the whole test run with it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Aborts the process if it is still alive after a time.
#[must_use = "it watches for as long as it is alive"]
#[derive(Debug)]
pub struct Watchdog {
    _alive: mpsc::Sender<()>,
}

impl Watchdog {
    /// Watches from here on.
    ///
    /// # Panics
    /// If no thread can be started.
    pub fn new(what: &'static str, limit: Duration) -> Self {
        let (alive, gone) = mpsc::channel();
        let watch = move || {
            if gone.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{what} hangs: not done in {limit:?}");
                std::process::abort();
            }
        };
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(watch)
            .expect("a thread for the watchdog");
        Self { _alive: alive }
    }
}
