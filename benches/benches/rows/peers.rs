//! The functions that `cached` memoizes.

use crate::work::Arguments;
use cached::macros::cached;
use sde::key::Key;
use std::sync::Arc;

/// A result by its key.
#[cached(key = "Key", convert = "{ key }")]
pub fn by_key(key: Key, compute: impl FnOnce() -> f64) -> Arc<f64> {
    let _ = key;
    Arc::new(compute())
}

/// A result by its arguments, as the macro's users write it: no digest, the arguments are the key.
pub fn by_arguments(with: &Arguments) -> Arc<f64> {
    memoized(
        with.molecule,
        with.basis,
        with.distance,
        with.angle,
        with.charge,
        with.spherical,
    )
}

#[cached(
    key = "(String, String, u64, u64, i32, bool)",
    convert = "{ (molecule.to_owned(), basis.to_owned(), distance.to_bits(), angle.to_bits(), charge, spherical) }"
)]
fn memoized(
    molecule: &str,
    basis: &str,
    distance: f64,
    angle: f64,
    charge: i32,
    spherical: bool,
) -> Arc<f64> {
    let sizes = (molecule.len() + basis.len()) as f64;
    Arc::new(sizes + distance * angle + f64::from(charge) + f64::from(u8::from(spherical)))
}
