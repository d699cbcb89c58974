//! n-dimensional arrays: shape, then the elements in logical order. Memory layout, ownership and views do not enter the
//! key.

use ndarray::{ArrayBase, Data, Dimension, RawData};

use crate::key::tag::item;
use crate::key::{Encoder, Fingerprint, FingerprintError, Short, TypeWriter};

impl<A, S, D> Fingerprint for ArrayBase<S, D>
where
    A: Fingerprint,
    S: RawData<Elem = A> + Data,
    D: Dimension,
{
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.array(self.shape(), |parts| {
            parts.node(|to| match self.as_slice() {
                Some(elements) => to.slice(elements),
                None => to.elements(self.len(), self),
            })
        })
    }

    fn describe(&self, out: &mut Short) {
        out.show('[');
        out.type_name::<A>();
        for (axis, length) in self.shape().iter().enumerate() {
            out.show(if axis == 0 { "; " } else { " x " });
            out.show(length);
        }
        out.show(']');
        if !self.is_empty() {
            out.show(' ');
            out.list(self);
        }
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::ARRAY);
        A::shape(to);
    }
}
