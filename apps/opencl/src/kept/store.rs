//! The interface of a user's own store of binaries.

use std::fmt;

/// A user's own store of binaries, in place of [`KernelDir`](super::KernelDir): a database, a server, an archive
/// beside the program. Eviction, tracing and cooperation of processes are up to it: `get` may wait for another process
/// that builds.
///
/// It keeps the bytes that [`Program::blob`](crate::Program::blob) gives, under
/// [`Descriptor::blob_id`](crate::Descriptor::blob_id). Many threads call it at once, also while a program is
/// dropped, and it must not panic. Its answers are checked before they are used.
pub trait KernelStore: Send + Sync {
    /// The blobs of these programs, in order; `None` for one that is not there.
    ///
    /// # Errors
    /// If the store could not be asked. The programs are then built.
    fn get(&self, ids: &[[u8; 32]]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// Keeps these blobs, each in place of an earlier one of its program. A blob that the store doesn't want, or
    /// has no room for, is left out; that is no error.
    ///
    /// # Errors
    /// If they could not be kept. They are put again after further launches of their programs' kernels.
    fn put(&self, blobs: &[([u8; 32], Vec<u8>)]) -> Result<(), StoreError>;

    /// The kind and place of the store, for messages.
    fn describe(&self) -> String;
}

/// A store could not be used. The program is built all the same.
#[derive(Clone, thiserror::Error)]
#[error("{doing}: {why}; programs are built and not kept")]
#[non_exhaustive]
pub struct StoreError {
    /// The operation.
    pub doing: String,
    /// Why it failed.
    pub why: String,
}

sde::debug_as_said!(StoreError);

impl StoreError {
    /// The operation, and why it failed.
    pub fn new(doing: impl Into<String>, why: impl fmt::Display) -> Self {
        Self {
            doing: doing.into(),
            why: why.to_string(),
        }
    }
}
