//! The program as a person runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that fails says where"
)]

mod builds;
mod columns;
mod damage;
mod exec;
mod export;
mod failed;
mod folders;
mod kit;
mod look;
mod names;
mod one_code;
mod part;
mod rank;
mod rooms;
mod stopping;
mod stores;
mod table;
mod taking_out;
