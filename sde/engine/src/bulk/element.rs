//! Elements, which lie in memory as numbers do.

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::number_type::NumberType;

/// A number, a complex number, or an array of them with a fixed length: what
/// a list must hold to be written as bytes.
///
/// It can't be implemented elsewhere: what is read back must be right for any bytes.
pub trait Element: Pod + Serialize + DeserializeOwned + Send + Sync + sealed::Sealed {
    /// The number it consists of.
    type Number: Element;

    /// The type of that number.
    const NUMBERS: NumberType;

    /// Appends the dimensions that it has itself: none for a number, 2 for a complex
    /// number (real part, imaginary part), `N` and those of `T` for `[T; N]`.
    fn inner(lengths: &mut Vec<usize>) {
        let _ = lengths;
    }
}

/// The dimensions that an element has itself.
pub(super) fn dimensions_of<E: Element>() -> Vec<usize> {
    let mut lengths = Vec::new();
    E::inner(&mut lengths);
    lengths
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($type:ty: $number:ident),* $(,)?) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type {
            type Number = Self;
            const NUMBERS: NumberType = NumberType::$number;
        })*
    };
}

numbers! {
    u8: U8, u16: U16, u32: U32, u64: U64, i8: I8, i16: I16, i32: I32, i64: I64, f32: F32, f64: F64
}

// On other machines these types are no elements, and are written one by one.
#[cfg(target_pointer_width = "64")]
numbers! { usize: U64, isize: I64 }

impl<T: Element, const N: usize> sealed::Sealed for [T; N] {}
impl<T: Element, const N: usize> Element for [T; N]
where
    Self: Pod + Serialize + DeserializeOwned,
{
    type Number = T::Number;
    const NUMBERS: NumberType = T::NUMBERS;

    fn inner(lengths: &mut Vec<usize>) {
        lengths.push(N);
        T::inner(lengths);
    }
}

#[cfg(feature = "num-complex-0_4")]
macro_rules! complex {
    ($($number:ty),*) => {
        $(impl sealed::Sealed for num_complex::Complex<$number> {}
        impl Element for num_complex::Complex<$number> {
            type Number = $number;
            const NUMBERS: NumberType = <$number as Element>::NUMBERS;

            fn inner(lengths: &mut Vec<usize>) {
                lengths.push(2);
            }
        })*
    };
}

#[cfg(feature = "num-complex-0_4")]
complex! { f32, f64 }
