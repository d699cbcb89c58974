//! `Option` and `Result`.

use crate::key::items::Fields;
use crate::key::tag::{INLINE_LIMIT, item};
use crate::key::{Encoder, Fingerprint, FingerprintError, Short, TypeWriter};

impl<T: Fingerprint> Fingerprint for Option<T> {
    #[inline]
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.item(|parts| put_option(self, parts))
    }

    #[inline]
    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        // The option adds one byte to a short value.
        if T::bound() < INLINE_LIMIT {
            let mut parts = Fields::new(at, to);
            put_option(self, &mut parts)?;
            return Ok(parts.at());
        }
        to.node_at(at, |to| self.fingerprint(to))
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

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::SOME);
        T::shape(to);
    }
}

#[inline]
fn put_option<T: Fingerprint>(
    option: &Option<T>,
    parts: &mut Fields<'_, '_>,
) -> Result<(), FingerprintError> {
    match option {
        Some(value) => {
            parts.bytes([item::SOME]);
            parts.part(value)
        }
        None => {
            parts.bytes([item::NONE]);
            parts.with_shape(T::shape);
            Ok(())
        }
    }
}

impl<T: Fingerprint, E: Fingerprint> Fingerprint for Result<T, E> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        match self {
            Ok(value) => to.item(|parts| {
                parts.bytes([item::OK]);
                parts.with_shape(E::shape);
                parts.part(value)
            }),
            Err(error) => to.item(|parts| {
                parts.bytes([item::ERR]);
                parts.with_shape(T::shape);
                parts.part(error)
            }),
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

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::OK);
        T::shape(to);
        E::shape(to);
    }
}
