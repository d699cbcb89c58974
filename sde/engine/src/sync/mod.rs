//! Locks, and one door to the primitives that the claims are built from.
//!
//! A model checker can only try every interleaving of code that asks *it* for atomics and locks. So
//! the modules whose protocol is checked, `cache/flight.rs` and `cache/waits.rs`, take these names from
//! here, and `tests/model` compiles their source once more, with loom's primitives under these names.
//!
//! Run the models, from the workspace root, with
//!
//! ```text
//! RUSTFLAGS="--cfg sde_model" CARGO_TARGET_DIR=target/model cargo test -p sde-engine --release --test model
//! ```

pub mod locks;

pub(crate) use locks::*;
pub(crate) use std::sync::atomic;

/// The locks of modules that are modelled.
pub(crate) mod modelled {
    pub(crate) use super::locks::{MutexGuard, lock, wait};
    pub(crate) use std::sync::{Condvar, Mutex};
}
