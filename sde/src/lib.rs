//! SDE: a memoizing computation framework with checkpointing

pub mod key;
pub mod last_value;
mod sync;

pub use key::{Encoder, Fingerprint, FingerprintError, Key};

// The derive macro writes `::sde`, also in this crate's own tests.
extern crate self as sde;
