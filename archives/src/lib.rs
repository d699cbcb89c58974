//! The SDE store: checkpoints and archives on disk.
//!
//! A month of computing is worth as much as what is left of it after the machine
//! went down. [`DirStore`] keeps what the engine saves in a directory, so that
//! whatever it acknowledged is found again after a kill at any moment, and so that
//! nothing damaged is ever taken for a result: each entry stands for itself, with
//! checksums that are verified before anything in it is used, and one that fails
//! is computed again.
//!
//! The files of a store:
//!
//! ```text
//! store/FORMAT               the name and version of the format
//! store/entries/*.sde        append-only segments with results and intermediates, one writer each
//! store/scratch/*.sde        the same, states of runs that have not finished
//! store/manifests/*.manifest what was there when a checkpoint or an archive was made
//! store/work                 what processes are at, while they are
//! store/STOP                 which processes are to stop, while they live
//! ```
//!
//! `archive_to` writes the results alone to a store of their own, to be kept.
//!
//! The README of this crate says what is promised, and what is not; the bytes are described in
//! `docs/store-format.md`.

#![forbid(unsafe_code)]

mod archive;
mod catalog;
mod cbor;
mod collective;
mod compact;
mod copy;
mod format;
pub mod inspect;
mod locks;
pub mod processes;
mod read;
mod remove;
mod resolve;
mod retention;
mod rewrite;
mod store;
#[cfg(target_os = "linux")]
pub mod trusted;
#[doc(hidden)]
pub mod vfs;
#[cfg_attr(not(target_os = "linux"), path = "work/none.rs")]
mod work;
mod writer;

pub use compact::Compacted;
pub use copy::{Copied, Copyable};
pub use format::about::Capacity;
pub use format::class::Class;
pub use format::precedence::Precedence;
pub use remove::Removable;
pub use retention::{LimitError, Removal, Retention};
pub use store::DirStore;
#[cfg(target_os = "linux")]
pub use store::group::Shared;
pub use store::open::{builder, open};
pub use store::options::StoreOptions;
#[doc(hidden)]
pub use store::options::other_stores;
pub use store::wire::Cbor;
