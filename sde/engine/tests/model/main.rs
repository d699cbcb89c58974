//! What is checked by a model checker; `sde/engine/src/sync` says how it comes to see our code.
//!
//! ```text
//! RUSTFLAGS="--cfg sde_model" CARGO_TARGET_DIR=target/model cargo test -p sde-engine --release --test model
//! ```

#![cfg(sde_model)]
#![allow(clippy::unwrap_used, reason = "a failure is the point")]

mod flights;
mod waiting;

use loom::thread::JoinHandle;

// The claims are no public part of the crate, so their source is compiled into this test as well,
// with loom's primitives under the name by which it asks for them.
#[allow(dead_code, reason = "the models use part of it")]
#[path = "../../src/cache/flight.rs"]
mod flight;
#[allow(dead_code, reason = "the models use part of it")]
#[path = "../../src/cache/waits.rs"]
mod waits;

mod sync {
    pub(crate) use loom::sync::atomic;

    pub(crate) mod modelled {
        use std::sync::PoisonError;

        pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

        pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
            mutex.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn wait<'a, T>(on: &Condvar, lock: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            on.wait(lock).unwrap_or_else(PoisonError::into_inner)
        }
    }
}

/// Runs `model` in every way that `preemptions` allow. Threads also switch wherever they block or
/// end, so two or three preemptions reach the known kinds of mistakes; more takes minutes.
pub(crate) fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Has another thread do something with what the two share.
pub(crate) fn beside<S: Clone + 'static, T: 'static>(
    shared: &S,
    does: impl FnOnce(S) -> T + 'static,
) -> JoinHandle<T> {
    let shared = shared.clone();
    loom::thread::spawn(move || does(shared))
}
