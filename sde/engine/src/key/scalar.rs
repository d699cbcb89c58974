//! Scalars: values of a fixed size whose bytes are their identity, and short texts.
//!
//! Most inputs are one of these. A record keeps such a value beside its text and its digest. Both are made from it, so
//! a store need not keep them, and a table of runs has numbers in its columns.

use std::borrow::Cow;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A kind of scalar, as its tag byte. The list only ever grows at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each name says it")]
pub enum ScalarKind {
    U8 = 0x10,
    U16,
    U32,
    U64,
    U128,
    /// Eight bytes on every target.
    Usize,
    I8,
    I16,
    I32,
    I64,
    I128,
    /// Eight bytes on every target.
    Isize,
    F32,
    F64,
    Bool,
    /// Four bytes.
    Char,
    C32,
    C64,
}

/// The longest text that is a scalar, in bytes.
pub(crate) const SCALAR_TEXT: usize = 64;

/// The value of an input, a field or a parameter of an app that is a number, a truth value, a character or a text of
/// at most 64 bytes, together with its Rust type: `1_u8` is another input than `1_u64`.
///
/// For the key it is the value: it writes and describes itself alike.
///
/// ```
/// use sde::Sde;
/// use sde::key::Scalar;
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x * x * x
/// }
///
/// let sde = Sde::new();
/// cube.call(&sde, -0.5)?;
/// sde.records(|record| {
///     let input = &record.inputs[0];
///     let scalar = input.scalar.as_ref();
///     assert!(matches!(scalar, Some(Scalar::F64(x)) if *x == -0.5));
///     // Short text and digest are made of it.
///     assert_eq!(scalar.map(|scalar| scalar.summary("x")).as_ref(), Some(input));
/// });
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
#[allow(missing_docs, reason = "each name says it")]
pub enum Scalar {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    /// A number that fits 64 bits; a larger one is no scalar.
    U128(u64),
    Usize(u64),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    /// A number that fits 64 bits; a larger one is no scalar.
    I128(i64),
    Isize(i64),
    #[serde(with = "f32_bits")]
    F32(f32),
    #[serde(with = "f64_bits")]
    F64(f64),
    Bool(bool),
    Char(char),
    /// A text of at most 64 bytes, from a `String`, a `&str` or another type of text.
    Text(Box<str>),
}

/// Floats travel as their bits, since formats may change a NaN or lose it.
macro_rules! bits {
    ($($module:ident: $float:ty, $bits:ty;)*) => {$(
        mod $module {
            use super::{Deserialize, Deserializer, Serialize, Serializer};

            pub(super) fn serialize<S: Serializer>(value: &$float, to: S) -> Result<S::Ok, S::Error> {
                value.to_bits().serialize(to)
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$float, D::Error> {
                <$bits>::deserialize(from).map(<$float>::from_bits)
            }
        }
    )*};
}

bits! {
    f32_bits: f32, u32;
    f64_bits: f64, u64;
}

/// The value of a [`Scalar`] without its type, for a store that writes the types of many values once.
///
/// With serde it is the bare value. The format must describe itself and tell floats of 32 bits from those of 64, as
/// CBOR does.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each name says it")]
pub enum Bare<'a> {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    F32(f32),
    F64(f64),
    Text(Cow<'a, str>),
}

impl Bare<'_> {
    fn integer(&self) -> Option<i128> {
        match *self {
            Self::Unsigned(value) => Some(value.into()),
            Self::Signed(value) => Some(value.into()),
            _ => None,
        }
    }
}

macro_rules! scalars {
    ($($bare:ident: $($variant:ident $name:literal),*;)*) => {
        impl Scalar {
            /// The name of its type: `u8`, `usize`, `f64`, `bool` and so on, or `text`.
            #[must_use]
            pub const fn type_name(&self) -> &'static str {
                match self {
                    $($(Self::$variant(_) => $name,)*)*
                    Self::F32(_) => "f32",
                    Self::F64(_) => "f64",
                    Self::Bool(_) => "bool",
                    Self::Char(_) => "char",
                    Self::Text(_) => "text",
                }
            }

            /// The value without its type. A character is a text.
            ///
            /// ```
            /// use sde::key::{Bare, Scalar};
            /// assert_eq!(Scalar::I8(-3).bare(), Bare::Signed(-3));
            /// assert_eq!(Scalar::Char('x').bare(), Bare::Text("x".into()));
            /// ```
            #[must_use]
            pub fn bare(&self) -> Bare<'_> {
                match self {
                    $($(Self::$variant(value) => Bare::$bare((*value).into()),)*)*
                    Self::F32(value) => Bare::F32(*value),
                    Self::F64(value) => Bare::F64(*value),
                    Self::Bool(value) => Bare::Bool(*value),
                    Self::Char(value) => Bare::Text(value.to_string().into()),
                    Self::Text(value) => Bare::Text((&**value).into()),
                }
            }

            /// The scalar with this [`type_name`](Self::type_name) and [`bare`](Self::bare) value; `None` if the type
            /// is unknown or the value is none of it. Integers may come signed or unsigned.
            ///
            /// ```
            /// use sde::key::{Bare, Scalar};
            /// assert_eq!(Scalar::of("i8", Bare::Unsigned(3)), Some(Scalar::I8(3)));
            /// assert_eq!(Scalar::of("i8", Bare::Unsigned(128)), None);
            /// ```
            #[must_use]
            pub fn of(type_name: &str, value: Bare<'_>) -> Option<Self> {
                match (type_name, value) {
                    $($(($name, value) => value.integer()?.try_into().ok().map(Self::$variant),)*)*
                    ("f32", Bare::F32(value)) => Some(Self::F32(value)),
                    ("f64", Bare::F64(value)) => Some(Self::F64(value)),
                    ("bool", Bare::Bool(value)) => Some(Self::Bool(value)),
                    ("char", Bare::Text(value)) => {
                        let mut characters = value.chars();
                        let first = characters.next().map(Self::Char);
                        first.filter(|_| characters.next().is_none())
                    }
                    ("text", Bare::Text(value)) if value.len() <= SCALAR_TEXT => {
                        Some(Self::Text(value.into()))
                    }
                    _ => None,
                }
            }
        }
    };
}

scalars! {
    Unsigned: U8 "u8", U16 "u16", U32 "u32", U64 "u64", U128 "u128", Usize "usize";
    Signed: I8 "i8", I16 "i16", I32 "i32", I64 "i64", I128 "i128", Isize "isize";
}

/// By type and bits: a NaN equals itself, and 0.0 is not -0.0.
impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.type_name() == other.type_name() && self.bare() == other.bare()
    }
}

impl Eq for Scalar {}

/// Floats by their bits.
impl PartialEq for Bare<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Unsigned(one), Self::Unsigned(other)) => one == other,
            (Self::Signed(one), Self::Signed(other)) => one == other,
            (Self::F32(one), Self::F32(other)) => one.to_bits() == other.to_bits(),
            (Self::F64(one), Self::F64(other)) => one.to_bits() == other.to_bits(),
            (Self::Text(one), Self::Text(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Bare<'_> {}

impl<'de> Deserialize<'de> for Bare<'_> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyPlain)
    }
}

struct AnyPlain;

impl Visitor<'_> for AnyPlain {
    type Value = Bare<'static>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a truth value, a number or a text")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Bare::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Bare::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Bare::Signed(value))
    }

    fn visit_f32<E>(self, value: f32) -> Result<Self::Value, E> {
        Ok(Bare::F32(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Bare::F64(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Bare::Text(value.to_owned().into()))
    }
}
