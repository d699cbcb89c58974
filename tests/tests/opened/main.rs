//! What a program has that begins with `open`: it is ended in every way, and what it shows is read.
//!
//! Each test starts this test program again to do one job, and talks to it through its standard streams.

mod child;
mod ends;
mod ranks_end;
mod shared;
mod shows;

use std::path::Path;

use sde::Sde;

/// How many points a program computes.
const POINTS: u64 = 20;

#[sde::app]
fn point(x: u64) -> u64 {
    x * x
}

#[sde::app(tags(intermediate))]
fn passing(x: u64) -> u64 {
    x + 1
}

/// Computes all points, and gives how many were not remembered.
fn compute(sde: &Sde) -> u64 {
    point.par_call(sde, 0..POINTS).expect("no error");
    passing.call(sde, 1).expect("no error");
    sde.stats().total.computed
}

/// How many points a program computes that comes later.
fn left_to_compute(store: &Path) -> u64 {
    let builder = sde::builder(store).expect("a store");
    compute(
        &builder
            .quiet()
            .without_signals()
            .build()
            .expect("an engine"),
    )
}
