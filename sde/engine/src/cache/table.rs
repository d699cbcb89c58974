//! Finding the cache of an app type without a lock.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::app_cache::AppCache;
use crate::app::TypeIndex;

/// Chunks double in size, so a few of them hold any number of app types that
/// a program can have, and none ever moves.
const CHUNKS: usize = 28;

type Chunk = Box<[OnceLock<Arc<AppCache>>]>;

/// The caches of one engine, by the number of the app type.
pub(crate) struct CacheTable {
    /// How many bytes the values of apps may take.
    limits: HashMap<String, usize>,
    chunks: [OnceLock<Chunk>; CHUNKS],
}

impl CacheTable {
    pub(crate) fn new(limits: HashMap<String, usize>) -> Self {
        Self {
            limits,
            chunks: [const { OnceLock::new() }; CHUNKS],
        }
    }

    /// The names of the apps that have limits.
    pub(crate) fn limited(&self) -> impl Iterator<Item = &String> {
        self.limits.keys()
    }

    /// The cache of an app type, made when first asked for.
    #[inline]
    pub(crate) fn get(&self, index: TypeIndex, name: &Arc<str>) -> &Arc<AppCache> {
        let (chunk, at) = place(index.0);
        let made = self.chunks[chunk].get().and_then(|chunk| chunk[at].get());
        made.unwrap_or_else(|| self.make(chunk, at, name))
    }

    #[cold]
    fn make(&self, chunk: usize, at: usize, name: &Arc<str>) -> &Arc<AppCache> {
        let chunk =
            self.chunks[chunk].get_or_init(|| (0..1 << chunk).map(|_| OnceLock::new()).collect());
        let limit = self.limits.get(&**name).copied();
        chunk[at].get_or_init(|| Arc::new(AppCache::new(Arc::clone(name), limit)))
    }

    /// All caches made so far.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<AppCache>> {
        self.chunks
            .iter()
            .filter_map(OnceLock::get)
            .flat_map(|chunk| chunk.iter())
            .filter_map(OnceLock::get)
    }

    /// The cache of the app of that name, if there is one.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<AppCache>> {
        self.all().find(|cache| &*cache.name == name)
    }
}

/// Chunk `c` holds the `2^c` numbers from `2^c - 1` on.
#[inline]
fn place(index: usize) -> (usize, usize) {
    let chunk = (index + 1).ilog2() as usize;
    (chunk, index + 1 - (1 << chunk))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for index in 0..1000 {
            let (chunk, at) = place(index);
            assert!(at < 1 << chunk);
            assert!(seen.insert((chunk, at)));
        }
    }
}
