//! The encoder: turns values into bytes that no two different values share.
//!
//! The bytes of a value are one **item**: a tag byte, lengths, content. Every item says where it
//! ends, so items one after another can be taken apart in one way only.
//!
//! **Nodes.** Each [`Encoder::value`] opens a node and closes it. A node whose bytes are longer
//! than [`INLINE_LIMIT`] is replaced in its holder by a marker, its length and its digest; a
//! shorter one stays as it is. The rule looks at the value alone, not at who holds it, which is
//! why a shared handle that has kept its value's digest gives the bytes that the value would.
//!
//! **Memory.** The bytes of all open nodes lie one after another in one buffer; only the innermost
//! node grows. When it holds more than [`SPILL`] bytes they go into a hasher, since it is certain by
//! then that it will be replaced by its digest. A small value never leaves the buffer, and with a
//! warm buffer nothing is allocated.
//!
//! **Speed.** A hit costs little more than BLAKE3 of a hundred bytes, so writing a number may cost a
//! nanosecond or two. Hence the `_at` methods: the end of what is written is handed from call to
//! call and stays in a register, where a length kept in memory would be stored and read back for
//! each number (the compiler must assume that writing the bytes may have changed it).

use std::fmt;

use super::commitment::Commitment;
use super::digest::Digest;
use super::error::{FingerprintError, FingerprintErrorKind};
use super::fingerprint::Fingerprint;
use super::items::Fields;
use super::spill::digest_of;
use super::tag::{INLINE_LIMIT, item};
use super::volatile::Volatile;

/// Writes values as typed, length-framed bytes.
///
/// A [`Fingerprint`] gets one and writes **itself** to it: one scalar, one text, one
/// [`structure`](Encoder::structure), one [`slice`](Encoder::slice). Parts that are values of their
/// own go through [`value`](Encoder::value), never through `part.fingerprint(to)`: that is where
/// large values are replaced by their digest. A value that writes several items, or none, is framed
/// as a group, so a careless implementation can't make two values alike.
///
/// ```
/// use sde::key::Encoder;
/// let mut buffer = Vec::new();
/// let mut encoder = Encoder::new(&mut buffer);
/// encoder.value(&(2.5_f64, "6-31G*"))?;
/// assert_eq!(encoder.finish()?.len(), 2 + 9 + 8);
/// # Ok::<(), sde::key::FingerprintError>(())
/// ```
pub struct Encoder<'b> {
    /// All initialized; the encoding ends at `length`.
    pub(super) buffer: &'b mut Vec<u8>,
    pub(super) length: usize,
    /// Where the bytes of the innermost open node begin.
    pub(super) start: usize,
    /// How many items the innermost open node has.
    pub(super) items: usize,
    /// The bytes of the innermost open node that have left the buffer.
    pub(super) spilled: Option<Box<blake3::Hasher>>,
    pub(super) is_root: bool,
    pub(super) failed: bool,
    /// Notes of the written values that may change while their holders stay the same.
    pub(super) volatile: Option<Box<Volatile>>,
}

impl fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("length", &self.length)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

impl<'b> Encoder<'b> {
    /// An encoder that uses `buffer` as its space; earlier contents are lost. Reuse the buffer to save allocations, or
    /// let [`with_encoder`](super::with_encoder) do so.
    #[inline]
    pub fn new(buffer: &'b mut Vec<u8>) -> Self {
        Self {
            buffer,
            length: 0,
            start: 0,
            items: 0,
            spilled: None,
            is_root: true,
            failed: false,
            volatile: None,
        }
    }

    /// Writes one value as a node of its own.
    ///
    /// # Errors
    /// The errors of the value's [`Fingerprint`]. The encoder gives no bytes after an error.
    #[inline]
    pub fn value<T: Fingerprint + ?Sized>(&mut self, value: &T) -> Result<(), FingerprintError> {
        self.item(|parts| parts.part(value))
    }

    /// Writes a value with a name: for lists of inputs, whose names are part of the key.
    ///
    /// # Errors
    /// As [`value`](Encoder::value), with the name in the path.
    #[inline]
    pub fn named<T: Fingerprint + ?Sized>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        self.item(|parts| {
            parts.framed(item::NAMED, name.as_bytes());
            match parts.part(value) {
                Ok(()) => Ok(()),
                Err(error) => Err(error.in_field(name)),
            }
        })
    }

    /// Writes a named value as [`named`](Encoder::named) does, with the bytes before the value made by [`name_frame`]
    /// when the program was compiled. Used by the macros.
    ///
    /// # Errors
    /// As [`named`](Encoder::named).
    #[doc(hidden)]
    #[inline(always)]
    pub fn framed_name<const N: usize, T: Fingerprint + ?Sized>(
        &mut self,
        frame: &'static [u8; N],
        name: &'static str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        self.items += 1;
        let at = self.constant_at(self.length, frame);
        match value.write_node(self, at) {
            Ok(end) => {
                self.length = end;
                Ok(())
            }
            Err(error) => {
                self.failed = true;
                Err(error.in_field(name))
            }
        }
    }

    /// Writes a value that was encoded before, as [`value`](Encoder::value) would write it.
    /// Constant time.
    #[inline]
    pub fn commitment(&mut self, commitment: &Commitment) {
        self.items += 1;
        self.length = self.commitment_at(self.length, commitment);
    }

    /// Writes a value that was encoded before, as a node at `at`; gives its end.
    #[inline]
    pub(crate) fn commitment_at(&mut self, at: usize, commitment: &Commitment) -> usize {
        match commitment {
            Commitment::Inline(bytes) => self.slice_at(at, bytes),
            Commitment::Digest { length, digest } => {
                self.collapsed_at(at, item::COLLAPSED, *length, digest)
            }
        }
    }

    /// The bytes of everything written: at most [`INLINE_LIMIT`] bytes, since longer content is
    /// replaced by its marker, length and digest. Call it once, when all is written.
    ///
    /// # Errors
    /// [`FingerprintErrorKind::Abandoned`] when a part failed before: its bytes are incomplete.
    #[inline]
    pub fn finish(&mut self) -> Result<&[u8], FingerprintError> {
        if self.failed {
            return Err(FingerprintErrorKind::Abandoned.into());
        }
        if self.length > INLINE_LIMIT || self.spilled.is_some() {
            self.close();
        }
        Ok(self.buffer.get(..self.length).unwrap_or_default())
    }

    /// The digest of everything written.
    ///
    /// # Errors
    /// As [`finish`](Encoder::finish).
    pub fn digest(&mut self) -> Result<Digest, FingerprintError> {
        self.finish().map(digest_of)
    }

    /// Writes one item of the innermost node: whatever `write` writes counts as one.
    #[inline]
    pub(crate) fn item(
        &mut self,
        write: impl FnOnce(&mut Fields<'_, 'b>) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        let items = self.items + 1;
        let mut parts = Fields::new(self.length, self);
        let done = write(&mut parts);
        self.length = parts.at();
        self.items = items;
        self.failed |= done.is_err();
        done
    }

    /// Writes one item of the innermost node, which cannot fail.
    #[inline]
    pub(crate) fn plain_item(&mut self, write: impl FnOnce(&mut Fields<'_, 'b>)) {
        self.items += 1;
        let mut parts = Fields::new(self.length, self);
        write(&mut parts);
        self.length = parts.at();
    }

    /// Runs `write` as a node that begins at `at`; gives its end.
    #[inline]
    pub(crate) fn node_at(
        &mut self,
        at: usize,
        write: impl FnOnce(&mut Self) -> Result<(), FingerprintError>,
    ) -> Result<usize, FingerprintError> {
        self.length = at;
        let items = self.items;
        let start = std::mem::replace(&mut self.start, at);
        let spilled = self.spilled.take();
        let is_root = std::mem::replace(&mut self.is_root, false);
        self.items = 0;
        let done = write(self);
        if self.length - self.start > INLINE_LIMIT || self.items != 1 || self.spilled.is_some() {
            self.close();
        }
        self.start = start;
        self.items = items;
        self.spilled = spilled;
        self.is_root = is_root;
        self.failed |= done.is_err();
        done.map(|()| self.length)
    }

    /// Brings the bytes of the innermost node into the form in which its holder sees them.
    #[cold]
    #[inline(never)]
    fn close(&mut self) {
        let mut frame = Vec::new();
        if self.items != 1 && !self.is_root {
            frame.push(item::GROUP);
            put_varint(&mut frame, self.items as u64);
        }
        let length = self.length - self.start + frame.len();
        if self.spilled.is_none() && length <= INLINE_LIMIT {
            self.buffer.splice(self.start..self.start, frame);
            self.length = self.start + length;
            return;
        }
        let marker = if self.is_root {
            item::COLLAPSED_ROOT
        } else {
            item::COLLAPSED
        };
        self.spill();
        if let Some(all) = self.spilled.take() {
            let digest = Digest::from_bytes(*all.finalize().as_bytes());
            self.length = self.collapsed_at(self.length, marker, all.count(), &digest);
        }
    }
}

/// The bytes that [`Encoder::named`] writes before the value. `N` is two more than the length of the name, which must
/// be below 128.
#[doc(hidden)]
#[must_use]
pub const fn name_frame<const N: usize>(name: &str) -> [u8; N] {
    let name = name.as_bytes();
    assert!(name.len() + 2 == N && name.len() < 0x80);
    let mut frame = [0; N];
    frame[0] = item::NAMED;
    frame[1] = name.len() as u8;
    let mut at = 0;
    while at < name.len() {
        frame[at + 2] = name[at];
        at += 1;
    }
    frame
}

fn put_varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}
