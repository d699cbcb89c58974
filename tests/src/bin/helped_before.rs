//! The program before the edit of a helper.

/// What is edited.
#[sde::helper]
fn scale(x: f64) -> f64 {
    1.0 * x
}

include!("helped/program.rs");
