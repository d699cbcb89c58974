//! Finding the cache of an app type without a lock.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::app_cache::AppCache;
use super::budget::MemoryBudget;
use super::ledger::Owner;
use super::memory::Memory;
use crate::app::TypeIndex;

/// Chunks double in size, so a few of them hold any number of app types that
/// a program can have, and none ever moves.
const CHUNKS: usize = 28;

type Chunk = Box<[OnceLock<Arc<AppCache>>]>;

/// The caches of one engine, by the number of the app type.
pub(crate) struct CacheTable {
    /// The budgets of apps that have one of their own.
    pub(crate) budgets: HashMap<String, Option<Arc<Memory>>>,
    /// The budget that all other apps share.
    pub(crate) memory: Option<Arc<Memory>>,
    chunks: [OnceLock<Chunk>; CHUNKS],
}

impl CacheTable {
    pub(crate) fn new(all: MemoryBudget, of_apps: HashMap<String, MemoryBudget>) -> Self {
        let of_apps = of_apps.into_iter();
        Self {
            budgets: of_apps
                .map(|(app, budget)| (app, Memory::new(budget)))
                .collect(),
            memory: Memory::new(all),
            chunks: [const { OnceLock::new() }; CHUNKS],
        }
    }

    /// The cache of an app type, made when first asked for.
    #[inline]
    pub(crate) fn get(&self, index: TypeIndex, name: &Arc<str>) -> &Arc<AppCache> {
        self.at(index).unwrap_or_else(|| self.make(index, name))
    }

    /// The cache of an app type, if it was made.
    #[inline]
    pub(crate) fn at(&self, index: TypeIndex) -> Option<&Arc<AppCache>> {
        let (chunk, at) = place(index.0 as usize);
        self.chunks[chunk].get()?[at].get()
    }

    #[cold]
    fn make(&self, index: TypeIndex, name: &Arc<str>) -> &Arc<AppCache> {
        let (chunk, at) = place(index.0 as usize);
        let chunk =
            self.chunks[chunk].get_or_init(|| (0..1 << chunk).map(|_| OnceLock::new()).collect());
        let memory = self.budgets.get(&**name).unwrap_or(&self.memory);
        let counted = memory
            .as_ref()
            .map(|memory| (Arc::clone(memory), Owner::App(index)));
        chunk[at].get_or_init(|| Arc::new(AppCache::new(Arc::clone(name), counted)))
    }

    /// All caches made so far.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<AppCache>> {
        self.chunks
            .iter()
            .filter_map(OnceLock::get)
            .flat_map(|chunk| chunk.iter())
            .filter_map(OnceLock::get)
    }

    /// The cache of the app of that name, if it was made.
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
