//! Sequences: scalars as one block of bytes, everything else value by value.
//!
//! The choice depends on the element's type alone, also through handles, so that a list of `f64` and a list of shared
//! `f64` are written alike.

use super::encoder::Encoder;
use super::error::{FingerprintError, FingerprintErrorKind};
use super::fingerprint::Fingerprint;
use super::items::Fields;
use super::tag::{INLINE_LIMIT, item};

/// The most bytes around the content of a sequence: tags and a count.
const FRAME: usize = 12;

impl<'b> Encoder<'b> {
    /// Writes a sequence that lies in memory. Numbers are hashed from where they lie.
    ///
    /// # Errors
    /// The errors of the elements, with the index in the path.
    #[inline]
    pub fn slice<T: Fingerprint>(&mut self, items: &[T]) -> Result<(), FingerprintError> {
        match (T::scalar(), T::scalar_bytes(items)) {
            (Some(scalar), Some(bytes)) => {
                self.plain_item(|parts| parts.scalars(scalar, items.len(), bytes));
                Ok(())
            }
            _ => self.elements(items.len(), items),
        }
    }

    /// Writes a sequence element by element: the same bytes as [`slice`](Encoder::slice) writes.
    ///
    /// # Errors
    /// The errors of the elements, with the index in the path; [`FingerprintErrorKind::Count`] when `items` does not
    /// give `length` elements.
    pub fn elements<'x, T: Fingerprint + 'x>(
        &mut self,
        length: usize,
        items: impl IntoIterator<Item = &'x T>,
    ) -> Result<(), FingerprintError> {
        self.item(|parts| {
            let count = match T::scalar() {
                Some(scalar) => {
                    parts.scalars(scalar, length, &[]);
                    put_scalars(parts, items)
                }
                None => {
                    parts.bytes([item::SEQUENCE]);
                    parts.varint(length as u64);
                    if length == 0 {
                        parts.with_shape(T::shape);
                    }
                    put_values(parts, items)?
                }
            };
            if count == length {
                return Ok(());
            }
            Err(FingerprintErrorKind::Count {
                declared: length,
                found: count,
            }
            .into())
        })
    }

    /// Writes an array of these lengths, whose elements `write` writes as a sequence in logical order.
    pub(crate) fn array(
        &mut self,
        lengths: &[usize],
        write: impl FnOnce(&mut Fields<'_, 'b>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        self.item(|parts| {
            parts.bytes([item::ARRAY]);
            parts.varint(lengths.len() as u64);
            for length in lengths {
                parts.varint(*length as u64);
            }
            write(parts)
        })
    }

    /// Writes a sequence as a node at `at`, without the opening and closing where it is short.
    #[inline]
    pub(crate) fn slice_node_at<T: Fingerprint>(
        &mut self,
        at: usize,
        items: &[T],
    ) -> Result<usize, FingerprintError> {
        if let (Some(scalar), Some(bytes)) = (T::scalar(), T::scalar_bytes(items))
            && bytes.len() <= INLINE_LIMIT - FRAME
        {
            let mut parts = Fields::new(at, self);
            parts.scalars(scalar, items.len(), bytes);
            return Ok(parts.at());
        }
        self.node_at(at, |to| to.slice(items))
    }
}

/// Scalars that lie apart are gathered here before they are written.
const GATHER: usize = 2048;

fn put_scalars<'x, T: Fingerprint + 'x>(
    parts: &mut Fields<'_, '_>,
    items: impl IntoIterator<Item = &'x T>,
) -> usize {
    let mut count = 0;
    let mut gathered = Vec::new();
    let mut one = [0; 32];
    for value in items {
        // The first byte is the tag, which stands once for all.
        let end = value.put_bounded(&mut one, 0);
        gathered.extend_from_slice(one.get(1..end).unwrap_or_default());
        if gathered.len() >= GATHER {
            parts.slice(&gathered);
            gathered.clear();
        }
        count += 1;
    }
    parts.slice(&gathered);
    count
}

fn put_values<'x, T: Fingerprint + 'x>(
    parts: &mut Fields<'_, '_>,
    items: impl IntoIterator<Item = &'x T>,
) -> Result<usize, FingerprintError> {
    let mut count = 0;
    for value in items {
        if let Err(error) = parts.part(value) {
            return Err(error.in_element(count));
        }
        count += 1;
    }
    Ok(count)
}
