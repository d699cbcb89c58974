//! One door to the primitives that concurrent code is built from.
//!
//! A model checker can only try every interleaving of code that asks *it* for atomics, locks and
//! threads. So the modules whose protocol is checked (the last-value cells, the claims) take these
//! names from here: they are `std`'s, or loom's when the crate is built with `--cfg sde_model`.
//! Everything else in the crate may keep using `std` directly.
//!
//! Run the models, from the workspace root, with
//!
//! ```text
//! RUSTFLAGS="--cfg sde_model" CARGO_TARGET_DIR=target/model cargo test -p sde-engine --release --test model
//! ```
//!
//! Loom's types work inside `loom::model` only, so a build with this flag is for those tests and
//! nothing else.

// The shim is complete rather than minimal: what the next checked module needs is already here.
#![allow(
    unused_imports,
    dead_code,
    reason = "the two builds use different parts of it"
)]

mod arc_cell;
mod exclusive;
pub mod locks;
mod thread_number;

pub(crate) use arc_cell::ArcCell;
pub(crate) use exclusive::UnsafeCell;
pub(crate) use locks::*;
pub(crate) use thread_number::{own_thread_number, thread_number};

#[cfg(not(sde_model))]
mod imp {
    pub(crate) use std::sync::atomic;
    pub(crate) use std::sync::{Arc, Condvar, Mutex};
    pub(crate) use std::thread;

    /// The locks of modules that are modelled.
    pub(crate) mod modelled {
        pub(crate) use super::super::locks::{MutexGuard, lock, wait};
        pub(crate) use std::sync::{Condvar, Mutex};
    }
}

#[cfg(sde_model)]
mod imp {
    pub(crate) use loom::sync::atomic;
    pub(crate) use loom::sync::{Arc, Condvar, Mutex};
    pub(crate) use loom::thread;

    /// The locks of modules that are modelled.
    pub(crate) mod modelled {
        use super::super::unpoisoned;
        pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

        pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
            unpoisoned(mutex.lock())
        }

        pub(crate) fn wait<'a, T>(on: &Condvar, lock: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            unpoisoned(on.wait(lock))
        }
    }
}

pub(crate) use imp::{Arc, Condvar, Mutex, atomic, modelled, thread};
