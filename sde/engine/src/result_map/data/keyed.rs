//! The key of an array without its numbers.

use crate::bulk::{AxisOrder, Element, NumberType, Shape};
use crate::error::Error;
use crate::key::{Commitment, Encoder, Fingerprint, FingerprintError, Short, commit};

use super::array::{AnyArray, Numbers, fits, place};

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
    /// The key of the array that [`AnyArray::from_bytes`] makes of these.
    ///
    /// # Errors
    /// If there are more or fewer bytes than such an array has.
    pub fn from_bytes(
        numbers: NumberType,
        bytes: &[u8],
        lengths: Vec<usize>,
        order: AxisOrder,
    ) -> Result<Self, Error> {
        Numbers::keyed(numbers, bytes, Shape { order, lengths })
    }

    pub(super) fn of<T: Element + Fingerprint>(bytes: &[u8], shape: Shape) -> Result<Self, Error> {
        let refused = |why| Error::refused("an array", why);
        let Ok(items) = bytemuck::try_cast_slice::<u8, T>(bytes) else {
            let copied = crate::bulk::elements(bytes).map_err(refused)?;
            return Self::of_items::<T>(&copied, shape);
        };
        Self::of_items(items, shape)
    }

    fn of_items<T: Element + Fingerprint>(items: &[T], shape: Shape) -> Result<Self, Error> {
        fits(&shape.lengths, items.len())?;
        let whole = Lying {
            items,
            shape: &shape,
        };
        let commitment =
            commit(&whole).map_err(|error| Error::refused("an array", error.to_string()))?;
        let first = whole.in_order().take(SHOWN).copied().collect();
        Ok(Self {
            commitment,
            first: Numbers::new(first),
            lengths: shape.lengths,
        })
    }
}

/// An array whose numbers somebody else holds.
struct Lying<'a, T> {
    items: &'a [T],
    shape: &'a Shape,
}

impl<'a, T> Lying<'a, T> {
    fn in_order(&self) -> impl Iterator<Item = &'a T> {
        let (items, shape) = (self.items, self.shape);
        (0..items.len()).filter_map(|at| items.get(place(&shape.lengths, shape.order, at)))
    }
}

impl<T: Fingerprint> Fingerprint for Lying<'_, T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.array(&self.shape.lengths, |parts| match self.shape.order {
            AxisOrder::Rows => parts.part(self.items),
            AxisOrder::Columns => parts.node(|to| to.elements(self.items.len(), self.in_order())),
        })
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
