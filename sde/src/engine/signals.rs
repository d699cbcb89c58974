//! Checkpoints when the system says that time is up.
//!
//! Batch systems send a signal some time before they kill a job. Nothing can be saved in a
//! signal's handler, so one thread for the whole process waits for signals and saves
//! for every engine that asked for it. It stays for as long as the process: a handler that was
//! set once can't be taken back without losing what was set before it.

use std::io;
use std::sync::atomic::AtomicBool;
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
        let signals = Signals::new([SIGUSR1, SIGTERM])?;
        // A second SIGTERM ends the process at once, also while the first one's save hangs.
        let terminating = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_default(SIGTERM, Arc::clone(&terminating))?;
        signal_hook::flag::register(SIGTERM, terminating)?;
        std::thread::Builder::new()
            .name("sde-signals".to_owned())
            .spawn(move || wait(signals))?;
        listeners.listening = true;
    }
    listeners.engines.retain(|engine| engine.strong_count() > 0);
    listeners.engines.push(Arc::downgrade(engine));
    Ok(())
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
