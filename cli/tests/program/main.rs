//! The program as a person runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that fails says where"
)]

mod builds;
mod damage;
mod exec;
mod export;
mod failed;
mod folders;
#[cfg(target_os = "linux")]
mod groups;
mod kit;
mod look;
mod names;
mod part;
mod rank;
mod rooms;
mod stopping;
mod stores;
mod table;
