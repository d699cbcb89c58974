//! The items that a value is written as: scalars, texts, structures.

use super::encoder::{Encoder, put_varint};
use super::error::FingerprintError;
use super::fingerprint::Fingerprint;
use super::scalar::Scalar;
use super::shape::Shape;
use super::tag::item;

macro_rules! scalar_writers {
    ($($(#[$doc:meta])* $name:ident($type:ty as $wide:ty) = $tag:ident;)*) => {
        impl Encoder<'_> {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&mut self, value: $type) {
                    const SIZE: usize = 1 + size_of::<$wide>();
                    let mut bytes = [0_u8; SIZE];
                    bytes[0] = Scalar::$tag as u8;
                    bytes[1..].copy_from_slice(&(value as $wide).to_le_bytes());
                    self.fixed(bytes);
                }
            )*
        }
    };
}

scalar_writers! {
    /// Writes a `u8`.
    u8(u8 as u8) = U8;
    /// Writes a `u16`.
    u16(u16 as u16) = U16;
    /// Writes a `u32`.
    u32(u32 as u32) = U32;
    /// Writes a `u64`.
    u64(u64 as u64) = U64;
    /// Writes a `u128`.
    u128(u128 as u128) = U128;
    /// Writes a `usize`, in eight bytes on every target. It differs from a `u64` by its tag.
    usize(usize as u64) = Usize;
    /// Writes an `i8`.
    i8(i8 as i8) = I8;
    /// Writes an `i16`.
    i16(i16 as i16) = I16;
    /// Writes an `i32`.
    i32(i32 as i32) = I32;
    /// Writes an `i64`.
    i64(i64 as i64) = I64;
    /// Writes an `i128`.
    i128(i128 as i128) = I128;
    /// Writes an `isize`, in eight bytes on every target. It differs from an `i64` by its tag.
    isize(isize as i64) = Isize;
    /// Writes an `f32` by its bits: a NaN equals itself, 0.0 and -0.0 differ.
    f32(f32 as f32) = F32;
    /// Writes an `f64` by its bits: a NaN equals itself, 0.0 and -0.0 differ.
    f64(f64 as f64) = F64;
}

impl Encoder<'_> {
    /// Writes a `bool`.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.fixed([Scalar::Bool as u8, u8::from(value)]);
    }

    /// Writes a `char`.
    #[inline]
    pub fn char(&mut self, value: char) {
        let [a, b, c, d] = u32::from(value).to_le_bytes();
        self.fixed([Scalar::Char as u8, a, b, c, d]);
    }

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
        self.begin(item::SCALARS);
        self.byte(Scalar::U8 as u8);
        self.varint(value.len() as u64);
        self.raw(value);
        self.keep_small();
    }

    /// A whole item: tag, length, content.
    #[inline]
    pub(crate) fn framed(&mut self, tag: u8, content: &[u8]) {
        self.begin(tag);
        self.varint(content.len() as u64);
        self.raw(content);
        self.keep_small();
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
    /// What the fields say.
    #[inline]
    pub fn structure(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Fields<'_, '_>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        let items = self.begin(item::STRUCTURE);
        Shape::new(self.buffer()).declared(name, 0);
        self.fields(items, write)
    }

    /// Writes a structure of type `T`, whose declared name and type arguments come from
    /// [`Fingerprint::shape`]. The derive macro uses it.
    ///
    /// # Errors
    /// What the fields say.
    #[inline]
    pub fn structure_of<T: Fingerprint>(
        &mut self,
        write: impl FnOnce(&mut Fields<'_, '_>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        let items = self.begin(item::STRUCTURE);
        T::shape(&mut Shape::new(self.buffer()));
        self.fields(items, write)
    }

    /// Writes a value of an enum of type `T`: its type, the name of the variant, its fields.
    ///
    /// # Errors
    /// What the fields say.
    #[inline]
    pub fn variant_of<T: Fingerprint>(
        &mut self,
        variant: &str,
        write: impl FnOnce(&mut Fields<'_, '_>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        let items = self.begin(item::VARIANT);
        T::shape(&mut Shape::new(self.buffer()));
        self.text_body(variant);
        self.fields(items, write)
    }

    /// The fields of a structure and their end.
    #[inline]
    pub(crate) fn fields(
        &mut self,
        items: usize,
        write: impl FnOnce(&mut Fields<'_, '_>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        let done = write(&mut Fields { to: self });
        self.byte(item::END);
        self.end(items);
        done
    }

    /// A tagged item around one value.
    #[inline]
    pub(crate) fn holder<T: Fingerprint + ?Sized>(
        &mut self,
        tag: u8,
        value: &T,
    ) -> Result<(), FingerprintError> {
        let items = self.begin(tag);
        let done = self.value(value);
        self.end(items);
        done
    }

    /// Writes the shape of `T` inside an item.
    #[inline]
    pub(crate) fn shape_of<T: Fingerprint>(&mut self) {
        T::shape(&mut Shape::new(self.buffer()));
    }
}

/// Receives the fields of a structure.
pub struct Fields<'e, 'b> {
    to: &'e mut Encoder<'b>,
}

impl Fields<'_, '_> {
    /// Writes a field: its name and its value.
    ///
    /// # Errors
    /// What the value says, with the name in the path.
    #[inline]
    pub fn field<T: Fingerprint + ?Sized>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        self.name(name);
        match self.to.value(value) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.in_field(name)),
        }
    }

    /// One more than the length, so that no name begins like the end of the fields.
    #[inline]
    fn name(&mut self, name: &str) {
        put_varint(self.to.buffer(), name.len() as u64 + 1);
        self.to.raw(name.as_bytes());
    }
}
