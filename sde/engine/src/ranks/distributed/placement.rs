//! Where a distributed value lies, and what it is known by.

use std::cell::Cell;

use crate::key::Digest;

/// Where a distributed value lies from here on, and what it is known by as an input; given to
/// [`Distributed::bind`](crate::Distributed::bind).
///
/// A value that has several arrays hands it to each of them: they are told apart by their names
/// ([`field`](Self::field)), and those of one name by their order.
#[derive(Debug)]
pub struct Placement {
    set: u64,
    origin: Digest,
    /// How many were known by this so far.
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

    /// The process set, by its [number](crate::Collective::set).
    #[must_use]
    pub fn set(&self) -> u64 {
        self.set
    }

    /// Those of a part of the value, by the name it has there.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        Self::new(self.set, self.and(b"field", name.as_bytes()))
    }

    /// What the value is known by: the same on all ranks, on any number of them, and in every program that
    /// loads it. Another one each time it is asked for, so that no two arrays are taken for one another.
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
