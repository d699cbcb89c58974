//! Maps and sets, independent of the order of iteration. A `HashMap` and a `BTreeMap` of the same
//! entries are the same input, and so are the sets.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::key::tag::item;
use crate::key::{Encoder, Fingerprint, FingerprintError, Short, TypeWriter};

macro_rules! maps {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<K: Fingerprint, V: Fingerprint, $($generics)*> Fingerprint for $type {
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.map(self)
            }

            fn describe(&self, out: &mut Short) {
                out.show("{map of ");
                out.show(self.len());
                out.show('}');
            }

            fn shape(to: &mut TypeWriter<'_, '_>) {
                to.tag(item::MAP);
                K::shape(to);
                V::shape(to);
            }
        }
    )*};
}

macro_rules! sets {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<T: Fingerprint, $($generics)*> Fingerprint for $type {
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.set(self)
            }

            fn describe(&self, out: &mut Short) {
                out.show("{set of ");
                out.show(self.len());
                out.show('}');
            }

            fn shape(to: &mut TypeWriter<'_, '_>) {
                to.tag(item::SET);
                T::shape(to);
            }
        }
    )*};
}

maps! {
    [S] HashMap<K, V, S>;
    [] BTreeMap<K, V>;
}

sets! {
    [S] HashSet<T, S>;
    [] BTreeSet<T>;
}
