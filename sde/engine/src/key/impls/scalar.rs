//! Numbers, `bool` and `char`; and each of them with its type as a [`Scalar`].

#[cfg(feature = "num-complex-0_4")]
use num_complex::Complex;

use crate::key::bounded::{put, write_node};
use crate::key::{Encoder, Fingerprint, FingerprintError, Scalar, ScalarKind, Short, TypeWriter};

macro_rules! scalars {
    ($($(#[$cfg:meta])* $kind:ident $type:ty, $tag:ident, $size:expr, $native:expr, |$value:ident| $bytes:expr;)*) => {$(
        $(#[$cfg])*
        impl Fingerprint for $type {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.bounded_item(self);
                Ok(())
            }

            $kind!($tag);

            fn shape(to: &mut TypeWriter<'_, '_>) {
                to.tag(ScalarKind::$tag as u8);
            }

            #[inline]
            fn bound() -> usize {
                1 + $size
            }

            #[inline]
            fn put_bounded(&self, room: &mut [u8], at: usize) -> usize {
                let $value = *self;
                let at = put(room, at, [ScalarKind::$tag as u8]);
                put::<{ $size }>(room, at, $bytes)
            }

            #[inline]
            fn write_node(
                &self,
                to: &mut Encoder<'_>,
                at: usize,
            ) -> Result<usize, FingerprintError> {
                write_node(self, to, at)
            }

            #[inline]
            fn scalar() -> Option<ScalarKind> {
                Some(ScalarKind::$tag)
            }

            #[inline]
            fn scalar_bytes(items: &[Self]) -> Option<&[u8]> {
                // In memory as in the encoding: little-endian, of the same width.
                (cfg!(target_endian = "little") && $native).then(|| bytemuck::cast_slice(items))
            }
        }
    )*};
}

/// A scalar that records keep.
macro_rules! kept {
    ($tag:ident) => {
        fn describe(&self, out: &mut Short) {
            out.show(format_args!("{self:?}"));
        }

        fn to_scalar(&self) -> Option<Scalar> {
            (*self).try_into().ok().map(Scalar::$tag)
        }
    };
}

/// A complex number, real part first.
#[cfg(feature = "num-complex-0_4")]
macro_rules! complex {
    ($tag:ident) => {
        fn describe(&self, out: &mut Short) {
            out.show(self);
        }
    };
}

const WIDE: bool = cfg!(target_pointer_width = "64");

scalars! {
    kept u8, U8, 1, true, |value| value.to_le_bytes();
    kept u16, U16, 2, true, |value| value.to_le_bytes();
    kept u32, U32, 4, true, |value| value.to_le_bytes();
    kept u64, U64, 8, true, |value| value.to_le_bytes();
    kept u128, U128, 16, true, |value| value.to_le_bytes();
    kept usize, Usize, 8, WIDE, |value| (value as u64).to_le_bytes();
    kept i8, I8, 1, true, |value| value.to_le_bytes();
    kept i16, I16, 2, true, |value| value.to_le_bytes();
    kept i32, I32, 4, true, |value| value.to_le_bytes();
    kept i64, I64, 8, true, |value| value.to_le_bytes();
    kept i128, I128, 16, true, |value| value.to_le_bytes();
    kept isize, Isize, 8, WIDE, |value| (value as i64).to_le_bytes();
    kept f32, F32, 4, true, |value| value.to_le_bytes();
    kept f64, F64, 8, true, |value| value.to_le_bytes();
    kept bool, Bool, 1, true, |value| [u8::from(value)];
    kept char, Char, 4, true, |value| u32::from(value).to_le_bytes();
    #[cfg(feature = "num-complex-0_4")]
    complex Complex<f32>, C32, 8, true, |value| bytemuck::cast([value.re.to_le_bytes(), value.im.to_le_bytes()]);
    #[cfg(feature = "num-complex-0_4")]
    complex Complex<f64>, C64, 16, true, |value| bytemuck::cast([value.re.to_le_bytes(), value.im.to_le_bytes()]);
}

impl Scalar {
    fn held(&self) -> &dyn Fingerprint {
        match self {
            Self::U8(value) => value,
            Self::U16(value) => value,
            Self::U32(value) => value,
            Self::U64(value) => value,
            Self::U128(value) => value,
            Self::Usize(value) => value,
            Self::I8(value) => value,
            Self::I16(value) => value,
            Self::I32(value) => value,
            Self::I64(value) => value,
            Self::I128(value) => value,
            Self::Isize(value) => value,
            Self::F32(value) => value,
            Self::F64(value) => value,
            Self::Bool(value) => value,
            Self::Char(value) => value,
            Self::Text(value) => value,
        }
    }
}

/// As the value itself, with its own type.
impl Fingerprint for Scalar {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        // Eight bytes under the tag of the type, also on a machine where it has four.
        let mut eight = |kind, bytes: [u8; 8]| {
            to.plain_item(|parts| {
                parts.bytes([kind as u8]);
                parts.bytes(bytes);
            });
            Ok(())
        };
        match self {
            Self::Usize(value) => eight(ScalarKind::Usize, value.to_le_bytes()),
            Self::Isize(value) => eight(ScalarKind::Isize, value.to_le_bytes()),
            Self::U128(value) => u128::from(*value).fingerprint(to),
            Self::I128(value) => i128::from(*value).fingerprint(to),
            other => other.held().fingerprint(to),
        }
    }

    fn describe(&self, out: &mut Short) {
        self.held().describe(out);
    }

    fn to_scalar(&self) -> Option<Scalar> {
        match self {
            Self::Text(text) => text.to_scalar(),
            other => Some(other.clone()),
        }
    }
}
