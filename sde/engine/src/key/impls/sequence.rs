//! Sequences. The container does not enter the key: a slice, an array, a `Vec` and a `VecDeque` of equal elements are
//! the same input.

use std::collections::VecDeque;

use crate::key::shape::TypeShape;
use crate::key::tag::item;
use crate::key::{Encoder, Fingerprint, FingerprintError, Short, TypeWriter};

fn describe_sequence<'x, T: Fingerprint + 'x>(
    length: usize,
    items: impl IntoIterator<Item = &'x T>,
    out: &mut Short,
) {
    out.show('[');
    out.type_name::<T>();
    out.show("; ");
    out.show(length);
    out.show(']');
    if length > 0 {
        out.show(' ');
        out.list(items);
    }
}

impl<T: Fingerprint> Fingerprint for [T] {
    #[inline]
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.slice(self)
    }

    #[inline]
    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        to.slice_node_at(at, self)
    }

    fn describe(&self, out: &mut Short) {
        describe_sequence(self.len(), self, out);
    }
}

impl<T: Fingerprint> TypeShape for [T] {
    fn type_shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::SEQUENCE);
        T::shape(to);
    }
}

impl<T: Fingerprint, const N: usize> Fingerprint for [T; N] {
    #[inline]
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.slice(self)
    }

    #[inline]
    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        to.slice_node_at(at, self)
    }

    fn describe(&self, out: &mut Short) {
        self.as_slice().describe(out);
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        <[T]>::type_shape(to);
    }
}

impl<T: Fingerprint> Fingerprint for VecDeque<T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        match self.as_slices() {
            (all, []) => to.slice(all),
            _ => to.elements(self.len(), self),
        }
    }

    fn describe(&self, out: &mut Short) {
        describe_sequence(self.len(), self, out);
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        <[T]>::type_shape(to);
    }
}
