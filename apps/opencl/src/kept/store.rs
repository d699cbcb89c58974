//! A home of binaries of the user's own.

use std::fmt;

/// A home of binaries, in place of [`KernelDir`](super::KernelDir) if a user has one: a database, a server, an archive
/// beside the program. Eviction, tracing and what processes do together are its own: `get` may wait for another process that
/// builds.
///
/// What is kept are the bytes that [`Program::blob`](crate::Program::blob) gives, under
/// [`Descriptor::blob_id`](crate::Descriptor::blob_id). All are called by many threads at once, also while a program is dropped, and must
/// not panic. What it gives is checked before it is used.
pub trait KernelStore: Send + Sync {
    /// The blobs of these programs, in order; `None` for one that is not there.
    ///
    /// # Errors
    /// If the store could not be asked. The programs are built.
    fn get(&self, ids: &[[u8; 32]]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// Keeps these, each in place of an earlier one of its program. One that the store doesn't want, or has no room for,
    /// is left out; that is no error.
    ///
    /// # Errors
    /// If they could not be kept. They are put again when kernels of their programs were launched since.
    fn put(&self, blobs: &[([u8; 32], Vec<u8>)]) -> Result<(), StoreError>;

    /// What and where it is, for messages.
    fn describe(&self) -> String;
}

/// A store could not be used. The program is built all the same.
#[derive(Clone, thiserror::Error)]
#[error("{doing}: {why}; programs are built and not kept")]
pub struct StoreError {
    /// What was being done.
    pub doing: String,
    /// Why it failed.
    pub why: String,
}

sde::debug_as_said!(StoreError);

impl StoreError {
    /// What was being done, and why it failed.
    pub fn new(doing: impl Into<String>, why: impl fmt::Display) -> Self {
        Self {
            doing: doing.into(),
            why: why.to_string(),
        }
    }
}
