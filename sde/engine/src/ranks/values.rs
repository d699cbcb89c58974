//! Gathering values, encoded, from all ranks.

use super::collective::{CollectiveOp, Header, Ranks, pieces};
use crate::error::{Error, ErrorKind};
use crate::result_map::{Codec, ErasedValue, Storable, Value, Wire, WireBuffer};

/// Gives each of these ranks the values of all.
pub(crate) fn gather_values<T: Storable>(
    ranks: &Ranks,
    wire: &dyn Wire,
    what: &str,
    value: Value<T>,
) -> Result<Vec<Value<T>>, Error> {
    let header = Header::about(CollectiveOp::Gather, what, Codec::of::<T>().type_name());
    let (all, counts) = ranks.gather(header, encode_to_send(wire, what, &value))?;
    let decoded: Result<Vec<_>, Error> = pieces(&all, &counts)
        .enumerate()
        .map(|(rank, bytes)| {
            if rank == ranks.rank() {
                return Ok(value.clone());
            }
            decode_sent(wire, what, bytes)
        })
        .collect();
    ranks.agree(what, decoded)
}

fn encode_to_send<T: Storable>(
    wire: &dyn Wire,
    what: &str,
    value: &Value<T>,
) -> Result<Vec<u8>, Error> {
    let (value, mut to) = (ErasedValue::from(value.clone()), WireBuffer::default());
    let encoded = wire.encode(&value, &Codec::of::<T>(), &mut to);
    encoded.map_err(|source| not_sent(what, source))?;
    Ok(to.into_bytes())
}

fn decode_sent<T: Storable>(wire: &dyn Wire, what: &str, bytes: &[u8]) -> Result<Value<T>, Error> {
    let value = wire.decode(bytes, &Codec::of::<T>());
    let value = value.map_err(|source| not_sent(what, source))?;
    value.downcast().ok_or_else(|| not_sent(what, wrong_type()))
}

fn not_sent(what: &str, source: crate::error::ArchiveError) -> Error {
    let doing = format!("sending {what} to other ranks");
    ErrorKind::Archive { doing, source }.into()
}

fn wrong_type() -> crate::error::ArchiveError {
    crate::error::ArchiveError::Damaged {
        why: "another type was decoded than was asked for".to_owned(),
    }
}
