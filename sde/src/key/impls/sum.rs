//! `Option` and `Result`.

use crate::key::tag::item;
use crate::key::{Encoder, Fingerprint, FingerprintError, Shape, Short};

impl<T: Fingerprint> Fingerprint for Option<T> {
    #[inline]
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        match self {
            Some(value) => to.holder(item::SOME, value),
            None => {
                to.begin(item::NONE);
                to.shape_of::<T>();
                Ok(())
            }
        }
    }

    fn describe(&self, out: &mut Short) {
        match self {
            Some(value) => {
                out.show("Some(");
                value.describe(out);
                out.show(')');
            }
            None => out.show("None"),
        }
    }

    fn shape(to: &mut Shape<'_>) {
        to.tag(item::SOME);
        T::shape(to);
    }
}

impl<T: Fingerprint, E: Fingerprint> Fingerprint for Result<T, E> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        match self {
            Ok(value) => {
                let items = to.begin(item::OK);
                to.shape_of::<E>();
                let done = to.value(value);
                to.end(items);
                done
            }
            Err(error) => {
                let items = to.begin(item::ERR);
                to.shape_of::<T>();
                let done = to.value(error);
                to.end(items);
                done
            }
        }
    }

    fn describe(&self, out: &mut Short) {
        let (name, value): (_, &dyn Fingerprint) = match self {
            Ok(value) => ("Ok(", value),
            Err(error) => ("Err(", error),
        };
        out.show(name);
        value.describe(out);
        out.show(')');
    }

    fn shape(to: &mut Shape<'_>) {
        to.tag(item::OK);
        T::shape(to);
        E::shape(to);
    }
}
