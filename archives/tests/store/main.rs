//! The directory store, through a real engine and byte by byte.

#![allow(clippy::unwrap_used, reason = "a failure is the point")]
#![allow(clippy::panic, reason = "a failure is the point")]
#![allow(
    clippy::print_stdout,
    reason = "children tell their parent what they did"
)]

#[cfg(target_os = "linux")]
mod access_lists;
#[cfg(unix)]
mod also;
#[cfg(unix)]
mod also_failing;
mod apps;
#[path = "../../../tests/src/before.rs"]
#[allow(dead_code, reason = "part of it is for other tests")]
mod before;
mod capacity;
mod child;
mod clock;
mod compact;
mod copying;
mod damage;
mod directory;
mod fixture;
mod folders;
#[cfg(unix)]
mod fork;
mod generations;
#[cfg(target_os = "linux")]
mod groups;
mod journal;
mod kill;
#[cfg(target_os = "linux")]
mod limits;
mod log;
mod looking;
mod odd_disk;
#[cfg(unix)]
mod output_files;
#[cfg(target_os = "linux")]
mod processes;
mod ranks;
mod recompute;
mod removed;
mod restart;
#[path = "../../../tests/src/says.rs"]
mod says;
mod scratch;
mod sharing;
mod sizes;
mod stopping;
#[cfg(target_os = "linux")]
mod strace;
mod taken_out;
mod together;
mod values;
#[path = "../../../tests/src/watchdog.rs"]
#[allow(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "it ends the program"
)]
mod watchdog;
