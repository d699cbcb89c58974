//! The program after the edit of a helper.

/// What is edited.
#[sde::helper]
fn scale(x: f64) -> f64 {
    10.0 * x
}

#[sde::helper]
type Real = f64;

#[sde::helper]
type Sized = [u8; 4];

#[sde::helper]
enum Order {
    Second,
    First,
}

use v2::step;

include!("helped/program.rs");
