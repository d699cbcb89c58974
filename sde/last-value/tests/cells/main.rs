//! Cells that hold one record and make nobody wait.

#![cfg(not(sde_model))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure is the point")]

mod cells;
mod properties;
