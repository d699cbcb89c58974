//! Pointers are transparent: `Box<T>`, `Arc<T>` and `&T` are the `T` they lead to.

use std::borrow::Cow;
use std::sync::Arc;

use crate::key::shape::TypeShape;
use crate::key::{Encoder, Fingerprint, FingerprintError, Scalar, Shape, Short};

macro_rules! transparent {
    ($([$($generics:tt)*] $pointer:ty => $target:ty;)*) => {$(
        impl<$($generics)*> Fingerprint for $pointer {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                (**self).fingerprint(to)
            }

            fn describe(&self, out: &mut Short) {
                (**self).describe(out);
            }

            fn shape(to: &mut Shape<'_>) {
                <$target as TypeShape>::type_shape(to);
            }

            #[inline]
            fn scalar() -> Option<Scalar> {
                <$target as TypeShape>::type_scalar()
            }

            #[inline]
            fn put_scalar(&self, to: &mut Vec<u8>) {
                (**self).put_scalar(to);
            }
        }
    )*};
}

transparent! {
    ['a, T: Fingerprint + TypeShape + ?Sized] &'a T => T;
    ['a, T: Fingerprint + TypeShape + ?Sized] &'a mut T => T;
    [T: Fingerprint + TypeShape + ?Sized] Box<T> => T;
    [T: Fingerprint + TypeShape + ?Sized] Arc<T> => T;
    ['a, T: Fingerprint + TypeShape + ToOwned + ?Sized] Cow<'a, T> => T;
}
