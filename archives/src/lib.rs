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
//! store/FORMAT               the name and version of the format
//! store/results/*.sde        append-only segments, one writer each
//! store/intermediates/*.sde  the same, what an archive leaves out
//! store/scratch/*.sde        the same, states of runs that have not finished
//! store/manifests/*.manifest what was there when a checkpoint or an archive was made
//! ```
//!
//! The directory `results` and the `FORMAT` file together are a store of their
//! own, to be copied and kept.
//!
//! The README of this crate says what is promised, and what is not; the bytes are described in
//! `docs/store-format.md`.

#![forbid(unsafe_code)]

mod ahead;
mod archived;
mod best;
mod cbor;
mod checks;
mod class;
mod committer;
mod compact;
mod directory;
mod filter;
mod frame;
mod id;
mod index;
pub mod inspect;
mod lane;
mod lineage;
mod lookup;
mod manifest;
pub mod medium;
mod metadata;
mod moved;
mod open;
mod options;
mod others;
mod publish;
mod rank;
mod read;
mod retired;
mod save;
mod scan;
mod seen;
mod segment;
mod store;
mod table;
mod together;
mod trim;
mod trust;
mod uses;
mod vouch;
mod wire;

pub use class::Class;
pub use compact::{Compacted, Order, Retention};
pub use open::{builder, open};
pub use options::Options;
pub use rank::Rank;
pub use store::DirStore;
pub use wire::Cbor;
