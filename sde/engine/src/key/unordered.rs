//! Maps and sets, whose order of iteration is not part of their identity.
//!
//! Each element is encoded by itself, at most 1 KiB (longer ones by digest), and the encodings are
//! written in the order of their bytes. That needs memory for all of them at once.

use super::encoder::Encoder;
use super::error::FingerprintError;
use super::fingerprint::Fingerprint;
use super::items::Fields;
use super::shape::TypeWriter;
use super::short::describe;
use super::tag::item;
use super::volatile::Volatile;

/// The encodings of the elements, in the order of arrival.
#[derive(Default)]
pub(crate) struct Unordered {
    bytes: Vec<u8>,
    /// Where each element lies.
    spans: Vec<(usize, usize)>,
    scratch: Vec<u8>,
    volatile: Option<Box<Volatile>>,
}

impl Unordered {
    pub(crate) fn add(
        &mut self,
        write: impl FnOnce(&mut Encoder<'_>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        let mut to = Encoder::new(&mut self.scratch);
        write(&mut to)?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(to.finish()?);
        if let Some(noted) = to.take_volatile() {
            self.volatile.get_or_insert_default().add(&noted);
        }
        self.spans.push((start, self.bytes.len()));
        Ok(())
    }

    pub(crate) fn write(mut self, to: &mut Fields<'_, '_>) {
        let bytes = &self.bytes;
        self.spans
            .sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        to.add_volatile(self.volatile.take());
        to.varint(self.spans.len() as u64);
        for (start, end) in self.spans {
            to.slice(&bytes[start..end]);
        }
    }
}

impl Encoder<'_> {
    /// Writes a map: the same bytes in whatever order `entries` come.
    ///
    /// Memory: the sum of the encodings, each at most 1 KiB.
    ///
    /// # Errors
    /// The errors of keys and values. The path names a value by the short text of its key.
    pub fn map<'x, K: Fingerprint + 'x, V: Fingerprint + 'x>(
        &mut self,
        entries: impl IntoIterator<Item = (&'x K, &'x V)>,
    ) -> Result<(), FingerprintError> {
        let put = |all: &mut Unordered| {
            entries.into_iter().try_for_each(|(key, value)| {
                all.add(|to| {
                    to.value(key)?;
                    to.value(value)
                        .map_err(|error| error.in_field(&describe(key)))
                })
            })
        };
        let shape = |shape: &mut TypeWriter<'_, '_>| {
            K::shape(shape);
            V::shape(shape);
        };
        self.unordered(item::MAP, put, shape)
    }

    /// Writes a set: the same bytes in whatever order `items` come.
    ///
    /// Memory: the sum of the encodings, each at most 1 KiB.
    ///
    /// # Errors
    /// The errors of the elements.
    pub fn set<'x, T: Fingerprint + 'x>(
        &mut self,
        items: impl IntoIterator<Item = &'x T>,
    ) -> Result<(), FingerprintError> {
        let put = |all: &mut Unordered| {
            let mut items = items.into_iter();
            items.try_for_each(|value| all.add(|to| to.value(value)))
        };
        self.unordered(item::SET, put, T::shape)
    }

    /// Writes the elements that `put` adds, or the shape of their type if there are none.
    fn unordered(
        &mut self,
        tag: u8,
        put: impl FnOnce(&mut Unordered) -> Result<(), FingerprintError>,
        shape: impl FnOnce(&mut TypeWriter<'_, '_>),
    ) -> Result<(), FingerprintError> {
        self.item(|parts| {
            parts.bytes([tag]);
            let mut all = Unordered::default();
            put(&mut all)?;
            let is_empty = all.spans.is_empty();
            all.write(parts);
            if is_empty {
                parts.with_shape(shape);
            }
            Ok(())
        })
    }
}
