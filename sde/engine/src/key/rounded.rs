//! Rounding, where a person asks for it.
//!
//! Floats enter keys by their bits, since a remembered result must be the one that these very inputs
//! give. Where inputs carry noise that cannot matter, they can be rounded for the key, and only for
//! the key: the app still gets the exact value. Values just on either side of a rounding boundary
//! still differ.

use std::io::Write;

use super::encoder::Encoder;
use super::error::FingerprintError;
use super::fingerprint::Fingerprint;
use super::shape::TypeWriter;
use super::short::Short;
use super::tag::item;

/// A number, or numbers, that enter keys rounded to a count of significant decimal digits.
///
/// Zeros of either sign are alike, and so are all NaNs.
///
/// ```
/// use sde::key::{commit, Rounded};
/// let sum = Rounded::new(0.1 + 0.2, 10);
/// assert_eq!(commit(&sum)?, commit(&Rounded::new(0.3, 10))?);
/// # Ok::<(), sde::key::FingerprintError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Rounded<T> {
    /// The exact value.
    pub value: T,
    /// The number of significant decimal digits that count; 0 is taken for 1.
    pub digits: u8,
}

impl<T> Rounded<T> {
    /// Rounds `value`, of which `digits` significant decimal digits count.
    pub const fn new(value: T, digits: u8) -> Self {
        Self { value, digits }
    }
}

/// A value that can be rounded: a float, or a list or an option of such values.
pub trait Round: Fingerprint {
    /// Writes the rounded value as an item.
    #[doc(hidden)]
    fn put_rounded(&self, digits: u8, to: &mut Encoder<'_>) -> Result<(), FingerprintError>;
}

impl<T: Round> Fingerprint for Rounded<T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.item(|parts| {
            parts.bytes([item::ROUNDED, self.digits]);
            parts.node(|to| self.value.put_rounded(self.digits, to))
        })
    }

    fn describe(&self, out: &mut Short) {
        self.value.describe(out);
        out.show(format_args!(" to {} digits", self.digits));
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::ROUNDED);
        T::shape(to);
    }
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Round for $type {
            fn put_rounded(&self, digits: u8, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                let places = usize::from(digits.saturating_sub(1));
                // Adding zero turns -0.0 into 0.0.
                let value = self + 0.0;
                // The standard library rounds correctly, on every machine alike.
                let mut text = [0; 300];
                let mut rest = &mut text[..];
                write!(rest, "{value:.places$e}").map_err(FingerprintError::custom)?;
                let length = 300 - rest.len();
                to.item(|parts| {
                    parts.with_shape(<$type>::shape);
                    parts.text(&text[..length]);
                    Ok(())
                })
            }
        }
    )*};
}

floats!(f32, f64);

/// A list of the roundings.
impl<T: Round> Round for [T] {
    fn put_rounded(&self, digits: u8, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.item(|parts| {
            parts.bytes([item::SEQUENCE]);
            parts.varint(self.len() as u64);
            if self.is_empty() {
                parts.with_shape(T::shape);
            }
            let mut all = self.iter();
            all.try_for_each(|value| parts.node(|to| value.put_rounded(digits, to)))
        })
    }
}

impl<T: Round> Round for Vec<T> {
    fn put_rounded(&self, digits: u8, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.as_slice().put_rounded(digits, to)
    }
}

impl<T: Round, const N: usize> Round for [T; N] {
    fn put_rounded(&self, digits: u8, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.as_slice().put_rounded(digits, to)
    }
}

impl<T: Round> Round for Option<T> {
    fn put_rounded(&self, digits: u8, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.item(|parts| match self {
            Some(value) => {
                parts.bytes([item::SOME]);
                parts.node(|to| value.put_rounded(digits, to))
            }
            None => {
                parts.bytes([item::NONE]);
                parts.with_shape(T::shape);
                Ok(())
            }
        })
    }
}

impl<T: Round + super::TypeShape + ?Sized> Round for &T {
    fn put_rounded(&self, digits: u8, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        (**self).put_rounded(digits, to)
    }
}
