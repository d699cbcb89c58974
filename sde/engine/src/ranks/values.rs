//! Gathering values, encoded, from all ranks.

use super::collective::{CollectiveOp, Header, Ranks, not_sent, pieces};
use crate::error::Error;
use crate::result_map::{Codec, ErasedValue, Storable, Value, Wire, WireBuffer};

/// Gives each of these ranks the values of all.
pub(crate) fn gather_values<T: Storable>(
    ranks: &Ranks,
    wire: &dyn Wire,
    what: &str,
    value: Value<T>,
) -> Result<Vec<Value<T>>, Error> {
    let codec = Codec::of::<T>();
    let header = Header::about(CollectiveOp::Gather, what, codec.type_name());
    let mut to = WireBuffer::default();
    let erased = ErasedValue::from(value.clone());
    let encoded = wire.encode(&erased, &codec, &mut to);
    let encoded = encoded.map_err(|source| not_sent(what, source));
    let (all, counts) = ranks.gather(header, encoded.map(|()| to.into_bytes()))?;
    let decode = |(rank, bytes): (usize, &[u8])| {
        if rank == ranks.rank() {
            return Ok(value.clone());
        }
        let decoded = wire.decode(bytes, &codec);
        let decoded = decoded.map_err(|source| not_sent(what, source))?;
        decoded.downcast().ok_or_else(|| ranks.garbled(rank, what))
    };
    let decoded = pieces(&all, &counts).enumerate().map(decode);
    ranks.agree(what, decoded.collect())
}
