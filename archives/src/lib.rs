//! The SDE store: checkpoints and archives on disk.
//!
//! A month of computing is worth as much as what is left of it after the machine
//! went down. [`DirStore`] keeps what the engine saves in a directory, so that
//! whatever it acknowledged is found again after a kill at any moment, and so that
//! nothing damaged is ever taken for a result: each entry stands for itself, with
//! checksums that are verified before anything in it is used, and one that fails
//! is computed again.
//!
//! What is written where:
//!
//! ```text
//! store/FORMAT                     the name and version of the format
//! store/checkpoint/PID-ID.sde      one append-only segment for each writer
//! store/archive/PID-ID.sde         the same, results only
//! ```
//!
//! The directory `archive` and the `FORMAT` file together are a store of their
//! own, to be copied and kept.
//!
//! The README of this crate describes the bytes, what is lost and what is not.

#![forbid(unsafe_code)]

mod cbor;
mod directory;
mod disk;
mod id;
mod index;
mod metadata;
mod read;
mod save;
mod scan;
mod seen;
mod segment;
mod store;
mod writer;

pub use store::DirStore;
