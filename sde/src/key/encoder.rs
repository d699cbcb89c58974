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

use super::bulk;
use super::commitment::Commitment;
use super::digest::Digest;
use super::error::{FingerprintError, FingerprintErrorKind};
use super::fingerprint::Fingerprint;
use super::tag::{FORMAT, INLINE_LIMIT, item};

/// How many bytes a node keeps in the buffer before they go into its hasher. Part of the speed, not
/// of the format.
const SPILL: usize = 32 * 1024;

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
    buffer: &'b mut Vec<u8>,
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
    /// An encoder that writes to `buffer`, which it empties first. Reuse the buffer to save
    /// allocations, or let [`with_encoder`](super::with_encoder) do so.
    #[inline]
    pub fn new(buffer: &'b mut Vec<u8>) -> Self {
        buffer.clear();
        Self {
            buffer,
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
        self.node(|to| value.fingerprint(to))
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
        let items = self.begin(item::NAMED);
        self.text_body(name);
        let done = self.value(value);
        self.items = items;
        done.map_err(|error| error.in_field(name))
    }

    /// Writes a value that was encoded before, as [`value`](Encoder::value) would write it.
    /// Constant time.
    #[inline]
    pub fn commitment(&mut self, commitment: &Commitment) {
        self.items += 1;
        match commitment {
            Commitment::Inline(bytes) => self.raw(bytes),
            Commitment::Digest { length, digest } => {
                collapse_into(self.buffer, item::COLLAPSED, *length, digest);
            }
        }
        self.keep_small();
    }

    /// Runs `write` as a node of its own. For values that are no type of their own, such as what an
    /// adapter makes up.
    ///
    /// # Errors
    /// What `write` says.
    #[inline]
    pub fn node(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        let start = std::mem::replace(&mut self.start, self.buffer.len());
        let items = std::mem::replace(&mut self.items, 0);
        let spilled = self.spilled.take();
        let is_root = std::mem::replace(&mut self.is_root, false);
        let done = write(self);
        let length = self.buffer.len() - self.start;
        if length > INLINE_LIMIT - 16 || self.items != 1 || self.spilled.is_some() {
            self.close();
        }
        self.start = start;
        self.items = items + 1;
        self.spilled = spilled;
        self.is_root = is_root;
        self.failed |= done.is_err();
        self.keep_small();
        done
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
        let length = self.buffer.len() - self.start;
        if self.spilled.is_none() && length + frame.len() <= INLINE_LIMIT {
            self.buffer.splice(self.start..self.start, frame);
            return;
        }
        let (marker, domain) = if self.is_root {
            (item::COLLAPSED_ROOT, &ROOT_DOMAIN)
        } else {
            (item::COLLAPSED, &NODE_DOMAIN)
        };
        let mut all = self.spilled.take().unwrap_or_else(|| Spilled::new(domain));
        all.absorb(&self.buffer[self.start..]);
        self.buffer.truncate(self.start);
        let digest = Digest::from_bytes(*all.hasher.finalize().as_bytes());
        collapse_into(self.buffer, marker, all.length, &digest);
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
        if self.buffer.len() > INLINE_LIMIT || self.spilled.is_some() {
            self.close();
        }
        Ok(self.buffer)
    }

    /// The digest of everything written.
    ///
    /// # Errors
    /// As [`finish`](Encoder::finish).
    pub fn digest(&mut self) -> Result<Digest, FingerprintError> {
        self.finish().map(digest_of)
    }

    /// Starts an item of the innermost node, and gives the number of items that it has then.
    /// Whoever writes values inside the item puts that number back when the item is complete.
    #[inline]
    pub(crate) fn begin(&mut self, tag: u8) -> usize {
        self.items += 1;
        self.buffer.push(tag);
        self.keep_small();
        self.items
    }

    /// Ends an item begun by [`begin`](Encoder::begin).
    #[inline]
    pub(crate) fn end(&mut self, items: usize) {
        self.items = items;
    }

    /// A whole item of fixed size: tag and content.
    #[inline]
    pub(crate) fn fixed<const N: usize>(&mut self, tag_and_content: [u8; N]) {
        self.items += 1;
        self.buffer.extend_from_slice(&tag_and_content);
        self.keep_small();
    }

    /// Bytes inside an item.
    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        if bytes.len() < DIRECT {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.raw_large(bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn raw_large(&mut self, bytes: &[u8]) {
        self.spill().absorb(bytes);
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.buffer.push(byte);
    }

    #[inline]
    pub(crate) fn varint(&mut self, value: u64) {
        put_varint(self.buffer, value);
    }

    /// Length and bytes of a text.
    #[inline]
    pub(crate) fn text_body(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.raw(text.as_bytes());
    }

    /// The buffer itself, for content written element by element. Call
    /// [`keep_small`](Encoder::keep_small) now and then.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer
    }

    /// Remembers that a part failed.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Bounds what the innermost node keeps in the buffer.
    #[inline]
    pub(crate) fn keep_small(&mut self) {
        if self.buffer.len() - self.start > SPILL {
            self.spill();
        }
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) -> &mut Spilled {
        let domain = if self.is_root {
            &ROOT_DOMAIN
        } else {
            &NODE_DOMAIN
        };
        let spilled = self.spilled.get_or_insert_with(|| Spilled::new(domain));
        spilled.absorb(&self.buffer[self.start..]);
        self.buffer.truncate(self.start);
        spilled
    }
}

fn collapse_into(buffer: &mut Vec<u8>, marker: u8, length: u64, digest: &Digest) {
    let mut bytes = [0_u8; 41];
    bytes[0] = marker;
    bytes[1..9].copy_from_slice(&length.to_le_bytes());
    bytes[9..].copy_from_slice(digest.as_bytes());
    buffer.extend_from_slice(&bytes);
}

/// The digest of finished bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    Digest::from_bytes(*blake3::keyed_hash(&DIGEST_DOMAIN, bytes).as_bytes())
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
#[inline]
pub(crate) fn put_varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}
