//! Numbers, `bool` and `char`.

use crate::key::bounded::{put, write_node};
use crate::key::{Encoder, Fingerprint, FingerprintError, Scalar, ScalarKind, Shape, Short};

macro_rules! scalars {
    ($($type:ty, $tag:ident, $size:expr, $native:expr, |$value:ident| $bytes:expr;)*) => {$(
        impl Fingerprint for $type {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.bounded_item(self);
                Ok(())
            }

            fn describe(&self, out: &mut Short) {
                out.show(format_args!("{self:?}"));
            }

            fn shape(to: &mut Shape<'_, '_>) {
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

            fn to_scalar(&self) -> Option<Scalar> {
                (*self).try_into().ok().map(Scalar::$tag)
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

const WIDE: bool = cfg!(target_pointer_width = "64");

scalars! {
    u8, U8, 1, true, |value| value.to_le_bytes();
    u16, U16, 2, true, |value| value.to_le_bytes();
    u32, U32, 4, true, |value| value.to_le_bytes();
    u64, U64, 8, true, |value| value.to_le_bytes();
    u128, U128, 16, true, |value| value.to_le_bytes();
    usize, Usize, 8, WIDE, |value| (value as u64).to_le_bytes();
    i8, I8, 1, true, |value| value.to_le_bytes();
    i16, I16, 2, true, |value| value.to_le_bytes();
    i32, I32, 4, true, |value| value.to_le_bytes();
    i64, I64, 8, true, |value| value.to_le_bytes();
    i128, I128, 16, true, |value| value.to_le_bytes();
    isize, Isize, 8, WIDE, |value| (value as i64).to_le_bytes();
    f32, F32, 4, true, |value| value.to_le_bytes();
    f64, F64, 8, true, |value| value.to_le_bytes();
    bool, Bool, 1, true, |value| [u8::from(value)];
    char, Char, 4, true, |value| u32::from(value).to_le_bytes();
}
