//! The kernel cache, by theme. What no device here does is done by a simulated driver; `opencl` asks
//! a real one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failure is the point of a test"
)]

mod blobs;
mod changed;
mod child;
mod cycles;
mod damage;
mod drivers;
mod failing_disk;
mod failures;
mod faults;
mod fixture;
mod keys;
mod killed;
mod launches;
/// What is told by `tracing`.
#[path = "../../../../archives/tests/store/log.rs"]
mod log;
mod memory;
mod opencl;
mod options;
mod own_store;
mod processes;
mod reads;
mod room;
mod settings;
/// The tests of the store stop processes on the same disk.
#[path = "../../../../archives/tests/store/stopping.rs"]
mod stopping;
mod stores;
mod threads;
mod together;
mod trust;
