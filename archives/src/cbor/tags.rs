//! The CBOR tags of arrays of numbers (RFC 8746).

use sde::bulk::{NumberType, Order};

/// A byte string of numbers, little-endian.
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
        // A type that `sde` learns later.
        _ => return None,
    })
}

/// The numbers that a tag is for.
pub(crate) fn numbers(tag: u64) -> Option<NumberType> {
    let of_tag = |kind: &NumberType| of_numbers(*kind) == Some(tag);
    NumberType::ALL.into_iter().find(of_tag)
}

/// A pair of lengths and numbers.
pub(crate) const fn of_order(order: Order) -> u64 {
    match order {
        Order::Rows => 40,
        Order::Columns => 1040,
    }
}

/// The order that a tag is for.
pub(crate) fn order(tag: u64) -> Option<Order> {
    match tag {
        40 => Some(Order::Rows),
        1040 => Some(Order::Columns),
        _ => None,
    }
}

/// An integer of more than 64 bits, as a byte string, big-endian.
pub(crate) const BIG: u64 = 2;
/// A negative integer of more than 64 bits: minus one minus the integer, as a byte string, big-endian.
pub(crate) const BIG_NEGATIVE: u64 = 3;
