//! Values without a Rust type from Rust values, and back.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;

use super::Data;
use super::array::AnyArray;
use crate::output_file::OutputFile;
use crate::result_map::bulk_types::{self, KnownType};
use crate::result_map::{ErasedValue, Value};

impl Data {
    /// The value as a Rust type, if it is one: an integer that fits, `f64`, an `f32` of the same value, `bool`,
    /// `String`, `()`, an [`OutputFile`], a `BTreeMap<String, Data>`, a `Vec<Data>`, a `Vec` of any of the former; a
    /// `Vec` or an array of numbers.
    ///
    /// ```
    /// use sde::Data;
    ///
    /// assert_eq!(*Data::Int(200).get::<u8>().unwrap(), 200);
    /// assert!(Data::Int(300).get::<u8>().is_none());
    /// let list = Data::from(vec![Data::Float(1.0), Data::Float(2.5)]);
    /// assert_eq!(*list.get::<Vec<f64>>().unwrap(), [1.0, 2.5]);
    /// ```
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Value<T>> {
        self.to_type(TypeId::of::<T>())?.into_value()
    }

    /// Makes a `Data` of a Rust value; `None` if it is of a type that [`get`](Self::get) does not give, or an integer
    /// of more than 63 bits.
    ///
    /// ```
    /// use sde::{Data, ErasedValue};
    ///
    /// assert_eq!(Data::of(&ErasedValue::new(-3_i8)), Some(Data::Int(-3)));
    /// ```
    #[must_use]
    pub fn of(value: &ErasedValue) -> Option<Self> {
        if let Some(data) = value.downcast_ref::<Self>() {
            return Some(data.clone());
        }
        if let Some(text) = value.downcast_ref::<&'static str>() {
            return Some((*text).into());
        }
        if let Some(bytes) = value.downcast_ref::<Vec<u8>>() {
            return Some(bytes.clone().into());
        }
        let array = AnyArray::of_value(value).map(Self::Array);
        array.or_else(|| Self::of_single(value))
    }

    /// The value by reference, if it has this type in memory.
    pub(crate) fn view<T: 'static>(&self) -> Option<&T> {
        let value: &dyn Any = match self {
            Self::None => &(),
            Self::Bool(value) => value,
            Self::Int(value) => value,
            Self::Float(value) => value,
            Self::Text(value) => value,
            Self::Bytes(value) => value,
            Self::List(value) => value,
            Self::Map(value) => value,
            Self::Array(value) => return value.view(),
            Self::File(value) => value,
            Self::Shared(value) => return value.view(),
            Self::Keyed(_) => return None,
        };
        value.downcast_ref()
    }

    pub(crate) fn to_type(&self, id: TypeId) -> Option<ErasedValue> {
        match self {
            Self::Shared(value) if id == TypeId::of::<Self>() => return Some(value.clone().into()),
            Self::Shared(value) => return value.to_type(id),
            _ if id == TypeId::of::<Self>() => return Some(ErasedValue::new(self.clone())),
            _ => {}
        }
        if let Some(bulk) = bulk_types::of_id(id)
            && let Some(numbers) = self.numbers()
        {
            return match self {
                Self::Array(array) => array.to_type(id),
                _ => (bulk.build)(&numbers.bytes()),
            };
        }
        self.to_single(id)
    }

    /// The numbers of an array, or of bytes.
    fn numbers(&self) -> Option<&dyn bulk_types::Known> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Array(array) => Some(array),
            Self::Shared(value) => value.numbers(),
            _ => None,
        }
    }
}

/// How to view and read values of this type as numbers, if it is known. Those of [`Data`] may be numbers.
pub(in crate::result_map) fn in_bulk<T: 'static>() -> Option<KnownType> {
    let id = TypeId::of::<T>();
    let data = || KnownType {
        view: |value| value.downcast_ref::<Data>()?.numbers(),
        read: |from| erased_serde::deserialize::<Data>(from).map(ErasedValue::new),
        build: |_| None,
    };
    bulk_types::of_id(id).or_else(|| (id == TypeId::of::<Data>()).then(data))
}

/// A Rust type that is one variant.
trait Single: Clone + Send + Sync + 'static {
    fn from_data(data: &Data) -> Option<Self>;
    fn to_data(&self) -> Option<Data>;
}

macro_rules! singles {
    ($($type:ty: $pattern:pat => $from:expr, |$value:ident| $to:expr;)*) => {
        $(impl Single for $type {
            fn from_data(data: &Data) -> Option<Self> {
                match data {
                    $pattern => $from,
                    Data::Shared(value) => Self::from_data(value),
                    _ => None,
                }
            }

            fn to_data(&self) -> Option<Data> {
                let $value = self;
                $to
            }
        })*

        impl Data {
            fn to_single(&self, id: TypeId) -> Option<ErasedValue> {
                $(if id == TypeId::of::<$type>() {
                    return <$type>::from_data(self).map(ErasedValue::new);
                }
                if id == TypeId::of::<Vec<$type>>() {
                    let Self::List(items) = self else {
                        return None;
                    };
                    let items: Option<Vec<_>> = items.iter().map(<$type>::from_data).collect();
                    return items.map(ErasedValue::new);
                })*
                None
            }

            fn of_single(value: &ErasedValue) -> Option<Self> {
                $(if let Some(value) = value.downcast_ref::<$type>() {
                    return value.to_data();
                }
                if let Some(items) = value.downcast_ref::<Vec<$type>>() {
                    let items: Option<Vec<_>> = items.iter().map(<$type>::to_data).collect();
                    return items.map(Self::List);
                })*
                None
            }
        }
    };
}

/// An integer that fits.
fn int<N: TryFrom<i64>>(value: &i64) -> Option<N> {
    N::try_from(*value).ok()
}

/// A float of fewer bits, if it has the same value.
fn narrow(value: f64) -> Option<f32> {
    let narrow = value as f32;
    (f64::from(narrow).to_bits() == value.to_bits()).then_some(narrow)
}

fn to_int(value: impl TryInto<i64>) -> Option<Data> {
    value.try_into().ok().map(Data::Int)
}

singles! {
    (): Data::None => Some(()), |_none| Some(Data::None);
    bool: Data::Bool(value) => Some(*value), |value| Some(Data::Bool(*value));
    u8: Data::Int(value) => int(value), |value| to_int(*value);
    u16: Data::Int(value) => int(value), |value| to_int(*value);
    u32: Data::Int(value) => int(value), |value| to_int(*value);
    u64: Data::Int(value) => int(value), |value| to_int(*value);
    usize: Data::Int(value) => int(value), |value| to_int(*value);
    i8: Data::Int(value) => int(value), |value| to_int(*value);
    i16: Data::Int(value) => int(value), |value| to_int(*value);
    i32: Data::Int(value) => int(value), |value| to_int(*value);
    i64: Data::Int(value) => Some(*value), |value| to_int(*value);
    isize: Data::Int(value) => int(value), |value| to_int(*value);
    f32: Data::Float(value) => narrow(*value), |value| Some(Data::Float((*value).into()));
    f64: Data::Float(value) => Some(*value), |value| Some(Data::Float(*value));
    String: Data::Text(text) => Some(text.clone()), |text| Some(Data::Text(text.clone()));
    Vec<Data>: Data::List(items) => Some(items.clone()), |items| Some(Data::List(items.clone()));
    BTreeMap<String, Data>: Data::Map(map) => Some(map.clone()), |map| Some(Data::Map(map.clone()));
    OutputFile: Data::File(file) => Some(file.clone()), |file| Some(Data::File(file.clone()));
}
