//! Sequences: scalars as one block of bytes, everything else value by value.
//!
//! Which of the two it is depends on the element's type alone, also through handles, so that a list
//! of `f64` and a list of shared `f64` are written alike.

use super::encoder::Encoder;
use super::error::{FingerprintError, FingerprintErrorKind};
use super::fingerprint::Fingerprint;
use super::tag::item;

impl Encoder<'_> {
    /// Writes a sequence that lies in memory. Numbers are hashed from where they lie.
    ///
    /// # Errors
    /// What the elements say, with the index in the path.
    #[inline]
    pub fn slice<T: Fingerprint>(&mut self, items: &[T]) -> Result<(), FingerprintError> {
        if let (Some(scalar), Some(bytes)) = (T::scalar(), T::scalar_bytes(items)) {
            self.begin(item::SCALARS);
            self.byte(scalar as u8);
            self.varint(items.len() as u64);
            self.raw(bytes);
            self.keep_small();
            return Ok(());
        }
        self.elements(items.len(), items)
    }

    /// Writes a sequence element by element: the same bytes as [`slice`](Encoder::slice) writes.
    ///
    /// # Errors
    /// What the elements say, with the index in the path; [`FingerprintErrorKind::Count`] when
    /// `items` does not give `length` elements.
    pub fn elements<'x, T: Fingerprint + 'x>(
        &mut self,
        length: usize,
        items: impl IntoIterator<Item = &'x T>,
    ) -> Result<(), FingerprintError> {
        let count = match T::scalar() {
            Some(scalar) => {
                self.begin(item::SCALARS);
                self.byte(scalar as u8);
                self.varint(length as u64);
                self.scalars(items)
            }
            None => {
                let outer = self.begin(item::SEQUENCE);
                self.varint(length as u64);
                if length == 0 {
                    self.shape_of::<T>();
                }
                let count = self.values(items)?;
                self.end(outer);
                count
            }
        };
        if count == length {
            return Ok(());
        }
        self.fail();
        Err(FingerprintErrorKind::Count {
            declared: length,
            found: count,
        }
        .into())
    }

    fn scalars<'x, T: Fingerprint + 'x>(
        &mut self,
        items: impl IntoIterator<Item = &'x T>,
    ) -> usize {
        let mut count = 0;
        for value in items {
            value.put_scalar(self.buffer());
            self.keep_small();
            count += 1;
        }
        count
    }

    fn values<'x, T: Fingerprint + 'x>(
        &mut self,
        items: impl IntoIterator<Item = &'x T>,
    ) -> Result<usize, FingerprintError> {
        let mut count = 0;
        for value in items {
            if let Err(error) = self.value(value) {
                return Err(error.in_element(count));
            }
            count += 1;
        }
        Ok(count)
    }
}
