//! Arrays whose type of number is known at run time only.

use std::any::{Any, TypeId};
#[cfg(feature = "ndarray-0_17")]
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::bulk::{
    AxisOrder, BulkBytes, Element, NumberType, Shape, elements, little_endian, whole_shape,
};
#[cfg(feature = "ndarray-0_17")]
use crate::bulk::{Bulk, Elements};
use crate::error::Error;
use crate::key::{Encoder, Fingerprint, FingerprintError, Short, describe};
use crate::result_map::bulk_types::{self, Known};
use crate::result_map::{ErasedValue, Value};

/// A list or an array of numbers whose type is known only at run time, as those of NumPy are.
///
/// Its elements lie side by side and are shared: a clone costs a reference count. It makes the same key as the equal
/// `Vec`, or the equal array of ndarray if it has a shape, and is stored as that is: as bytes.
///
/// A complex number, and an element like `[f64; 3]`, counts as one more dimension of its numbers. `usize` is `u64`.
///
/// ```
/// use sde::bulk::{NumberType, AxisOrder};
/// use sde::AnyArray;
///
/// let list = AnyArray::from(vec![1.0_f64, 2.0]);
/// assert_eq!((list.numbers(), list.lengths()), (NumberType::F64, vec![2]));
/// let array = AnyArray::shaped(vec![1_u8, 2, 3, 4, 5, 6], [2, 3], AxisOrder::Rows)?;
/// assert_eq!(array.bytes(), [1, 2, 3, 4, 5, 6]);
/// assert_eq!(*list.get::<Vec<f64>>().unwrap(), [1.0, 2.0]);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone)]
pub struct AnyArray {
    numbers: Numbers,
    /// `None` for a list.
    shape: Option<Arc<Shape>>,
}

/// Work that needs a type of number at compile time.
pub(super) trait WithType {
    type Made;

    fn with<T: Element + Fingerprint>(self) -> Self::Made;
}

macro_rules! numbers {
    ($($kind:ident $type:ty),*) => {
        #[derive(Clone, Debug)]
        pub(super) enum Numbers {
            $($kind(Value<Vec<$type>>)),*
        }

        impl Numbers {
            pub(super) fn new<E: Element>(items: Vec<E>) -> Self {
                match E::NUMBERS {
                    $(NumberType::$kind => Self::$kind(Value::new(cast(items)))),*
                }
            }

            pub(super) fn of_bytes(kind: NumberType, bytes: &[u8]) -> Result<Self, String> {
                Ok(match kind {
                    $(NumberType::$kind => Self::$kind(Value::new(elements(bytes)?))),*
                })
            }

            /// Does something with the type of such numbers.
            pub(super) fn with_type<W: WithType>(kind: NumberType, work: W) -> W::Made {
                match kind {
                    $(NumberType::$kind => work.with::<$type>()),*
                }
            }

            /// The numbers of a value that is a list of them.
            fn of_value(value: &ErasedValue) -> Option<Self> {
                $(if let Some(items) = value.downcast::<Vec<$type>>() {
                    return Some(Self::$kind(items));
                })*
                None
            }

            fn kind(&self) -> NumberType {
                match self {
                    $(Self::$kind(_) => NumberType::$kind),*
                }
            }
        }

        /// Does something with the shared list of numbers.
        macro_rules! each {
            ($numbers:expr, $items:ident => $do:expr) => {
                match $numbers {
                    $(Numbers::$kind($items) => $do),*
                }
            };
        }
    };
}

numbers! { U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64, F32 f32, F64 f64 }

/// The numbers that these elements consist of, where they lie.
fn cast<E: Element, N: Element>(items: Vec<E>) -> Vec<N> {
    bytemuck::allocation::try_cast_vec(items)
        .unwrap_or_else(|(_, items)| bytemuck::allocation::pod_collect_to_vec(&items))
}

impl AnyArray {
    /// An array of these lengths, from its elements as they lie in memory.
    ///
    /// # Errors
    /// If it has another number of elements.
    pub fn shaped<E: Element>(
        items: Vec<E>,
        lengths: impl Into<Vec<usize>>,
        order: AxisOrder,
    ) -> Result<Self, Error> {
        let lengths = lengths.into();
        fits(&lengths, items.len())?;
        let shape = whole_shape::<E>(Some(Shape { order, lengths }), items.len()).map(Arc::new);
        let numbers = Numbers::new(items);
        Ok(Self { numbers, shape })
    }

    /// A list, or an array of these lengths, from the bytes of its numbers as they lie in memory, little-endian. They
    /// are copied once.
    ///
    /// # Errors
    /// If there are more or fewer bytes than such an array has.
    pub fn from_bytes(
        numbers: NumberType,
        bytes: &[u8],
        shape: Option<(Vec<usize>, AxisOrder)>,
    ) -> Result<Self, Error> {
        let numbers =
            Numbers::of_bytes(numbers, bytes).map_err(|why| Error::refused("an array", why))?;
        Self::of(numbers, shape)
    }

    pub(super) fn of(
        numbers: Numbers,
        shape: Option<(Vec<usize>, AxisOrder)>,
    ) -> Result<Self, Error> {
        if let Some((lengths, _)) = &shape {
            fits(lengths, each!(&numbers, items => items.len()))?;
        }
        let shape = shape.map(|(lengths, order)| Arc::new(Shape { order, lengths }));
        Ok(Self { numbers, shape })
    }

    /// The list or array that a value is. A list of numbers is shared, other values are copied.
    pub(super) fn of_value(value: &ErasedValue) -> Option<Self> {
        if let Some(numbers) = Numbers::of_value(value) {
            let shape = None;
            return Some(Self { numbers, shape });
        }
        let known = bulk_types::of_id(value.any().type_id())?;
        let BulkBytes {
            numbers,
            shape,
            bytes,
        } = (known.view)(value.any())?.bytes();
        Some(Self {
            numbers: Numbers::of_bytes(numbers, &bytes).ok()?,
            shape: shape.map(Arc::new),
        })
    }

    /// The type of its numbers.
    #[must_use]
    pub fn numbers(&self) -> NumberType {
        self.numbers.kind()
    }

    /// One length for each dimension; a list has one.
    #[must_use]
    pub fn lengths(&self) -> Vec<usize> {
        match &self.shape {
            Some(shape) => shape.lengths.clone(),
            None => vec![self.count()],
        }
    }

    /// The order of the array's elements; `None` for a list, which has no shape.
    #[must_use]
    pub fn order(&self) -> Option<AxisOrder> {
        self.shape.as_ref().map(|shape| shape.order)
    }

    /// The bytes of its numbers, as this machine has them in memory.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        each!(&self.numbers, items => bytemuck::cast_slice(items))
    }

    /// The array as a Rust type: one that as a result is written [in bulk](crate::bulk), such as a `Vec` of numbers, of
    /// `[f64; 3]` or of complex numbers, or an array of ndarray. `None` if it has other numbers or another shape, or `T`
    /// is no such type. A `Vec` of its numbers is shared, other types are copied.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Value<T>> {
        self.to_type(TypeId::of::<T>())?.into_value()
    }

    pub(super) fn view<T: 'static>(&self) -> Option<&T> {
        let list: &dyn Any = each!(&self.numbers, items => &**items);
        let whole: &dyn Any = self;
        let list = list.downcast_ref().filter(|_| self.lengths().len() == 1);
        list.or_else(|| whole.downcast_ref())
    }

    pub(super) fn to_type(&self, id: TypeId) -> Option<ErasedValue> {
        if self.lengths().len() == 1 {
            let list: ErasedValue = each!(&self.numbers, items => items.clone().into());
            if list.any().type_id() == id {
                return Some(list);
            }
        }
        (bulk_types::of_id(id)?.build)(&self.bulk())
    }

    /// What a format writes.
    pub(super) fn bulk(&self) -> BulkBytes<'_> {
        let numbers = self.numbers();
        BulkBytes {
            numbers,
            shape: self.shape.as_deref().cloned(),
            bytes: little_endian(numbers, self.bytes()),
        }
    }

    /// The short text of an array of these lengths, of which at least the first numbers are there.
    pub(super) fn describe_as(
        numbers: &Numbers,
        lengths: &[usize],
        order: AxisOrder,
        out: &mut Short,
    ) {
        out.show(format_args!("[{}", numbers.kind().rust_name()));
        for (axis, length) in lengths.iter().enumerate() {
            out.show(if axis == 0 { "; " } else { " x " });
            out.show(length);
        }
        out.show(']');
        each!(numbers, items => {
            if !items.is_empty() {
                out.show(' ');
            }
            out.list((0..items.len()).filter_map(|at| items.get(place(lengths, order, at))));
        });
    }

    fn count(&self) -> usize {
        each!(&self.numbers, items => items.len())
    }
}

impl Known for AnyArray {
    fn bytes(&self) -> BulkBytes<'_> {
        self.bulk()
    }

    fn show(&self, to: &mut dyn FnMut(&dyn erased_serde::Serialize)) {
        to(&self.bulk());
    }
}

pub(super) fn fits(lengths: &[usize], count: usize) -> Result<(), Error> {
    let product = lengths
        .iter()
        .try_fold(1_usize, |product, length| product.checked_mul(*length));
    match product == Some(count) {
        true => Ok(()),
        false => Err(Error::refused(
            "an array",
            format!("its lengths do not make {count} elements"),
        )),
    }
}

impl<E: Element> From<Vec<E>> for AnyArray {
    fn from(items: Vec<E>) -> Self {
        Self {
            shape: whole_shape::<E>(None, items.len()).map(Arc::new),
            numbers: Numbers::new(items),
        }
    }
}

/// An array of ndarray, which is copied only if its elements do not lie side by side.
#[cfg(feature = "ndarray-0_17")]
impl<E: Element, D: ndarray::Dimension> From<ndarray::Array<E, D>> for AnyArray {
    fn from(array: ndarray::Array<E, D>) -> Self {
        let Elements { items, shape } = array.elements();
        let shape = whole_shape::<E>(shape, items.len()).map(Arc::new);
        let items = match items {
            Cow::Owned(items) => items,
            Cow::Borrowed(_) => array.into_raw_vec_and_offset().0,
        };
        let numbers = Numbers::new(items);
        Self { numbers, shape }
    }
}

/// The place in memory of the element that is this far on in logical order.
fn place(lengths: &[usize], order: AxisOrder, at: usize) -> usize {
    if order == AxisOrder::Rows {
        return at;
    }
    let (mut rest, mut place) = (at, 0);
    let mut stride: usize = lengths.iter().product();
    for length in lengths.iter().rev() {
        stride /= length;
        place += rest % length * stride;
        rest /= length;
    }
    place
}

impl Fingerprint for AnyArray {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        let Some(shape) = &self.shape else {
            return each!(&self.numbers, items => items.fingerprint(to));
        };
        to.array(&shape.lengths, |parts| {
            each!(&self.numbers, items => match shape.order {
                AxisOrder::Rows => parts.part(items),
                AxisOrder::Columns => parts.node(|to| {
                    let places = (0..items.len()).map(|at| place(&shape.lengths, shape.order, at));
                    to.elements(items.len(), places.filter_map(|place| items.get(place)))
                }),
            })
        })
    }

    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        match &self.shape {
            None => each!(&self.numbers, items => items.write_node(to, at)),
            Some(_) => to.node_at(at, |to| self.fingerprint(to)),
        }
    }

    fn describe(&self, out: &mut Short) {
        let Some(shape) = &self.shape else {
            return each!(&self.numbers, items => items.describe(out));
        };
        Self::describe_as(&self.numbers, &shape.lengths, shape.order, out);
    }
}

/// Numbers are equal if their bits are.
impl PartialEq for AnyArray {
    fn eq(&self, other: &Self) -> bool {
        self.numbers() == other.numbers()
            && self.shape == other.shape
            && self.bytes() == other.bytes()
    }
}

impl fmt::Debug for AnyArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(self))
    }
}
