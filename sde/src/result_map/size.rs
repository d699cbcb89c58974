//! How much memory a value takes.

use super::codec::Storable;
use super::value::ErasedValue;
use super::{Codec, bulk_types};

/// A value that tells how much memory it takes, so that a cache with a
/// [limit](crate::Builder::memory_limit) knows what it holds.
///
/// ```
/// use sde::{MemorySize, ResultSpec};
///
/// /// An image in the memory of a device.
/// struct Texture {
///     width: usize,
///     height: usize,
/// }
///
/// impl MemorySize for Texture {
///     fn memory_size(&self) -> usize {
///         4 * self.width * self.height
///     }
/// }
///
/// let spec = ResultSpec::unsaved::<Texture>("texture").sized::<Texture>();
/// assert_eq!(spec.name(), "texture");
/// ```
pub trait MemorySize: Send + Sync + 'static {
    /// How many bytes are free again when the value is dropped, as well as that is known. Asked for
    /// once, when a result is published; what is shared with others should be counted by one of them.
    fn memory_size(&self) -> usize;
}

/// Tells the size of the values of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeOf(fn(&ErasedValue) -> usize);

impl SizeOf {
    /// Of lists and arrays of numbers what they hold, of all else what lies in the value itself.
    pub(crate) const fn shallow<T: Storable>() -> Self {
        Self(|value| {
            let numbers = bulk_types::of::<T>().and_then(|_| Codec::of::<T>().bulk(value));
            let numbers = numbers.map_or(0, |numbers| numbers.bytes.len());
            size_of::<T>().saturating_add(numbers)
        })
    }

    /// What lies in the value itself.
    pub(crate) const fn flat<T>() -> Self {
        Self(|_| size_of::<T>())
    }

    /// What the value says.
    pub(crate) const fn told<T: MemorySize>() -> Self {
        Self(|value| value.downcast_ref::<T>().map_or(0, T::memory_size))
    }

    pub(crate) fn of(self, value: &ErasedValue) -> usize {
        (self.0)(value)
    }
}
