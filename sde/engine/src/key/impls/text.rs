//! Texts and names.

use std::ffi::{CStr, OsStr};
use std::path::Path;

use crate::key::shape::TypeShape;
use crate::key::tag::item;
use crate::key::{Encoder, Fingerprint, FingerprintError, SCALAR_TEXT, Scalar, Short, TypeWriter};

macro_rules! text {
    ($(#[$doc:meta])* $tag:ident: $type:ty, |$value:ident| $bytes:expr, |$shown:ident, $out:ident| $describe:expr
        $(, |$held:ident| $scalar:expr)?) => {
        $(#[$doc])*
        impl Fingerprint for $type {
            #[inline]
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                let $value = self;
                to.framed(item::$tag, $bytes);
                Ok(())
            }

            #[inline]
            fn write_node(
                &self,
                to: &mut Encoder<'_>,
                at: usize,
            ) -> Result<usize, FingerprintError> {
                let $value = self;
                Ok(to.framed_node_at(at, item::$tag, $bytes))
            }

            fn describe(&self, $out: &mut Short) {
                let $shown = self;
                $describe
            }

            $(fn to_scalar(&self) -> Option<Scalar> {
                let $held = self;
                $scalar
            })?
        }

        impl TypeShape for $type {
            fn type_shape(to: &mut TypeWriter<'_, '_>) {
                to.tag(item::$tag);
            }
        }
    };
}

text!(TEXT: str, |text| text.as_bytes(), |text, out| out.quoted(text),
    |text| (text.len() <= SCALAR_TEXT).then(|| Scalar::Text(text.into())));
text!(OS_TEXT: OsStr, |text| text.as_encoded_bytes(), |text, out| out.quoted(&text.to_string_lossy()));
text!(C_TEXT: CStr, |text| text.to_bytes(), |text, out| out.quoted(&text.to_string_lossy()));
text!(
    /// A path is a **name**: the file's content is not part of the key, and a run that reads it finds its old result
    /// after the file was edited. [`InputFile`](crate::key::InputFile) takes the content instead.
    PATH: Path, |path| path.as_os_str().as_encoded_bytes(), |path, out| {
        out.show("path ");
        out.quoted(&path.to_string_lossy());
    }
);
