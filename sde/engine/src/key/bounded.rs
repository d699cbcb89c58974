//! Small values of a bounded size: written without a check for each number.
//!
//! A hit costs little more than hashing a hundred bytes, so the numbers among the inputs must cost
//! about a nanosecond each. A type that knows the most bytes its encoding can have
//! ([`Fingerprint::bound`]) gets that much room at once and fills it; the compiler then knows each
//! position in it.

use std::sync::OnceLock;

use super::commitment::{Commitment, commit_noting};
use super::encoder::Encoder;
use super::error::FingerprintError;
use super::fingerprint::Fingerprint;
use super::tag::INLINE_LIMIT;

/// Writes `bytes` to `room` at `at`; gives their end.
///
/// # Panics
/// When the room is too small: then a type's bound was wrong.
#[doc(hidden)]
#[inline]
pub fn put<const N: usize>(room: &mut [u8], at: usize, bytes: [u8; N]) -> usize {
    room[at..at + N].copy_from_slice(&bytes);
    at + N
}

/// Whether values of a type with this bound are always short, and written in one go.
#[inline]
pub(crate) const fn is_short(bound: usize) -> bool {
    bound <= INLINE_LIMIT
}

impl Encoder<'_> {
    /// Writes a value of bounded size as a node at `at`; gives its end.
    #[inline]
    pub(crate) fn bounded_at<T: Fingerprint>(&mut self, at: usize, value: &T) -> usize {
        match self.room_at(at, T::bound()) {
            Some(room) => at + value.put_bounded(room, 0),
            None => self.bounded_slow(at, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn bounded_slow<T: Fingerprint>(&mut self, at: usize, value: &T) -> usize {
        let mut room = [0; INLINE_LIMIT];
        let length = value.put_bounded(&mut room, 0);
        self.slice_at(at, &room[..length])
    }

    /// Writes a value of bounded size as an item.
    #[inline]
    pub(crate) fn bounded_item<T: Fingerprint>(&mut self, value: &T) {
        self.plain_item(|parts| parts.bounded(value));
    }
}

/// The `write_node` of a type with [`Fingerprint::bound`]. For the derive macro.
#[doc(hidden)]
#[inline]
pub fn write_node<T: Fingerprint>(
    value: &T,
    to: &mut Encoder<'_>,
    at: usize,
) -> Result<usize, FingerprintError> {
    if is_short(T::bound()) {
        Ok(to.bounded_at(at, value))
    } else {
        to.node_at(at, |to| value.fingerprint(to))
    }
}

/// The `write_node` of a shared handle that keeps its value's commitment. A short value is written anew, which costs
/// less than a look-up; for a long one the kept commitment is written. That of a volatile value is not kept.
#[inline]
pub(crate) fn write_shared<T: Fingerprint>(
    value: &T,
    kept: &OnceLock<Box<Commitment>>,
    to: &mut Encoder<'_>,
    at: usize,
) -> Result<usize, FingerprintError> {
    if is_short(T::bound()) {
        return Ok(to.bounded_at(at, value));
    }
    if let Some(commitment) = kept.get() {
        return Ok(to.commitment_at(at, commitment));
    }
    let (made, noted) = commit_noting(value)?;
    let at = to.commitment_at(at, &made);
    match noted {
        None => drop(kept.set(Box::new(made))),
        noted => to.add_volatile(noted),
    }
    Ok(at)
}

/// The methods of [`Fingerprint`] that describe a handle's type as that of its target.
macro_rules! same_as {
    ($target:ty) => {
        #[inline]
        fn shape(to: &mut $crate::key::TypeWriter<'_, '_>) {
            <$target as $crate::key::TypeShape>::type_shape(to);
        }

        #[inline]
        fn scalar() -> Option<$crate::key::ScalarKind> {
            <$target as $crate::key::TypeShape>::type_scalar()
        }

        #[inline]
        fn bound() -> usize {
            <$target as $crate::key::TypeShape>::type_bound()
        }

        #[inline]
        fn put_bounded(&self, room: &mut [u8], at: usize) -> usize {
            $crate::key::Fingerprint::put_bounded(&**self, room, at)
        }

        fn to_scalar(&self) -> Option<$crate::key::Scalar> {
            $crate::key::Fingerprint::to_scalar(&**self)
        }
    };
}
pub(crate) use same_as;
