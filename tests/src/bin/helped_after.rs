//! The program after the edit of a helper.

/// What is edited.
#[sde::helper]
fn scale(x: f64) -> f64 {
    10.0 * x
}

include!("helped/program.rs");
