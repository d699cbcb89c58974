//! Commitments: bytes that stand for a value in an encoding, kept so that the value is encoded once.

use super::digest::Digest;
use super::error::FingerprintError;
use super::fingerprint::Fingerprint;
use super::scratch::with_encoder;
use super::spill::digest_of;
use super::tag::item;
use super::volatile::Volatile;

/// The bytes that a value writes to its holder: its encoding, or the digest of a long one.
///
/// A shared handle makes one with [`commit`], keeps it, and writes it with
/// [`Encoder::commitment`](super::Encoder::commitment). It is at most 1 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Commitment {
    /// An encoding of at most [`INLINE_LIMIT`](super::INLINE_LIMIT) bytes.
    Inline(Box<[u8]>),
    /// The length and digest of a longer one.
    Digest {
        /// The length of the encoding in bytes.
        length: u64,
        /// The digest of the encoding.
        digest: Digest,
    },
}

impl Commitment {
    /// A digest that names the value: the kept one, or that of the short encoding.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Inline(bytes) => digest_of(bytes),
            Self::Digest { digest, .. } => *digest,
        }
    }
}

/// Encodes `value` once, so that it can be written many times.
///
/// A value with an [`InputFile`](super::InputFile) or a [`BySerde`](super::BySerde) in it may change while you hold it,
/// and with it the commitment: do not keep that ([`Encoder::is_volatile`](super::Encoder::is_volatile) tells).
///
/// The cost is that of hashing the value (bulk data at BLAKE3's speed) and one small allocation.
///
/// # Errors
/// The errors of the value's [`Fingerprint`].
pub fn commit<T: Fingerprint + ?Sized>(value: &T) -> Result<Commitment, FingerprintError> {
    commit_noting(value).map(|(commitment, _)| commitment)
}

/// As [`commit`], with what the encoder noted; the commitment may be kept only if that is nothing.
pub(crate) fn commit_noting<T: Fingerprint + ?Sized>(
    value: &T,
) -> Result<(Commitment, Option<Box<Volatile>>), FingerprintError> {
    with_encoder(|to| {
        to.value(value)?;
        let noted = to.take_volatile();
        let bytes = to.finish()?;
        let long = bytes.strip_prefix(&[item::COLLAPSED]).and_then(|marker| {
            let (length, digest) = marker.split_first_chunk()?;
            Some(Commitment::Digest {
                length: u64::from_le_bytes(*length),
                digest: Digest::from_bytes(digest.try_into().ok()?),
            })
        });
        let commitment = long.unwrap_or_else(|| Commitment::Inline(bytes.into()));
        Ok((commitment, noted))
    })
}
