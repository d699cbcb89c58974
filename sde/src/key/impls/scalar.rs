//! Numbers, `bool` and `char`.

use crate::key::{Encoder, Fingerprint, FingerprintError, Scalar, Shape, Short};

macro_rules! scalars {
    ($($type:ty, $writer:ident, $tag:ident, $native:expr, |$value:ident| $bytes:expr;)*) => {$(
        impl Fingerprint for $type {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.$writer(*self);
                Ok(())
            }

            fn describe(&self, out: &mut Short) {
                out.show(format_args!("{self:?}"));
            }

            fn shape(to: &mut Shape<'_>) {
                to.tag(Scalar::$tag as u8);
            }

            #[inline]
            fn scalar() -> Option<Scalar> {
                Some(Scalar::$tag)
            }

            #[inline]
            fn put_scalar(&self, to: &mut Vec<u8>) {
                let $value = *self;
                to.extend_from_slice(&$bytes);
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
    u8, u8, U8, true, |value| value.to_le_bytes();
    u16, u16, U16, true, |value| value.to_le_bytes();
    u32, u32, U32, true, |value| value.to_le_bytes();
    u64, u64, U64, true, |value| value.to_le_bytes();
    u128, u128, U128, true, |value| value.to_le_bytes();
    usize, usize, Usize, WIDE, |value| (value as u64).to_le_bytes();
    i8, i8, I8, true, |value| value.to_le_bytes();
    i16, i16, I16, true, |value| value.to_le_bytes();
    i32, i32, I32, true, |value| value.to_le_bytes();
    i64, i64, I64, true, |value| value.to_le_bytes();
    i128, i128, I128, true, |value| value.to_le_bytes();
    isize, isize, Isize, WIDE, |value| (value as i64).to_le_bytes();
    f32, f32, F32, true, |value| value.to_le_bytes();
    f64, f64, F64, true, |value| value.to_le_bytes();
    bool, bool, Bool, true, |value| [u8::from(value)];
    char, char, Char, true, |value| u32::from(value).to_le_bytes();
}
