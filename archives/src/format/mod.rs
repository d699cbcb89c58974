//! What is written, byte by byte: segments, frames, metadata, manifests.

pub(crate) mod class;
pub(crate) mod id;
pub(crate) mod manifest;
pub(crate) mod metadata;
pub(crate) mod segment;
