//! How values travel to other ranks.

use super::codec::Codec;
use super::value::ErasedValue;
use crate::error::ArchiveError;

/// Turns values into bytes for the other ranks of a process set, and back. The crate
/// `sde-archives` has one, `Cbor`.
///
/// What is read comes from a rank of the same job and is trusted as far as that; bytes that
/// are no such value must be an error all the same, never a panic.
pub trait Wire: Send + Sync {
    /// Appends the bytes of a value.
    ///
    /// # Errors
    /// If it has none, or would not come back as it is.
    fn encode(
        &self,
        value: &ErasedValue,
        codec: &Codec,
        to: &mut Vec<u8>,
    ) -> Result<(), ArchiveError>;

    /// Reads a value from all of these bytes.
    ///
    /// # Errors
    /// If they are not a value of the codec's type.
    fn decode(&self, bytes: &[u8], codec: &Codec) -> Result<ErasedValue, ArchiveError>;
}
