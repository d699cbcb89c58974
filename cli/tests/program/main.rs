//! The program as a person runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that fails says where"
)]

mod damage;
mod export;
mod folders;
mod kernels;
mod kit;
mod look;
mod part;
mod rank;
mod rooms;
