//! What makes two inputs the same: the encoding, the digests, and everything that writes one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failure is the point"
)]

mod data;
mod derive;
mod encoder;
mod fields;
mod files;
mod golden;
mod golden_apps;
mod injective;
mod names;
mod numbers;
mod order;
mod scalars;
mod serde_types;
mod shared;
mod short_text;
mod threads;
mod types;

use sde::Fingerprint;
use sde::key::{Digest, commit};

/// The digest of a value that can be fingerprinted.
fn digest<T: Fingerprint + ?Sized>(value: &T) -> Digest {
    commit(value).expect("the value has a fingerprint").digest()
}

#[track_caller]
fn same(one: &(impl Fingerprint + ?Sized), other: &(impl Fingerprint + ?Sized)) {
    assert_eq!(digest(one), digest(other));
}

#[track_caller]
fn differ(one: &(impl Fingerprint + ?Sized), other: &(impl Fingerprint + ?Sized)) {
    assert_ne!(digest(one), digest(other));
}
