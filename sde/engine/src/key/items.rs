//! The items that a value is written as: scalars, texts, structures.

use super::encoder::Encoder;
use super::error::FingerprintError;
use super::fingerprint::Fingerprint;
use super::scalar::ScalarKind;
use super::shape::TypeWriter;
use super::tag::item;
use super::volatile::Volatile;

macro_rules! scalar_writers {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Encoder<'_> {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&mut self, value: $name) {
                    self.bounded_item(&value);
                }
            )*
        }
    };
}

scalar_writers! {
    /// Writes a `u8`.
    u8;
    /// Writes a `u16`.
    u16;
    /// Writes a `u32`.
    u32;
    /// Writes a `u64`.
    u64;
    /// Writes a `u128`.
    u128;
    /// Writes a `usize`, in eight bytes on every target. It differs from a `u64` by its tag.
    usize;
    /// Writes an `i8`.
    i8;
    /// Writes an `i16`.
    i16;
    /// Writes an `i32`.
    i32;
    /// Writes an `i64`.
    i64;
    /// Writes an `i128`.
    i128;
    /// Writes an `isize`, in eight bytes on every target. It differs from an `i64` by its tag.
    isize;
    /// Writes an `f32` by its bits: a NaN equals itself, 0.0 and -0.0 differ.
    f32;
    /// Writes an `f64` by its bits: a NaN equals itself, 0.0 and -0.0 differ.
    f64;
    /// Writes a `bool`.
    bool;
    /// Writes a `char`.
    char;
}

impl<'b> Encoder<'b> {
    /// Writes the absence of anything.
    #[inline]
    pub fn unit(&mut self) {
        self.fixed([item::UNIT]);
    }

    /// Writes a text.
    #[inline]
    pub fn str(&mut self, value: &str) {
        self.framed(item::TEXT, value.as_bytes());
    }

    /// Writes bytes, as a slice of `u8` would be.
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        self.plain_item(|parts| parts.scalars(ScalarKind::U8, value.len(), value));
    }

    /// A whole item: tag, length, content.
    #[inline]
    pub(crate) fn framed(&mut self, tag: u8, content: &[u8]) {
        self.plain_item(|parts| parts.framed(tag, content));
    }

    /// A whole item of fixed size: tag and content.
    #[inline]
    pub(crate) fn fixed<const N: usize>(&mut self, tag_and_content: [u8; N]) {
        self.plain_item(|parts| parts.bytes(tag_and_content));
    }

    /// Writes a structure: the name of its type, then the fields that `write` gives, in its order.
    ///
    /// ```
    /// use sde::key::with_encoder;
    /// let metres = with_encoder(|to| {
    ///     to.structure("Metres", |fields| fields.field("0", &2.0_f64))?;
    ///     to.digest()
    /// })?;
    /// # Ok::<(), sde::key::FingerprintError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the fields.
    #[inline]
    pub fn structure(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Fields<'_, 'b>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        self.item(|fields| {
            fields.bytes([item::STRUCTURE]);
            fields.with_shape(|shape| shape.declared(name, 0));
            fields.until_end(write)
        })
    }

    /// Writes a structure of type `T`, whose declared name and type arguments come from
    /// [`Fingerprint::shape`]. The derive macro uses it.
    ///
    /// # Errors
    /// The errors of the fields.
    #[inline]
    pub fn structure_of<T: Fingerprint>(
        &mut self,
        write: impl FnOnce(&mut Fields<'_, 'b>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        self.item(|fields| {
            fields.bytes([item::STRUCTURE]);
            fields.with_shape(T::shape);
            fields.until_end(write)
        })
    }

    /// Writes a value of an enum of type `T`: its type, the name of the variant, its fields.
    ///
    /// # Errors
    /// The errors of the fields.
    #[inline]
    pub fn variant_of<T: Fingerprint>(
        &mut self,
        variant: &str,
        write: impl FnOnce(&mut Fields<'_, 'b>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        self.item(|fields| {
            fields.bytes([item::VARIANT]);
            fields.with_shape(T::shape);
            fields.text(variant.as_bytes());
            fields.until_end(write)
        })
    }
}

/// Receives the parts of an item: the fields of a structure.
///
/// All parts together count as one item of the value.
#[derive(Debug)]
pub struct Fields<'e, 'b> {
    to: &'e mut Encoder<'b>,
    /// The end of the encoding.
    at: usize,
}

impl<'e, 'b> Fields<'e, 'b> {
    #[inline]
    pub(crate) fn new(at: usize, to: &'e mut Encoder<'b>) -> Self {
        Self { to, at }
    }

    /// Begins an item that is written in several steps; [`close`](Fields::close) ends it.
    pub(crate) fn open(to: &'e mut Encoder<'b>) -> Self {
        to.plain_item(|_| ());
        Self::new(to.length, to)
    }

    pub(crate) fn close(self) {
        self.to.length = self.at;
    }

    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Writes a field: its name and its value.
    ///
    /// # Errors
    /// The errors of the value, with the name in the path.
    #[inline]
    pub fn field<T: Fingerprint + ?Sized>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        self.field_name(name);
        match self.part(value) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.in_field(name)),
        }
    }

    /// Writes one more than the length, so that no name begins like the end of the fields; then the name.
    #[inline]
    pub(crate) fn field_name(&mut self, name: &str) {
        self.varint(name.len() as u64 + 1);
        self.slice(name.as_bytes());
    }

    /// A value, as a node.
    #[inline]
    pub(crate) fn part<T: Fingerprint + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<(), FingerprintError> {
        self.at = value.write_node(self.to, self.at)?;
        Ok(())
    }

    /// Takes over the notes of another encoder, whose bytes are written here.
    #[inline]
    pub(crate) fn add_volatile(&mut self, noted: Option<Box<Volatile>>) {
        self.to.add_volatile(noted);
    }

    /// A value of bounded size, as a node.
    #[inline]
    pub(crate) fn bounded<T: Fingerprint>(&mut self, value: &T) {
        self.at = self.to.bounded_at(self.at, value);
    }

    /// Runs `write` as a node.
    #[inline]
    pub(crate) fn node(
        &mut self,
        write: impl FnOnce(&mut Encoder<'b>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        self.at = self.to.node_at(self.at, write)?;
        Ok(())
    }

    /// The fields that `write` writes, and their end.
    #[inline]
    pub(crate) fn until_end(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        write(self)?;
        self.bytes([item::END]);
        Ok(())
    }

    #[inline]
    pub(crate) fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.at = self.to.put_at(self.at, bytes);
    }

    #[inline]
    pub(crate) fn slice(&mut self, bytes: &[u8]) {
        self.at = self.to.slice_at(self.at, bytes);
    }

    #[inline]
    pub(crate) fn varint(&mut self, value: u64) {
        self.at = self.to.varint_at(self.at, value);
    }

    /// Length and bytes.
    #[inline]
    pub(crate) fn text(&mut self, content: &[u8]) {
        self.varint(content.len() as u64);
        self.slice(content);
    }

    /// Tag, length and bytes.
    #[inline]
    pub(crate) fn framed(&mut self, tag: u8, content: &[u8]) {
        self.at = self.to.framed_at(self.at, tag, content);
    }

    /// A whole item: scalars that lie in memory as they are encoded.
    #[inline]
    pub(crate) fn scalars(&mut self, scalar: ScalarKind, count: usize, bytes: &[u8]) {
        self.bytes([item::SCALARS, scalar as u8]);
        self.varint(count as u64);
        self.slice(bytes);
    }

    /// The shape that `write` writes.
    #[inline]
    pub(crate) fn with_shape(&mut self, write: impl FnOnce(&mut TypeWriter<'_, 'b>)) {
        let mut shape = TypeWriter::new(Fields {
            to: &mut *self.to,
            at: self.at,
        });
        write(&mut shape);
        self.at = shape.at();
    }
}
