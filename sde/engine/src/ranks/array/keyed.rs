//! What an array is known by as an input.
//!
//! One that an app returned is known by the run and the result that it is. Any other is known by
//! its content, whatever its layout: the elements are taken in one order and cut into pieces at places
//! that do not depend on the ranks; each piece is hashed where it is, and then the digests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::Block;
use super::dist_array::DistArray;
use super::layout::Layout;
use crate::app::Handle;
use crate::bulk::Element;
use crate::error::Error;
use crate::key::{Digest, Encoder, Fingerprint, FingerprintError};

/// How many elements are hashed as one, wherever they lie.
const CHUNK: usize = 1 << 16;

impl<T: Element> DistArray<T> {
    /// The same array, known by its content, whatever its layout: it can be an input of a run.
    /// Collective. Hashes all elements, each on one rank.
    ///
    /// # Errors
    /// As [`redistribute`](Self::redistribute).
    pub fn keyed(self, sde: &Handle) -> Result<Self, Error> {
        let ranks = sde.ranks()?;
        let count: usize = self.shape().iter().product();
        let chunks = count.div_ceil(CHUNK);
        // In one order, cut at places that do not depend on the number of ranks.
        let by_rows = self.redistribute(sde, Layout::rows(self.shape(), ranks))?;
        let flat = flat(&by_rows.layout, count)?;
        let set = by_rows.set();
        let flat = Self::of(Arc::new(flat), by_rows.place, by_rows.local, set);
        let cut = flat.redistribute(sde, cut(count, chunks, ranks))?;
        let mut mine = Vec::new();
        for chunk in cut.local.chunks(CHUNK) {
            mine.extend(blake3::hash(bytemuck::cast_slice(chunk)).as_bytes());
        }
        let all = sde.gather("the digests of an array", mine)?;
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
        all.iter().for_each(|digests| {
            whole.update(digests);
        });
        let digest = Digest::from_bytes(*whole.finalize().as_bytes());
        let keyed = Self::of(Arc::clone(&self.layout), self.place, self.local, 0);
        keyed.set.store(self.set.into_inner(), Ordering::Relaxed);
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

/// A layout by rows, of the same elements in one dimension.
fn flat(rows: &Layout, count: usize) -> Result<Layout, Error> {
    let mut next = 0;
    let blocks = rows.blocks().iter().map(|block| {
        let offset = next;
        next += block.len();
        Block {
            offset: vec![offset],
            extent: vec![block.len()],
        }
    });
    Layout::of_blocks(&[count], blocks.collect())
}

/// Whole chunks on each rank.
fn cut(count: usize, chunks: usize, ranks: usize) -> Layout {
    let by_chunk = Layout::rows(&[chunks], ranks);
    let blocks = by_chunk.blocks().iter().map(|block| {
        let start = (block.offset[0] * CHUNK).min(count);
        let end = (block.end(0) * CHUNK).min(count);
        Block {
            offset: vec![start],
            extent: vec![end - start],
        }
    });
    let blocks = blocks.collect();
    Layout::of_blocks(&[count], blocks).unwrap_or_else(|_| Layout::rows(&[count], ranks))
}
