//! Pointers and owners are transparent: `Box<T>`, `Arc<T>` and `&T` are the `T` they lead to, a `String` is its text, a
//! `Vec` its slice.

use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::key::bounded::same_as;
use crate::key::shape::TypeShape;
use crate::key::{Encoder, Fingerprint, FingerprintError, Short};

macro_rules! transparent {
    ($($(#[$doc:meta])* [$($generics:tt)*] $pointer:ty => $target:ty;)*) => {$(
        $(#[$doc])*
        impl<$($generics)*> Fingerprint for $pointer {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                (**self).fingerprint(to)
            }

            #[inline]
            fn write_node(
                &self,
                to: &mut Encoder<'_>,
                at: usize,
            ) -> Result<usize, FingerprintError> {
                (**self).write_node(to, at)
            }

            fn describe(&self, out: &mut Short) {
                (**self).describe(out);
            }

            same_as!($target);
        }
    )*};
}

transparent! {
    ['a, T: Fingerprint + TypeShape + ?Sized] &'a T => T;
    ['a, T: Fingerprint + TypeShape + ?Sized] &'a mut T => T;
    [T: Fingerprint + TypeShape + ?Sized] Box<T> => T;
    [T: Fingerprint + TypeShape + ?Sized] Arc<T> => T;
    ['a, T: Fingerprint + TypeShape + ToOwned + ?Sized] Cow<'a, T> => T;
    [T: Fingerprint] Vec<T> => [T];
    [] String => str;
    [] OsString => OsStr;
    [] CString => CStr;
    /// As a [`Path`], which is a **name**: the file's content is not part of the key.
    [] PathBuf => Path;
}
