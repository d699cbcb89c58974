//! The bytes of the store's files: segments, frames, their bodies, indexes, manifests.

pub(crate) mod about;
pub(crate) mod class;
pub(crate) mod directory;
pub(crate) mod frame;
pub(crate) mod id;
pub(crate) mod index_block;
pub(crate) mod manifest;
pub(crate) mod metadata;
pub(crate) mod precedence;
pub(crate) mod segment;
pub(crate) mod stored_name;
pub(crate) mod trust;
pub(crate) mod uses;

/// The version of the format that this crate writes and reads.
pub(crate) const VERSION: u32 = 2;
