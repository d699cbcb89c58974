//! What makes two inputs the same: the encoding, the digests, and everything that writes one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failure is the point"
)]

#[path = "keys/encoder.rs"]
mod encoder;
#[path = "keys/files.rs"]
mod files;
#[path = "keys/golden.rs"]
mod golden;
#[path = "keys/golden_apps.rs"]
mod golden_apps;
#[path = "keys/injective.rs"]
mod injective;
#[path = "keys/names.rs"]
mod names;
#[path = "keys/numbers.rs"]
mod numbers;
#[path = "keys/order.rs"]
mod order;
#[path = "keys/serde_types.rs"]
mod serde_types;
#[path = "keys/shared.rs"]
mod shared;
#[path = "keys/short_text.rs"]
mod short_text;
#[path = "keys/threads.rs"]
mod threads;
#[path = "keys/types.rs"]
mod types;

use sde::Fingerprint;
use sde::key::{Digest, commit};

/// The digest of a value that can be fingerprinted.
fn digest<T: Fingerprint + ?Sized>(value: &T) -> Digest {
    commit(value).expect("the value has a fingerprint").digest()
}
