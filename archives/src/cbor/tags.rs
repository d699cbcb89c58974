//! The CBOR tags of arrays of numbers (RFC 8746).

use sde::bulk::{AxisOrder, NumberType};

/// The tag of little-endian numbers of a type.
pub(crate) const fn of_numbers(kind: NumberType) -> Option<u64> {
    Some(match kind {
        NumberType::U8 => 64,
        NumberType::U16 => 69,
        NumberType::U32 => 70,
        NumberType::U64 => 71,
        NumberType::I8 => 72,
        NumberType::I16 => 77,
        NumberType::I32 => 78,
        NumberType::I64 => 79,
        NumberType::F32 => 85,
        NumberType::F64 => 86,
        // A type that `sde` adds later.
        _ => return None,
    })
}

/// Calls a macro with the Rust type of numbers; the last argument is for types that `sde` adds later.
macro_rules! by_type {
    ($kind:expr, $of_type:ident, $unknown:expr) => {
        match $kind {
            NumberType::U8 => $of_type!(u8),
            NumberType::U16 => $of_type!(u16),
            NumberType::U32 => $of_type!(u32),
            NumberType::U64 => $of_type!(u64),
            NumberType::I8 => $of_type!(i8),
            NumberType::I16 => $of_type!(i16),
            NumberType::I32 => $of_type!(i32),
            NumberType::I64 => $of_type!(i64),
            NumberType::F32 => $of_type!(f32),
            NumberType::F64 => $of_type!(f64),
            _ => $unknown,
        }
    };
}
pub(crate) use by_type;

/// The type of numbers with this tag.
pub(crate) fn numbers(tag: u64) -> Option<NumberType> {
    let of_tag = |kind: &NumberType| of_numbers(*kind) == Some(tag);
    NumberType::ALL.into_iter().find(of_tag)
}

/// The tag of a pair of lengths and numbers.
pub(crate) const fn of_order(order: AxisOrder) -> u64 {
    match order {
        AxisOrder::Rows => 40,
        AxisOrder::Columns => 1040,
    }
}

/// The order of this tag.
pub(crate) fn order(tag: u64) -> Option<AxisOrder> {
    match tag {
        40 => Some(AxisOrder::Rows),
        1040 => Some(AxisOrder::Columns),
        _ => None,
    }
}

/// The integer of a byte string, big-endian; `None` if it has more than 128 bits.
pub(crate) fn big(bytes: &[u8]) -> Option<u128> {
    let mut room = [0; 16];
    let start = room.len().checked_sub(bytes.len())?;
    room[start..].copy_from_slice(bytes);
    Some(u128::from_be_bytes(room))
}

/// An integer of more than 64 bits, as a byte string, big-endian.
pub(crate) const BIG: u64 = 2;
/// A negative integer of more than 64 bits: minus one minus the integer, as a byte string, big-endian.
pub(crate) const BIG_NEGATIVE: u64 = 3;
