//! The program before the edit of a helper.

/// What is edited.
#[sde::helper]
fn scale(x: f64) -> f64 {
    1.0 * x
}

#[sde::helper]
type Real = f32;

#[sde::helper]
type Sized = [u8; 3];

#[sde::helper]
enum Order {
    First,
    Second,
}

use v1::step;

include!("helped/program.rs");
