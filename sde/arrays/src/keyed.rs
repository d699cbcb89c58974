//! The identity of an array as an input.
//!
//! An array that an app returned is identified by its run and its name among the results. Any other is identified by
//! its content, whatever its layout: elements are taken by rows and cut into pieces, at places that do not depend on
//! the ranks. Each piece is hashed on one rank, and then the digests are hashed.

use sde_engine::bulk::Element;
use sde_engine::key::Digest;
use sde_engine::key::{Encoder, FingerprintError};
use sde_engine::{Error, Fingerprint, Handle};

use super::dist_array::DistArray;

/// The number of elements that are hashed as one piece.
const CHUNK: usize = 1 << 16;

impl<T: Element> DistArray<T> {
    /// The array, identified by its content, whatever its layout, so that it can be an input of a run. Collective.
    /// Hashes all elements, each on one rank.
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
        // Rust's type names may change with the compiler; this name is our own.
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
        // `keyed` is new, so its origin is unset.
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
