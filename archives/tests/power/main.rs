//! The store on a medium that fails: powerless, full, broken, stopped.

#![allow(clippy::unwrap_used, reason = "a failure is the point")]
#![allow(clippy::panic, reason = "a failure is the point")]
#![allow(clippy::print_stdout, reason = "long tests tell what they found")]

#[path = "../kit/mod.rs"]
mod kit;
#[path = "../store/log.rs"]
mod log;

mod background;
mod bits;
mod copied;
#[cfg(unix)]
mod copying;
mod crash;
mod cut;
mod engine;
mod explorer;
mod faults;
mod floats;
mod full;
mod generations;
mod half;
mod jobs;
mod looks;
mod loss;
mod noted;
#[cfg(unix)]
mod output_files;
mod pieces;
mod published;
mod ranks;
mod removals;
mod room;
mod script;
mod sites;
mod spoilt;
mod superseded;
mod threads;
mod truth;
mod vanishing;
#[path = "../../../tests/src/watchdog.rs"]
#[allow(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "it ends the program"
)]
mod watchdog;
mod written_through;

/// How often something is tried: more in the long tests.
fn count(short: u64, long: u64) -> u64 {
    match std::env::var_os("SDE_LONG_TESTS") {
        Some(_) => long,
        None => short,
    }
}
