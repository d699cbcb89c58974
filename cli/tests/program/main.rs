//! The program as a person runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that fails says where"
)]

mod builds;
mod columns;
#[cfg(unix)]
mod copying;
mod damage;
mod edited;
mod exec;
mod export;
mod failed;
mod folders;
#[cfg(target_os = "linux")]
mod groups;
mod kit;
mod look;
mod names;
mod one_code;
mod part;
mod rank;
mod rooms;
mod stats;
mod stopping;
mod stores;
mod table;
mod taking_out;
#[cfg(unix)]
mod unreadable;
