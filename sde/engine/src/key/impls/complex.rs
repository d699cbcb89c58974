//! Complex numbers: scalars like the floats, real part first.

use num_complex::Complex;

use crate::key::bounded::{put, write_node};
use crate::key::{Encoder, Fingerprint, FingerprintError, ScalarKind, Shape, Short};

macro_rules! complex {
    ($($float:ty, $tag:ident, $size:literal;)*) => {$(
        impl Fingerprint for Complex<$float> {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.bounded_item(self);
                Ok(())
            }

            fn describe(&self, out: &mut Short) {
                out.show(self);
            }

            fn shape(to: &mut Shape<'_, '_>) {
                to.tag(ScalarKind::$tag as u8);
            }

            #[inline]
            fn bound() -> usize {
                1 + 2 * $size
            }

            #[inline]
            fn put_bounded(&self, room: &mut [u8], at: usize) -> usize {
                let at = put(room, at, [ScalarKind::$tag as u8]);
                let at = put::<$size>(room, at, self.re.to_le_bytes());
                put::<$size>(room, at, self.im.to_le_bytes())
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
                cfg!(target_endian = "little").then(|| bytemuck::cast_slice(items))
            }
        }
    )*};
}

complex! {
    f32, C32, 4;
    f64, C64, 8;
}
