//! Checkpoints when a signal says that time is up.
//!
//! Batch systems send a signal some time before they kill a job, and people press Ctrl-C. Nothing can be saved in a
//! signal's handler, so one thread for the whole process waits for signals and saves
//! for every engine that asked for it. It stays for as long as the process: a handler that was
//! set once can't be taken back without losing what was set before it.

#![allow(unsafe_code, reason = "asks the system what it does with a signal")]

use std::ffi::c_int;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::Engine;
use crate::event::Event;
use crate::sync::lock;

struct Listeners {
    engines: Vec<Weak<Engine>>,
    listening: bool,
}

static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners {
    engines: Vec::new(),
    listening: false,
});

/// Has an engine saved when a signal comes that nobody else sees to.
pub(super) fn listen(engine: &Arc<Engine>) -> io::Result<()> {
    let mut listeners = lock(&LISTENERS);
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
/// signal would be swallowed.
fn start<T>(spawn: impl FnOnce(Receiver<Signals>) -> io::Result<T>) -> io::Result<()> {
    let (to, from) = mpsc::channel();
    spawn(from)?;
    let free = [SIGINT, SIGTERM, SIGHUP, SIGUSR1].into_iter();
    let free: Vec<c_int> = free.filter(|signal| is_free(*signal)).collect();
    let signals = Signals::new(&free)?;
    // A second one ends the process at once, also while the first one's save hangs.
    let ending = free.into_iter().filter(|signal| ends(*signal));
    for signal in ending {
        let owner = std::process::id();
        let in_child = move || {
            // A child after a fork has the handlers, and not the thread.
            if std::process::id() != owner {
                let _ = emulate_default_handler(signal);
            }
        };
        // SAFETY: both that it calls may be called in a handler.
        unsafe { signal_hook::low_level::register(signal, in_child) }?;
        let came = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&came))?;
        signal_hook::flag::register(signal, came)?;
    }
    // It is received until `to` is dropped, so by a thread that is there.
    to.send(signals)
        .map_err(|_| io::Error::other("the thread that waits for signals has ended"))
}

/// How long it is waited for that observers are told.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the process ends by it.
fn ends(signal: c_int) -> bool {
    signal != SIGUSR1
}

/// Whether a signal does what it does by default: the process neither ignores it nor handles it itself.
fn is_free(signal: c_int) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action it only writes the present one, to a place of that type; zeros are one.
    let (asked, now) = unsafe {
        let asked = libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr());
        (asked, now.assume_init())
    };
    asked == 0 && now.sa_sigaction == libc::SIG_DFL
}

fn wait(mut signals: Signals) {
    for signal in signals.forever() {
        let engines: Vec<Arc<Engine>> = {
            let listeners = lock(&LISTENERS);
            let engines = listeners.engines.iter();
            engines.filter_map(Weak::upgrade).collect()
        };
        let name = signal_name(signal).unwrap_or("a signal");
        for engine in engines {
            let (telling, told) = mpsc::channel::<()>();
            let observed = Arc::clone(&engine);
            let tell = move || {
                observed.tell(|| Event::Signal {
                    signal: name,
                    ends: ends(signal),
                });
                drop(telling);
            };
            // What is written to a terminal that stands still must not hold up the save, nor the end.
            let _ = std::thread::Builder::new().spawn(tell);
            engine.checkpoint_or_warn(&format!("on {name}"));
            let _ = told.recv_timeout(PATIENCE);
        }
        if ends(signal) {
            // As if nobody had listened; if that fails there is nobody to be told.
            let _ = emulate_default_handler(signal);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;

    /// The first SIGTERM was swallowed: its handler was there, and nobody to wait for it.
    #[test]
    fn without_a_thread_no_signal_is_handled() {
        let failed = start(|_| Err::<(), _>(io::Error::other("no more threads")));
        assert!(failed.is_err());
        assert!(is_free(SIGTERM));
    }
}
