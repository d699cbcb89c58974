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

use super::bulk;
use super::commitment::Commitment;
use super::digest::Digest;
use super::error::{FingerprintError, FingerprintErrorKind};
use super::fingerprint::Fingerprint;
use super::items::Fields;
use super::tag::{FORMAT, INLINE_LIMIT, item};

/// How many bytes a node keeps in the buffer before they go into its hasher. Part of the speed, not
/// of the format.
const SPILL: usize = 32 * 1024;

/// The length of a text that takes more than one byte.
const SHORT: usize = 0x80;

/// What a new buffer holds: enough for most inputs.
const FIRST: usize = 4 * 1024;

/// From this size on, a piece of content goes into the hasher from where it lies, without a copy.
const DIRECT: usize = 4 * 1024;

/// BLAKE3's key for one purpose of ours: the format version and a name.
const fn domain(name: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    key[0] = FORMAT;
    let mut at = 0;
    while at < name.len() {
        key[at + 1] = name[at];
        at += 1;
    }
    key
}

/// The digest of a value that is replaced by it.
const NODE_DOMAIN: [u8; 32] = domain(b"sde: encoding of one value");
/// The digest of a list of items that is replaced by it.
const ROOT_DOMAIN: [u8; 32] = domain(b"sde: encoding of a list");
/// The digest of a complete encoding.
const DIGEST_DOMAIN: [u8; 32] = domain(b"sde: digest of an encoding");

/// What of a node has left the buffer.
struct Spilled {
    hasher: blake3::Hasher,
    length: u64,
}

impl Spilled {
    fn new(domain: &[u8; 32]) -> Box<Self> {
        Box::new(Self {
            hasher: blake3::Hasher::new_keyed(domain),
            length: 0,
        })
    }

    fn absorb(&mut self, bytes: &[u8]) {
        bulk::update(&mut self.hasher, bytes);
        self.length += bytes.len() as u64;
    }
}

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
    /// All initialized; what is written ends at `length`.
    buffer: &'b mut Vec<u8>,
    length: usize,
    /// Where the bytes of the innermost open node begin.
    start: usize,
    /// How many items the innermost open node has.
    items: usize,
    /// What of the innermost open node has left the buffer.
    spilled: Option<Box<Spilled>>,
    is_root: bool,
    failed: bool,
}

impl<'b> Encoder<'b> {
    /// An encoder that uses `buffer` as its space; what was in it is lost. Reuse the buffer to save
    /// allocations, or let [`with_encoder`](super::with_encoder) do so.
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
        }
    }

    /// Writes one value as a node of its own.
    ///
    /// # Errors
    /// What the value's [`Fingerprint`] says. The encoder gives no bytes after an error.
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

    /// One item of the innermost node: what `write` writes counts as one, whatever its parts.
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

    /// One item of the innermost node: its bytes, which cannot fail.
    #[inline]
    pub(crate) fn plain_item(&mut self, write: impl FnOnce(&mut Fields<'_, 'b>)) {
        self.items += 1;
        let mut parts = Fields::new(self.length, self);
        write(&mut parts);
        self.length = parts.at();
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn set_length(&mut self, length: usize) {
        self.length = length;
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
            let digest = Digest::from_bytes(*all.hasher.finalize().as_bytes());
            self.length = self.collapsed_at(self.length, marker, all.length, &digest);
        }
    }

    /// What stands for a long node.
    fn collapsed_at(&mut self, at: usize, marker: u8, length: u64, digest: &Digest) -> usize {
        let mut bytes = [0_u8; 41];
        bytes[0] = marker;
        bytes[1..9].copy_from_slice(&length.to_le_bytes());
        bytes[9..].copy_from_slice(digest.as_bytes());
        self.put_at(at, bytes)
    }

    /// Room for `size` bytes at `at`, if the buffer has it.
    #[inline]
    pub(crate) fn room_at(&mut self, at: usize, size: usize) -> Option<&mut [u8]> {
        self.buffer.get_mut(at..)?.get_mut(..size)
    }

    /// Writes bytes at the end `at` of what is written; gives the new end.
    #[inline]
    pub(crate) fn put_at<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> usize {
        match self.buffer.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => {
                *room = bytes;
                at + N
            }
            None => self.slice_slow(at, &bytes),
        }
    }

    /// Tag, length and content, which stand within an item or are one.
    #[inline]
    pub(crate) fn framed_at(&mut self, at: usize, tag: u8, content: &[u8]) -> usize {
        if content.len() < SHORT {
            if let Some([first, second, room @ ..]) = self.room_at(at, content.len() + 2) {
                *first = tag;
                *second = content.len() as u8;
                copy(room, content);
                return at + 2 + content.len();
            }
        }
        let at = self.put_at(at, [tag]);
        let at = self.varint_at(at, content.len() as u64);
        self.slice_at(at, content)
    }

    /// The same as a node.
    #[inline]
    pub(crate) fn framed_node_at(&mut self, at: usize, tag: u8, content: &[u8]) -> usize {
        if content.len() < SHORT {
            self.framed_at(at, tag, content)
        } else {
            self.framed_long_at(at, tag, content)
        }
    }

    #[inline(never)]
    fn framed_long_at(&mut self, at: usize, tag: u8, content: &[u8]) -> usize {
        let done = self.node_at(at, |to| {
            to.framed(tag, content);
            Ok(())
        });
        // It does not fail: what it writes does not.
        done.unwrap_or(self.length)
    }

    /// As [`put_at`](Encoder::put_at), for a slice.
    #[inline]
    pub(crate) fn slice_at(&mut self, at: usize, bytes: &[u8]) -> usize {
        match self.room_at(at, bytes.len()) {
            Some(room) if bytes.len() < DIRECT => {
                copy(room, bytes);
                at + bytes.len()
            }
            _ => self.slice_slow(at, bytes),
        }
    }

    /// Seven bits a byte, the lowest first; the top bit says that more follow.
    #[inline]
    pub(crate) fn varint_at(&mut self, mut at: usize, mut value: u64) -> usize {
        while value >= 0x80 {
            at = self.put_at(at, [value as u8 | 0x80]);
            value >>= 7;
        }
        self.put_at(at, [value as u8])
    }

    /// Large pieces go into the hasher. For others the buffer lacks room: a node that has much in
    /// it makes room by emptying it, so that the buffer's size is bounded; one that has little, by
    /// a larger buffer.
    #[cold]
    #[inline(never)]
    fn slice_slow(&mut self, at: usize, bytes: &[u8]) -> usize {
        self.length = at;
        if bytes.len() >= DIRECT {
            self.spill().absorb(bytes);
            return self.length;
        }
        if self.length - self.start > SPILL {
            self.spill();
        }
        let end = self.length + bytes.len();
        if end > self.buffer.len() {
            self.buffer
                .resize((2 * self.buffer.len()).max(end + FIRST), 0);
        }
        self.buffer[self.length..end].copy_from_slice(bytes);
        end
    }

    /// Moves the bytes of the innermost node into its hasher.
    #[cold]
    #[inline(never)]
    fn spill(&mut self) -> &mut Spilled {
        let domain = if self.is_root {
            &ROOT_DOMAIN
        } else {
            &NODE_DOMAIN
        };
        let spilled = self.spilled.get_or_insert_with(|| Spilled::new(domain));
        spilled.absorb(&self.buffer[self.start..self.length]);
        self.length = self.start;
        spilled
    }
}

/// Copies between slices of one length. Names and short texts are of 4 to 16 bytes: two moves, where
/// the general copy is a call.
#[inline]
fn copy(room: &mut [u8], bytes: &[u8]) {
    match bytes.len() {
        8..=16 => copy_ends::<8>(room, bytes),
        4..=7 => copy_ends::<4>(room, bytes),
        _ => room.copy_from_slice(bytes),
    }
}

/// Copies the first and the last `N` bytes, which are all, between slices of `N` to `2 * N` bytes.
#[inline]
fn copy_ends<const N: usize>(room: &mut [u8], bytes: &[u8]) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) {
        if let Some(room) = room.first_chunk_mut::<N>() {
            *room = *first;
        }
        if let Some(room) = room.last_chunk_mut::<N>() {
            *room = *last;
        }
    }
}

/// The digest of finished bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    Digest::from_bytes(*blake3::keyed_hash(&DIGEST_DOMAIN, bytes).as_bytes())
}

fn put_varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}
