//! Checkpoints when the system says that time is up.
//!
//! Batch systems send a signal some time before they kill a job. Nothing can be saved in a
//! signal's handler, so one thread for the whole process waits for signals and saves
//! for every engine that asked for it. It stays for as long as the process: a handler that was
//! set once can't be taken back without losing what was set before it.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::Engine;

struct Listeners {
    engines: Vec<Weak<Engine>>,
    listening: bool,
}

static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners {
    engines: Vec::new(),
    listening: false,
});

/// Has an engine saved when SIGUSR1 or SIGTERM comes.
pub(super) fn listen(engine: &Arc<Engine>) -> io::Result<()> {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !listeners.listening {
        start(|signals| {
            std::thread::Builder::new()
                .name("sde-signals".to_owned())
                .spawn(move || signals.into_iter().for_each(wait))
        })?;
        listeners.listening = true;
    }
    listeners.engines.retain(|engine| engine.strong_count() > 0);
    listeners.engines.push(Arc::downgrade(engine));
    Ok(())
}

/// Registers the handlers, once there is a thread that waits for what they tell: without it a
/// SIGTERM would be swallowed.
fn start<T>(spawn: impl FnOnce(Receiver<Signals>) -> io::Result<T>) -> io::Result<()> {
    let (to, from) = mpsc::channel();
    spawn(from)?;
    let signals = Signals::new([SIGUSR1, SIGTERM])?;
    // A second SIGTERM ends the process at once, also while the first one's save hangs.
    let terminating = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register_conditional_default(SIGTERM, Arc::clone(&terminating))?;
    signal_hook::flag::register(SIGTERM, terminating)?;
    // It is received until `to` is dropped, so by a thread that is there.
    to.send(signals)
        .map_err(|_| io::Error::other("the thread that waits for signals has ended"))
}

fn wait(mut signals: Signals) {
    for signal in signals.forever() {
        let engines: Vec<Arc<Engine>> = {
            let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
            let engines = listeners.engines.iter();
            engines.filter_map(Weak::upgrade).collect()
        };
        let when = match signal {
            SIGTERM => "on SIGTERM",
            _ => "on SIGUSR1",
        };
        for engine in engines {
            engine.checkpoint_or_warn(when);
        }
        if signal == SIGTERM {
            // As if nobody had listened; if that fails there is nobody to be told.
            let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;

    /// Whether this process has a handler for SIGTERM.
    fn is_handled() -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
        caught >> (SIGTERM - 1) & 1 == 1
    }

    /// The first SIGTERM was swallowed: its handler was there, and nobody to wait for it.
    #[test]
    fn without_a_thread_no_signal_is_handled() {
        let failed = start(|_| Err::<(), _>(io::Error::other("no more threads")));
        assert!(failed.is_err());
        assert!(!is_handled());
    }
}
