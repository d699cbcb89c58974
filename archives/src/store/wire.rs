//! Encodes values for other ranks as the store does.

use sde::ErasedValue;
use sde::archiver::{ArchiveError, Codec, Wire, WireBuffer};

use crate::cbor;

/// Writes values for the other ranks of a process set as a store writes them: CBOR, arrays of
/// numbers as bytes. Given to `Sde::builder().process_group(..)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cbor;

impl Wire for Cbor {
    fn encode<'a>(
        &self,
        value: &'a ErasedValue,
        codec: &Codec,
        to: &mut WireBuffer<'a>,
    ) -> Result<(), ArchiveError> {
        cbor::encode_to(value, codec, to)
            .map_err(|why| ArchiveError::encode("a value for other ranks", codec.type_name(), why))
    }

    fn decode(&self, bytes: &[u8], codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        cbor::decode(bytes, codec).map_err(ArchiveError::damaged)
    }
}
