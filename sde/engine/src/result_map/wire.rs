//! The encoding of values that travel to other ranks.

use std::borrow::Cow;

use super::codec::Codec;
use super::value::ErasedValue;
use crate::error::ArchiveError;

/// Turns values into bytes for the other ranks of a process set, and back. The crate
/// `sde-archives` has one, `Cbor`.
///
/// The bytes come from a rank of the same job, which is trusted. Even so, bytes that are no such value must be an
/// error, never a panic.
///
/// A later release adds methods only with a default, so that an implementation of today still compiles.
pub trait Wire: Send + Sync {
    /// Appends the bytes of a value.
    ///
    /// # Errors
    /// If the value has no encoding, or would not be read back as it is.
    fn encode<'a>(
        &self,
        value: &'a ErasedValue,
        codec: &Codec,
        to: &mut WireBuffer<'a>,
    ) -> Result<(), ArchiveError>;

    /// Reads a value from all of these bytes.
    ///
    /// # Errors
    /// If they are not a value of the codec's type.
    fn decode(&self, bytes: &[u8], codec: &Codec) -> Result<ErasedValue, ArchiveError>;
}

/// A buffer for values that are sent to other ranks.
#[derive(Debug, Default)]
pub struct WireBuffer<'a> {
    bytes: Vec<u8>,
    /// Lent slices, each with its place in `bytes`.
    lent: Vec<(usize, &'a [u8])>,
}

/// From this size on bytes are lent, not copied.
const LENT: usize = 64 << 10;

impl<'a> WireBuffer<'a> {
    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends bytes of the value itself, without a copy if they are many.
    pub fn lend(&mut self, bytes: &'a [u8]) {
        if bytes.len() < LENT {
            self.append(bytes)
        } else {
            self.lent.push((self.bytes.len(), bytes))
        }
    }

    /// All bytes, one after the other.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        if self.lent.is_empty() {
            self.bytes
        } else {
            self.take_pieces(0).concat()
        }
    }

    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn has_lent(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Takes off all bytes from `start` on, in pieces; lent ones are not copied. Nothing may have been lent before
    /// `start`.
    pub(crate) fn take_pieces(&mut self, start: usize) -> Vec<Cow<'a, [u8]>> {
        let mut pieces: Vec<Cow<'a, [u8]>> = Vec::with_capacity(2 * self.lent.len() + 1);
        let mut next = start;
        for (at, lent) in self.lent.drain(..) {
            pieces.push(self.bytes[next..at].to_vec().into());
            pieces.push(lent.into());
            next = at;
        }
        pieces.push(self.bytes[next..].to_vec().into());
        self.bytes.truncate(start);
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}

/// For tests.
#[cfg(test)]
pub(crate) struct Json;

#[cfg(test)]
impl Wire for Json {
    fn encode<'a>(
        &self,
        value: &'a ErasedValue,
        codec: &Codec,
        to: &mut WireBuffer<'a>,
    ) -> Result<(), ArchiveError> {
        let mut bytes = Vec::new();
        let written = codec.encode(value, &mut serde_json::Serializer::new(&mut bytes));
        to.append(&bytes);
        written.map_err(|error| ArchiveError::Other(error.to_string()))
    }

    fn decode(&self, bytes: &[u8], codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        let mut from = serde_json::Deserializer::from_slice(bytes);
        let read = codec.decode(&mut from);
        read.map_err(|error| ArchiveError::Other(error.to_string()))
    }
}
