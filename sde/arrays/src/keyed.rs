//! What an array is known by as an input.
//!
//! One that an app returned is known by the run and the result that it is. Any other is known by
//! its content, whatever its layout: the elements are taken in one order and cut into pieces at places
//! that do not depend on the ranks; each piece is hashed where it is, and then the digests.

use sde_engine::bulk::Element;
use sde_engine::key::Digest;
use sde_engine::{Encoder, Error, Fingerprint, FingerprintError, Handle};

use super::dist_array::DistArray;

/// How many elements are hashed as one, wherever they lie.
const CHUNK: usize = 1 << 16;

impl<T: Element> DistArray<T> {
    /// The same array, known by its content, whatever its layout: it can be an input of a run.
    /// Collective. Hashes all elements, each on one rank.
    ///
    /// # Errors
    /// As [`redistribute`](Self::redistribute).
    pub fn keyed(self, sde: &Handle) -> Result<Self, Error> {
        let mut mine = Vec::new();
        self.pieces(sde, CHUNK, |number, chunk| {
            mine.push((
                number,
                *blake3::hash(bytemuck::cast_slice(chunk)).as_bytes(),
            ));
        })?;
        let all = sde.gather("the digests of an array", mine)?;
        let mut digests: Vec<_> = all.iter().flat_map(|of_rank| of_rank.iter()).collect();
        digests.sort_unstable();
        let mut whole = blake3::Hasher::new();
        whole.update(b"SDE array 1");
        // Names that Rust gives may change with the compiler; this one is ours.
        whole.update(T::NUMBERS.name().as_bytes());
        let mut inner = Vec::new();
        T::inner(&mut inner);
        for lengths in [self.shape(), &inner] {
            whole.update(&(lengths.len() as u64).to_le_bytes());
            for length in lengths {
                whole.update(&(*length as u64).to_le_bytes());
            }
        }
        for (_, digest) in digests {
            whole.update(digest);
        }
        let digest = Digest::from_bytes(*whole.finalize().as_bytes());
        let set = self.set();
        let keyed = Self::of(self.layout, self.place, self.local, set);
        // It is new, so this is the first.
        let _ = keyed.origin.set(digest);
        Ok(keyed)
    }
}

impl<T: Element> Fingerprint for DistArray<T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.distributed();
        let origin = self.origin.get().ok_or_else(|| {
            FingerprintError::custom(
                "a DistArray that no app returned has no name; call `keyed` on it first",
            )
        })?;
        to.structure("DistArray", |fields| {
            fields.field("origin", origin.as_bytes())
        })
    }
}
