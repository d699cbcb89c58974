//! Values for other ranks, as the store writes them.

use sde::{ArchiveError, Codec, ErasedValue, Wire};

use crate::cbor;

/// Writes values for the other ranks of a process set as a store writes them: CBOR, arrays of
/// numbers as bytes. Given to `Sde::builder().process_group(..)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cbor;

impl Wire for Cbor {
    fn encode(
        &self,
        value: &ErasedValue,
        codec: &Codec,
        to: &mut Vec<u8>,
    ) -> Result<(), ArchiveError> {
        let encoded = cbor::encode(value, codec).map_err(|why| ArchiveError::Encode {
            name: "a value for other ranks".to_owned(),
            type_name: codec.type_name(),
            why,
        })?;
        to.reserve(encoded.slices().map(<[u8]>::len).sum());
        encoded
            .slices()
            .for_each(|slice| to.extend_from_slice(slice));
        Ok(())
    }

    fn decode(&self, bytes: &[u8], codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        cbor::decode(bytes, codec).map_err(|why| ArchiveError::Damaged { why })
    }
}
