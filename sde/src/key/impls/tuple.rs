//! Tuples of up to twelve values, and the unit.

use crate::key::tag::item;
use crate::key::{Encoder, Fingerprint, FingerprintError, Shape, Short};

impl Fingerprint for () {
    #[inline]
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.unit();
        Ok(())
    }

    fn describe(&self, out: &mut Short) {
        out.show("()");
    }

    fn shape(to: &mut Shape<'_>) {
        to.tag(item::UNIT);
    }
}

macro_rules! tuples {
    ($($count:literal: $($type:ident $index:tt),*;)*) => {$(
        impl<$($type: Fingerprint),*> Fingerprint for ($($type,)*) {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                let items = to.begin(item::TUPLE);
                to.byte($count);
                $(
                    if let Err(error) = to.value(&self.$index) {
                        return Err(error.in_field(stringify!($index)));
                    }
                )*
                to.end(items);
                Ok(())
            }

            fn describe(&self, out: &mut Short) {
                let parts: [&dyn Fingerprint; $count] = [$(&self.$index),*];
                out.show('(');
                out.list(parts);
                out.show(')');
            }

            fn shape(to: &mut Shape<'_>) {
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
