//! Tuples of up to twelve values, and the unit.

use crate::key::bounded::{put, write_node};
use crate::key::tag::item;
use crate::key::{Encoder, Fingerprint, FingerprintError, Short, TypeWriter};

impl Fingerprint for () {
    #[inline]
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.unit();
        Ok(())
    }

    fn describe(&self, out: &mut Short) {
        out.show("()");
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::UNIT);
    }
}

macro_rules! tuples {
    ($($count:literal: $($type:ident $index:tt),*;)*) => {$(
        impl<$($type: Fingerprint),*> Fingerprint for ($($type,)*) {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.item(|parts| {
                    parts.bytes([item::TUPLE, $count]);
                    $(
                        if let Err(error) = parts.part(&self.$index) {
                            return Err(error.in_field(stringify!($index)));
                        }
                    )*
                    Ok(())
                })
            }

            #[inline]
            fn bound() -> usize {
                2_usize$(.saturating_add($type::bound()))*
            }

            #[inline]
            fn put_bounded(&self, room: &mut [u8], at: usize) -> usize {
                let at = put(room, at, [item::TUPLE, $count]);
                $(let at = self.$index.put_bounded(room, at);)*
                at
            }

            #[inline]
            fn write_node(
                &self,
                to: &mut Encoder<'_>,
                at: usize,
            ) -> Result<usize, FingerprintError> {
                write_node(self, to, at)
            }

            fn describe(&self, out: &mut Short) {
                let parts: [&dyn Fingerprint; $count] = [$(&self.$index),*];
                out.show('(');
                out.list(parts);
                out.show(')');
            }

            fn shape(to: &mut TypeWriter<'_, '_>) {
                to.tag(item::TUPLE);
                to.tag($count);
                $($type::shape(to);)*
            }
        }
    )*};
}

tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
    9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8;
    10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9;
    11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10;
    12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11;
}
