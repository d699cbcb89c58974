//! One door to the primitives that the cells are built from.
//!
//! A model checker can only try every interleaving of code that asks *it* for atomics and cells. So
//! the cells take these names from here: they are `std`'s, or loom's when the crate is built with
//! `--cfg sde_model`. Run the models, from the workspace root, with
//!
//! ```text
//! RUSTFLAGS="--cfg sde_model" CARGO_TARGET_DIR=target/model cargo test -p sde-last-value --release --test model
//! ```
//!
//! Loom's types work inside `loom::model` only, so a build with this flag is for those tests and
//! nothing else.

mod arc_cell;
mod exclusive;
mod thread_number;

pub(crate) use arc_cell::ArcCell;
pub(crate) use exclusive::UnsafeCell;
pub use thread_number::{own_thread_number, thread_number};

#[cfg(sde_model)]
pub(crate) use loom::sync::atomic;
#[cfg(not(sde_model))]
pub(crate) use std::sync::atomic;
