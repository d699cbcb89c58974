//! Checkpoints when a signal says that time is up.
//!
//! Batch systems send a signal some time before they kill a job, and people press Ctrl-C. Nothing can be saved in a
//! signal's handler, so one thread for the whole process waits for signals and saves
//! for every engine that asked for it. Before the process ends it waits a while for states that ranks save together
//! ([`last_states`](super::last_states)). It stays for as long as the process: a handler that was
//! set once can't be taken back without losing what was set before it.

#![allow(unsafe_code, reason = "asks the system what it does with a signal")]

use std::ffi::c_int;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::Engine;
use crate::event::Event;
use crate::sync::lock;

struct Listeners {
    engines: Vec<Weak<Engine>>,
    listening: bool,
    /// The actions that libraries set for signals whose action was the default until then.
    of_libraries: Vec<(c_int, libc::sigaction)>,
}

static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners {
    engines: Vec::new(),
    listening: false,
    of_libraries: Vec::new(),
});

/// The signals at which a checkpoint is made.
const SIGNALS: [c_int; 4] = [SIGINT, SIGTERM, SIGHUP, SIGUSR1];

/// Starts a library that may set handlers of signals. Handlers that it sets where there was none are not the program's own: an
/// engine makes its checkpoint all the same, and the library's handler is called besides.
pub fn start_library<T>(start: impl FnOnce() -> T) -> T {
    let is_free = |signal: &c_int| action(*signal).is_some_and(|now| is_default(&now));
    let free: Vec<c_int> = SIGNALS.into_iter().filter(is_free).collect();
    let started = start();
    let now = free.into_iter();
    let now = now.filter_map(|signal| Some((signal, action(signal)?)));
    let set = now.filter(|(_, action)| !is_default(action));
    lock(&LISTENERS).of_libraries.extend(set);
    started
}

/// Has an engine checkpoint on signals that the program neither handles nor ignores.
pub(super) fn listen(engine: &Arc<Engine>) -> io::Result<()> {
    let mut listeners = lock(&LISTENERS);
    if !listeners.listening {
        start(&listeners.of_libraries, |signals| {
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

/// Registers the handlers once a thread waits for signals: without it a signal would be swallowed.
fn start<T>(
    of_libraries: &[(c_int, libc::sigaction)],
    spawn: impl FnOnce(Receiver<Signals>) -> io::Result<T>,
) -> io::Result<()> {
    let (to, from) = mpsc::channel();
    spawn(from)?;
    let mut free = SIGNALS.to_vec();
    free.retain(|signal| take(*signal, of_libraries));
    let signals = Signals::new(&free)?;
    // A second signal ends the process at once, also while the save on the first one hangs.
    let ending = free.into_iter().filter(|signal| ends(*signal));
    for signal in ending {
        let owner = std::process::id();
        let in_child = move || {
            // A child after a fork has the handlers, and not the thread.
            if std::process::id() != owner {
                let _ = emulate_default_handler(signal);
            }
        };
        // SAFETY: `std::process::id` and `emulate_default_handler` may be called in a handler.
        unsafe { signal_hook::low_level::register(signal, in_child) }?;
        let came = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&came))?;
        signal_hook::flag::register(signal, came)?;
    }
    // The thread waits for the signals until `to` is dropped, so it is there to receive them.
    to.send(signals)
        .map_err(|_| io::Error::other("the thread that waits for signals has ended"))
}

/// How long the thread waits until an engine's observers have been told of a signal.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the signal ends the process.
fn ends(signal: c_int) -> bool {
    signal != SIGUSR1
}

/// Whether a signal is left to the engine: the process neither ignores it nor handles it itself. A library's handler of a signal
/// that ends the process is taken off: it would end the process before anything is saved.
fn take(signal: c_int, of_libraries: &[(c_int, libc::sigaction)]) -> bool {
    let Some(now) = action(signal) else {
        return false;
    };
    let is_set = |set: libc::sigaction| set.sa_sigaction == now.sa_sigaction;
    let is_of_library = of_library(of_libraries, signal).is_some_and(is_set);
    if is_of_library && ends(signal) {
        // SAFETY: the library's handler is kept in the list, and is called after the save.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    is_of_library || is_default(&now)
}

/// The action that a library set for a signal, if one did.
fn of_library(all: &[(c_int, libc::sigaction)], signal: c_int) -> Option<libc::sigaction> {
    let mut all = all.iter();
    all.rfind(|(of, _)| *of == signal).map(|(_, set)| *set)
}

fn is_default(action: &libc::sigaction) -> bool {
    action.sa_sigaction == libc::SIG_DFL
}

fn action(signal: c_int) -> Option<libc::sigaction> {
    let mut now = std::mem::MaybeUninit::zeroed();
    // SAFETY: without a new action `sigaction` only writes the present one to a place of its type; zeros are valid.
    unsafe {
        let asked = libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr());
        (asked == 0).then(|| now.assume_init())
    }
}

fn wait(mut signals: Signals) {
    for signal in signals.forever() {
        let (engines, of_library) = {
            let listeners = lock(&LISTENERS);
            let engines = listeners.engines.iter().filter_map(Weak::upgrade);
            let engines: Vec<Arc<Engine>> = engines.collect();
            (engines, of_library(&listeners.of_libraries, signal))
        };
        let name = signal_name(signal).unwrap_or("a signal");
        let came = Instant::now();
        if ends(signal) {
            engines.iter().for_each(|engine| engine.owe_last_states());
        }
        for engine in &engines {
            let (telling, told) = mpsc::channel::<()>();
            let observed = Arc::clone(engine);
            let tell = move || {
                observed.tell(|| Event::Signal {
                    signal: name,
                    ends: ends(signal),
                });
                drop(telling);
            };
            // A thread of its own: an observer that writes to a stopped terminal must hold up neither the save nor the
            // end.
            let _ = std::thread::Builder::new().spawn(tell);
            engine.checkpoint_or_warn(&format!("on {name}"));
            let _ = told.recv_timeout(PATIENCE);
        }
        if ends(signal) {
            engines
                .iter()
                .for_each(|engine| engine.await_last_states(came));
            // The process ends as it would without an engine. Nobody could be told of an error here.
            if let Some(of_library) = of_library {
                // SAFETY: `sigaction` gave this action; `raise` may be called at any time.
                let _ = unsafe {
                    libc::sigaction(signal, &of_library, std::ptr::null_mut());
                    libc::raise(signal)
                };
            }
            let _ = emulate_default_handler(signal);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;

    /// The first SIGTERM was swallowed: its handler was set, and no thread waited for it.
    #[test]
    fn without_a_thread_no_signal_is_handled() {
        let failed = start(&[], |_| Err::<(), _>(io::Error::other("no more threads")));
        assert!(failed.is_err());
        assert!(is_default(&action(SIGTERM).unwrap()));
    }
}
