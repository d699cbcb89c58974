//! Digests of encodings: BLAKE3, keyed by the digest's purpose, and the bytes that leave the buffer for it.

use super::bulk;
use super::digest::Digest;
use super::encoder::Encoder;
use super::tag::FORMAT;

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

/// The digest of finished bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    Digest::from_bytes(*blake3::keyed_hash(&DIGEST_DOMAIN, bytes).as_bytes())
}

impl Encoder<'_> {
    /// Moves the bytes of the innermost node into its hasher.
    #[cold]
    #[inline(never)]
    pub(super) fn spill(&mut self) -> &mut blake3::Hasher {
        let domain = if self.is_root {
            &ROOT_DOMAIN
        } else {
            &NODE_DOMAIN
        };
        let new = || Box::new(blake3::Hasher::new_keyed(domain));
        let spilled = self.spilled.get_or_insert_with(new);
        bulk::update(spilled, &self.buffer[self.start..self.length]);
        self.length = self.start;
        spilled
    }
}
