//! How much memory a value takes.

use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    /// when a result is published, and again if another result of the same run is cleaned; what is shared with
    /// others should be counted by one of them. A value that panics here counts as nothing.
    fn memory_size(&self) -> usize;
}

impl MemorySize for String {
    fn memory_size(&self) -> usize {
        size_of::<Self>() + self.capacity()
    }
}

impl<T: MemorySize> MemorySize for Vec<T> {
    fn memory_size(&self) -> usize {
        let spare = (self.capacity() - self.len()) * size_of::<T>();
        let items = self.iter().map(T::memory_size);
        size_of::<Self>() + spare + items.sum::<usize>()
    }
}

/// Tells the size of the values of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeOf {
    size: fn(&ErasedValue) -> usize,
    /// Whether the type has no memory elsewhere that is not counted, as far as is known.
    pub(crate) is_known: bool,
}

impl SizeOf {
    /// Of lists and arrays of numbers what they hold, of all else what lies in the value itself.
    pub(crate) fn shallow<T: Storable>() -> Self {
        let size = |value: &ErasedValue| {
            let numbers = bulk_types::of::<T>().and_then(|_| Codec::of::<T>().bulk(value));
            let numbers = numbers.map_or(0, |numbers| numbers.bytes.len());
            size_of::<T>().saturating_add(numbers)
        };
        let is_known = !needs_drop::<T>() || bulk_types::of::<T>().is_some();
        Self { size, is_known }
    }

    /// What lies in the value itself.
    pub(crate) const fn flat<T>() -> Self {
        Self {
            size: |_| size_of::<T>(),
            is_known: !needs_drop::<T>(),
        }
    }

    /// What the value says.
    pub(crate) const fn told<T: MemorySize>() -> Self {
        let size = |value: &ErasedValue| {
            let size = || value.downcast_ref::<T>().map_or(0, T::memory_size);
            catch_unwind(AssertUnwindSafe(size)).unwrap_or(0)
        };
        Self {
            size,
            is_known: true,
        }
    }

    /// What this says of the value.
    pub(crate) const fn by(size: fn(&ErasedValue) -> usize) -> Self {
        Self {
            size,
            is_known: true,
        }
    }

    pub(crate) fn of(self, value: &ErasedValue) -> usize {
        (self.size)(value)
    }
}
