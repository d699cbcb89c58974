//! The key of an array without its numbers.

use crate::bulk::{AxisOrder, Element, NumberType};
use crate::error::Error;
use crate::key::{Commitment, Encoder, Fingerprint, FingerprintError, Short, commit};

use super::array::{AnyArray, Numbers, WithType, fits};

/// As many numbers as a short text can show.
const SHOWN: usize = 80;

/// The key of an array whose numbers stay where they lie: an input that is only keyed need not be copied. Its key and its
/// short text are those of the [`AnyArray`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct KeyedArray {
    commitment: Commitment,
    lengths: Vec<usize>,
    /// The first numbers, for the short text.
    first: Numbers,
}

impl KeyedArray {
    /// The key of the array by rows that [`AnyArray::from_bytes`] makes of these.
    ///
    /// # Errors
    /// If there are more or fewer bytes than such an array has.
    pub fn from_bytes(
        numbers: NumberType,
        bytes: &[u8],
        lengths: Vec<usize>,
    ) -> Result<Self, Error> {
        Numbers::with_type(numbers, Keying { bytes, lengths })
    }

    fn of_items<T: Element + Fingerprint>(items: &[T], lengths: Vec<usize>) -> Result<Self, Error> {
        fits(&lengths, items.len())?;
        let whole = Lying {
            items,
            lengths: &lengths,
        };
        let commitment = commit(&whole);
        let shown = items.get(..SHOWN).unwrap_or(items);
        Ok(Self {
            commitment: commitment.map_err(|why| Error::refused("an array", why.to_string()))?,
            lengths,
            first: Numbers::new(shown.to_vec()),
        })
    }
}

/// The bytes of an array that is to be keyed.
struct Keying<'a> {
    bytes: &'a [u8],
    lengths: Vec<usize>,
}

impl WithType for Keying<'_> {
    type Made = Result<KeyedArray, Error>;

    fn with<T: Element + Fingerprint>(self) -> Self::Made {
        if cfg!(target_endian = "little")
            && let Ok(items) = bytemuck::try_cast_slice::<u8, T>(self.bytes)
        {
            return KeyedArray::of_items(items, self.lengths);
        }
        // They don't lie as the machine and the type need it, or are no whole number of elements.
        let items = crate::bulk::elements::<T>(self.bytes);
        let items = items.map_err(|why| Error::refused("an array", why))?;
        KeyedArray::of_items(&items, self.lengths)
    }
}

/// An array whose numbers somebody else holds.
struct Lying<'a, T> {
    items: &'a [T],
    lengths: &'a [usize],
}

impl<T: Fingerprint> Fingerprint for Lying<'_, T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.array(self.lengths, |parts| parts.part(self.items))
    }
}

impl Fingerprint for KeyedArray {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.commitment(&self.commitment);
        Ok(())
    }

    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        Ok(to.commitment_at(at, &self.commitment))
    }

    fn describe(&self, out: &mut Short) {
        AnyArray::describe_as(&self.first, &self.lengths, AxisOrder::Rows, out);
    }
}

/// Arrays are equal if their keys are.
impl PartialEq for KeyedArray {
    fn eq(&self, other: &Self) -> bool {
        self.commitment == other.commitment
    }
}
