//! Recognizing results that are lists of numbers by their types.
//!
//! A result of type `Vec<f64>` has no field to put `#[serde(with = "sde::bulk")]` on, and code can't ask whether a
//! generic `T` is a [`Bulk`]. It can ask whether `T` is `Vec<f64>`; so the common types are tried one after the other.

use std::any::{Any, TypeId};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::ErasedValue;
use crate::bulk::{self, Bulk, BulkBytes};

/// A value of a type known to be a [`Bulk`].
pub(in crate::result_map) trait Known {
    fn bytes(&self) -> BulkBytes<'_>;
    fn show(&self, to: &mut dyn FnMut(&dyn erased_serde::Serialize));
}

impl<B: Bulk> Known for B {
    fn bytes(&self) -> BulkBytes<'_> {
        bulk::bytes_of(self)
    }

    fn show(&self, to: &mut dyn FnMut(&dyn erased_serde::Serialize)) {
        to(&InBulk(self));
    }
}

/// Serializes by way of [`bulk`].
struct InBulk<B>(B);

impl<B: Bulk> Serialize for InBulk<&B> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        bulk::serialize(self.0, to)
    }
}

impl<'de, B: Bulk> Deserialize<'de> for InBulk<B> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        bulk::deserialize(from).map(Self)
    }
}

pub(super) type Read =
    fn(&mut dyn erased_serde::Deserializer<'_>) -> Result<ErasedValue, erased_serde::Error>;

fn read<B: Bulk + Send + Sync + 'static>(
    from: &mut dyn erased_serde::Deserializer<'_>,
) -> Result<ErasedValue, erased_serde::Error> {
    erased_serde::deserialize::<InBulk<B>>(from).map(|read| ErasedValue::new(read.0))
}

fn build<B: Bulk + Send + Sync + 'static>(numbers: &BulkBytes<'_>) -> Option<ErasedValue> {
    bulk::of_bytes::<B>(numbers).map(ErasedValue::new)
}

/// How to view and read the values of a known type.
#[derive(Clone, Copy)]
pub(super) struct KnownType {
    pub(super) view: fn(&dyn Any) -> Option<&dyn Known>,
    pub(super) read: Read,
    /// Makes the value that has these numbers, if there is one.
    pub(super) build: fn(&BulkBytes<'_>) -> Option<ErasedValue>,
}

fn known<B: Bulk + Send + Sync + 'static>() -> KnownType {
    KnownType {
        view: |value| value.downcast_ref::<B>().map(|value| value as &dyn Known),
        read: read::<B>,
        build: build::<B>,
    }
}

macro_rules! known_types {
    ($id:ident: $($element:ty),* $(,)?) => {
        $(
            if $id == TypeId::of::<Vec<$element>>() {
                return Some(known::<Vec<$element>>());
            }
            if $id == TypeId::of::<Box<[$element]>>() {
                return Some(known::<Box<[$element]>>());
            }
            #[cfg(feature = "ndarray-0_17")]
            if let Some(array) = array::<$element>($id) {
                return Some(array);
            }
        )*
    };
}

#[cfg(feature = "ndarray-0_17")]
fn array<E: bulk::Element>(id: TypeId) -> Option<KnownType> {
    use ndarray::{Array1, Array2, Array3, Array4, ArrayD};
    match id {
        id if id == TypeId::of::<Array1<E>>() => Some(known::<Array1<E>>()),
        id if id == TypeId::of::<Array2<E>>() => Some(known::<Array2<E>>()),
        id if id == TypeId::of::<Array3<E>>() => Some(known::<Array3<E>>()),
        id if id == TypeId::of::<Array4<E>>() => Some(known::<Array4<E>>()),
        id if id == TypeId::of::<ArrayD<E>>() => Some(known::<ArrayD<E>>()),
        _ => None,
    }
}

/// The functions of a Rust type of lists or arrays. Of a type known to the compiler nothing is compared.
#[inline(always)]
pub(super) fn of_id(id: TypeId) -> Option<KnownType> {
    known_types!(id: f64, f32, u8, u16, u32, u64, i8, i16, i32, i64, [f64; 2], [f64; 3]);
    #[cfg(target_pointer_width = "64")]
    known_types!(id: usize, isize);
    #[cfg(feature = "num-complex-0_4")]
    known_types!(id: num_complex::Complex<f32>, num_complex::Complex<f64>);
    None
}
