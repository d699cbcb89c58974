//! Signals: the program gets those that `sde exec` gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use sde::{CancelToken, Event, Observer};
use sde_command::Stop;
use sde_command::results::RULES_APP;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::low_level::emulate_default_handler;
use signal_hook::{flag, iterator};

use crate::failure::Failure;
use crate::output::warn;

/// What this process is at.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// It asks, waits for another process or prints what is remembered: a signal ends it at once.
    Idle,
    /// The program runs, and is passed signals.
    Running,
    /// Results are saved and put: that is short, and ends before a signal does.
    Keeping,
}

#[derive(Default)]
struct State {
    phase: AtomicU8,
    /// The last signal, or 0.
    got: AtomicI32,
}

pub struct Signals {
    pub stop: Stop,
    /// Cancelled by the first signal: nobody waits for other processes any more.
    pub cancel: CancelToken,
    state: Arc<State>,
}

impl Signals {
    /// Takes the signals that end a process, but for those that this one was started to ignore, as by `nohup`.
    pub fn take() -> Result<Self, Failure> {
        let failed = |error| Failure::told(format!("listening to signals failed: {error}"));
        let (stop, state) = (Stop::new(), Arc::new(State::default()));
        let cancel = CancelToken::new();
        let ignored = ignored();
        // A file that gets too large (`ulimit -f`) is an error then, and no death. It is not ignored, since programs would
        // ignore it too.
        if ignored >> (SIGXFSZ - 1) & 1 == 0 {
            flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
        }
        let mut taken = vec![SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        taken.retain(|signal| ignored >> (signal - 1) & 1 == 0);
        let mut signals = iterator::Signals::new(taken).map_err(failed)?;
        let thread = std::thread::Builder::new().name("sde-signals".to_owned());
        let spawned = thread.spawn({
            let (stop, state, cancel) = (stop.clone(), Arc::clone(&state), cancel.clone());
            move || {
                for signal in signals.forever() {
                    state.got.store(signal, Ordering::SeqCst);
                    stop.send(signal);
                    cancel.cancel();
                    if state.phase.load(Ordering::SeqCst) == Phase::Idle as u8 {
                        end_by(signal);
                    }
                }
            }
        });
        spawned.map_err(failed)?;
        Ok(Self {
            stop,
            cancel,
            state,
        })
    }

    pub fn enter(&self, phase: Phase) {
        self.state.phase.store(phase as u8, Ordering::SeqCst);
    }

    /// Notes when the program starts, and tells for whom this one waits.
    pub fn observer(&self) -> impl Observer + 'static {
        let state = Arc::clone(&self.state);
        move |event: &Event| match event {
            Event::Started { app, .. } if **app != *RULES_APP => {
                state.phase.store(Phase::Running as u8, Ordering::SeqCst);
            }
            Event::WaitingForProcess { host, process, .. } => warn(format!(
                "process {process} on {host} runs this already, and is waited for"
            )),
            _ => {}
        }
    }

    /// Ends the process if it got a signal, so that a shell's loop ends too.
    pub fn end(&self) {
        match self.state.got.load(Ordering::SeqCst) {
            0 => {}
            signal => end_by(signal),
        }
    }
}

/// Ends the process as this signal would: shells tell of 128 + its number. QUIT would write a core.
fn end_by(signal: i32) {
    if signal != SIGQUIT {
        let _ = emulate_default_handler(signal);
    }
    std::process::exit(128 + signal);
}

/// The signals that are ignored, a bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
