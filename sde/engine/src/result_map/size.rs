//! How much memory a value takes.

use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::codec::Storable;
use super::data::{Data, in_bulk};
use super::value::{ErasedValue, Value};
use crate::sync::user_code;

/// A value that tells how much memory it takes, for a [budget](crate::MemoryBudget) to count its real size.
///
/// Without it a list or an array of numbers counts with its elements. Other values that can be saved count with the
/// length of their encoding, which takes a pass over the value; see [`ResultSpec::sized`](crate::ResultSpec::sized).
/// Derive it for a type that owns its memory through fields that have it. A field with `#[memory_size(skip)]` counts
/// only with its part of the value itself. Implement it for memory elsewhere, as on a device.
///
/// ```
/// use sde::{MemorySize, ResultSpec};
///
/// #[derive(MemorySize)]
/// struct Mesh {
///     points: Vec<[f64; 3]>,
///     names: Vec<String>,
/// }
///
/// let mesh = Mesh { points: vec![[0.0; 3]; 100], names: Vec::new() };
/// assert_eq!(mesh.memory_size(), size_of::<Mesh>() + 100 * 24);
///
/// /// An image in the memory of a device.
/// struct Texture {
///     width: usize,
///     height: usize,
/// }
///
/// impl MemorySize for Texture {
///     fn memory_size(&self) -> usize {
///         size_of::<Self>() + 4 * self.width * self.height
///     }
/// }
///
/// let spec = ResultSpec::unsaved::<Texture>("texture").sized::<Texture>();
/// assert_eq!(spec.name(), "texture");
/// ```
pub trait MemorySize {
    /// About how many bytes dropping the value frees: itself, and the memory it owns. Called once, when a result is
    /// published. Memory that several results share counts for each; leave it out with `#[memory_size(skip)]` where
    /// that is too much. A value that panics here counts with its own fields.
    fn memory_size(&self) -> usize;

    /// The [`memory_size`](Self::memory_size) without the value's own fields.
    fn owned_size(&self) -> usize {
        self.memory_size().saturating_sub(size_of_val(self))
    }
}

/// Types that own nothing.
macro_rules! flat {
    ($($type:ty),*) => {$(
        impl MemorySize for $type {
            fn memory_size(&self) -> usize {
                size_of::<Self>()
            }
        }
    )*};
}
flat! {
    (), bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64,
    std::time::Duration, std::time::SystemTime, crate::key::Key, crate::key::Digest
}

impl MemorySize for String {
    fn memory_size(&self) -> usize {
        size_of::<Self>() + self.capacity()
    }
}

impl MemorySize for std::path::PathBuf {
    fn memory_size(&self) -> usize {
        size_of::<Self>() + self.capacity()
    }
}

/// The size of `room` items, with the memory that each of `items` owns.
fn with_items<'i, T: MemorySize + 'i>(
    room: usize,
    items: impl IntoIterator<Item = &'i T>,
) -> usize {
    let owned = match needs_drop::<T>() {
        true => items
            .into_iter()
            .map(T::owned_size)
            .fold(0, usize::saturating_add),
        false => 0,
    };
    room.saturating_mul(size_of::<T>()).saturating_add(owned)
}

impl<T: MemorySize> MemorySize for Vec<T> {
    fn memory_size(&self) -> usize {
        size_of::<Self>().saturating_add(with_items(self.capacity(), self))
    }
}

impl<T: MemorySize> MemorySize for VecDeque<T> {
    fn memory_size(&self) -> usize {
        size_of::<Self>().saturating_add(with_items(self.capacity(), self))
    }
}

impl<T: MemorySize> MemorySize for [T] {
    fn memory_size(&self) -> usize {
        with_items(self.len(), self)
    }
}

impl MemorySize for str {
    fn memory_size(&self) -> usize {
        self.len()
    }
}

impl<T: MemorySize, const N: usize> MemorySize for [T; N] {
    fn memory_size(&self) -> usize {
        with_items(N, self)
    }
}

impl<T: MemorySize> MemorySize for BTreeSet<T> {
    fn memory_size(&self) -> usize {
        size_of::<Self>().saturating_add(with_items(self.len(), self))
    }
}

impl<T: MemorySize, S> MemorySize for HashSet<T, S> {
    fn memory_size(&self) -> usize {
        size_of::<Self>().saturating_add(with_items(self.capacity(), self))
    }
}

impl<K: MemorySize, V: MemorySize> MemorySize for BTreeMap<K, V> {
    fn memory_size(&self) -> usize {
        let both = with_items(self.len(), self.keys())
            .saturating_add(with_items(self.len(), self.values()));
        size_of::<Self>().saturating_add(both)
    }
}

impl<K: MemorySize, V: MemorySize, S> MemorySize for HashMap<K, V, S> {
    fn memory_size(&self) -> usize {
        let room = self.capacity();
        let both = with_items(room, self.keys()).saturating_add(with_items(room, self.values()));
        size_of::<Self>().saturating_add(both)
    }
}

macro_rules! pointers {
    ($($(#[$about:meta])* $type:ident),*) => {$(
        $(#[$about])*
        impl<T: MemorySize + ?Sized> MemorySize for $type<T> {
            fn memory_size(&self) -> usize {
                size_of::<Self>().saturating_add((**self).memory_size())
            }
        }
    )*};
}
pointers! {
    Box,
    /// Each handle that shares the value counts it.
    Arc,
    /// Each handle that shares the value counts it.
    Value
}

impl<T: MemorySize> MemorySize for Option<T> {
    fn memory_size(&self) -> usize {
        size_of::<Self>().saturating_add(self.as_ref().map_or(0, T::owned_size))
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: MemorySize),*> MemorySize for ($($name,)*) {
            #[allow(non_snake_case, reason = "the variables are named as the types")]
            fn memory_size(&self) -> usize {
                let ($($name,)*) = self;
                size_of::<Self>()$(.saturating_add($name.owned_size()))*
            }
        }
    )*};
}
tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

impl MemorySize for Data {
    fn memory_size(&self) -> usize {
        let owned = match self {
            Data::None | Data::Bool(_) | Data::Int(_) | Data::Float(_) => 0,
            Data::Text(text) => text.owned_size(),
            Data::Bytes(bytes) => bytes.owned_size(),
            Data::List(items) => items.owned_size(),
            Data::Map(values) => values.owned_size(),
            Data::Array(array) => array.bytes().len(),
            Data::File(file) => file.path().as_os_str().len(),
            Data::Shared(value) => value.owned_size(),
            Data::Keyed(_) => 0,
        };
        size_of::<Self>().saturating_add(owned)
    }
}

/// Tells the size of the values of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeOf(fn(&ErasedValue) -> usize);

/// How deep calls of sizes may be nested.
const MOST_WITHIN: u8 = 4;

/// A bound for one value, so that sums of many wrong sizes do not overflow.
const MOST: usize = 1 << 40;

thread_local! {
    /// The depth of nested calls of sizes on this thread.
    static ASKING: Cell<u8> = const { Cell::new(0) };
}

impl SizeOf {
    /// Lists and arrays of numbers count with their elements, other values that own memory with the length of their
    /// encoding.
    pub(crate) const fn encoded<T: Storable>() -> Self {
        Self(|value| {
            let size = |value: &T| {
                let encoded = || postcard::experimental::serialized_size(value).unwrap_or(0);
                if needs_drop::<T>() {
                    numbers(value).unwrap_or_else(encoded)
                } else {
                    0
                }
            };
            with_fields(value, size)
        })
    }

    /// For values without an encoding: lists and arrays of numbers count with their elements, other values with their
    /// own fields.
    pub(crate) const fn flat<T: Send + Sync + 'static>() -> Self {
        Self(|value| with_fields(value, |value: &T| numbers(value).unwrap_or(0)))
    }

    /// The size that the value tells.
    pub(crate) const fn told<T: MemorySize + Send + Sync + 'static>() -> Self {
        Self(|value| with_fields(value, T::owned_size))
    }

    /// The size of a value. Telling it may use the cache and so ask for other sizes; beyond [`MOST_WITHIN`] levels a
    /// size is 0.
    pub(crate) fn of(self, value: &ErasedValue) -> usize {
        let within = ASKING.get();
        if within == MOST_WITHIN {
            return 0;
        }
        ASKING.set(within + 1);
        let size = (self.0)(value).min(MOST);
        ASKING.set(within);
        size
    }
}

/// Bytes of the elements, if the value is a list or an array of numbers.
fn numbers<T: 'static>(value: &T) -> Option<usize> {
    let known = in_bulk::<T>()?;
    let numbers = (known.view)(value as &dyn Any)?;
    Some(numbers.bytes().bytes.len())
}

/// The size of the value's own fields and of the memory that it owns.
fn with_fields<T: Send + Sync + 'static>(
    value: &ErasedValue,
    owned: impl Fn(&T) -> usize,
) -> usize {
    user_code("`MemorySize`");
    let owned = || value.downcast_ref::<T>().map_or(0, owned);
    let owned = catch_unwind(AssertUnwindSafe(owned)).unwrap_or(0);
    size_of::<T>().saturating_add(owned)
}
