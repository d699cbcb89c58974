//! The place of a distributed value, and its identity as an input.

use std::cell::Cell;

use crate::key::Digest;

/// The process set that a distributed value lies on, and the digest that identifies it as an input. The engine passes
/// it to [`Distributed::bind`](crate::Distributed::bind).
///
/// A value with several arrays passes it on to each. Arrays are told apart by their field names
/// ([`field`](Self::field)), and arrays of one name by their order.
#[derive(Debug)]
pub struct Placement {
    set: u64,
    origin: Digest,
    /// The number of origins given out so far.
    known: Cell<u64>,
}

impl Placement {
    pub(crate) fn new(set: u64, origin: Digest) -> Self {
        Self {
            set,
            origin,
            known: Cell::new(0),
        }
    }

    /// The process set, by its [number](crate::ranks::Collective::set).
    #[must_use]
    pub fn set(&self) -> u64 {
        self.set
    }

    /// The placement for a part of the value, by the name of its field.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        Self::new(self.set, self.and(b"field", name.as_bytes()))
    }

    /// The digest that identifies the value as an input. It is equal on all ranks, whatever their number, and in every
    /// program that loads the value. Each call gives another digest, so that each array has its own.
    #[must_use]
    pub fn next_origin(&self) -> Digest {
        let number = self.known.get();
        self.known.set(number + 1);
        self.and(b"number", &number.to_le_bytes())
    }

    fn and(&self, kind: &[u8], part: &[u8]) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key("SDE 1, part of a distributed value");
        hasher.update(self.origin.as_bytes());
        hasher.update(&[kind.len() as u8]).update(kind).update(part);
        Digest::from_bytes(*hasher.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_parts_of_a_value_have_one_origin() {
        let at = || Placement::new(0, Digest::from_bytes([7; 32]));
        let (value, again) = (at(), at());
        let origins = [
            value.next_origin(),
            value.next_origin(),
            value.field("a").next_origin(),
            value.field("b").next_origin(),
            value.field("a").field("b").next_origin(),
            at().origin,
        ];
        for (place, origin) in origins.iter().enumerate() {
            assert!(!origins[place + 1..].contains(origin), "{place}");
        }
        assert_eq!(again.next_origin(), origins[0]);
        assert_eq!(again.field("a").next_origin(), origins[2]);
    }
}
