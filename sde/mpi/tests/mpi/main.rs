//! Ranks under `mpirun`: what a group does, and how jobs end.
//!
//! This program starts itself under `mpirun`. As a rank it runs only the test [`as_rank`], which
//! does what [`cases`] has under the name it was given.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::exit,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test program"
)]

mod cases;
mod ends;
mod engine;
mod groups;
mod panics;
mod world;

use sde_tests::mpirun::{self, Job};

/// How many ranks there may be.
const SIZES: [usize; 5] = [1, 2, 3, 4, 8];

/// The program of a rank, if this is one.
#[test]
fn as_rank() {
    if let Some(case) = mpirun::case() {
        cases::run(&case);
    }
}

fn job(ranks: usize, case: &str) -> Job {
    mpirun::as_ranks(ranks, "as_rank", case)
}
