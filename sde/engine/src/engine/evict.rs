//! Keeping apps within the memory that they may take.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Engine;
use crate::cache::{AppCache, Count, Entry};
use crate::error::printable;
use crate::event::Event;
use crate::key::Key;

impl Engine {
    /// Warns of each limit that was set for no app that this program has shown: the name may be misspelt.
    pub(super) fn warn_of_limits_without_effect(&self) {
        for app in self.caches.limited() {
            if let Err(error) = self.must_know(app) {
                self.warn(|| {
                    format!(
                        "the memory limit of \"{}\" had no effect: {error}",
                        printable(app)
                    )
                });
            }
        }
    }

    /// Warns, once, of a result that the limit of its app does not see.
    pub(crate) fn warn_of_what_has_no_size(&self, cache: &AppCache, entry: &Entry) {
        let mut results = entry.results.results().iter();
        if cache.budget.limit().is_some()
            && let Some(named) = results.find(|named| named.has_unknown_size())
            && !cache.budget.told.swap(true, Ordering::Relaxed)
        {
            self.warn(|| {
                format!(
                    "the memory limit of \"{}\" counts nothing of its result \"{}\", which is no list of numbers; give its \
                     type a size with `MemorySize`, and say that the app is `sized`",
                    printable(&cache.name),
                    printable(&named.name)
                )
            });
        }
    }

    /// Evicts values of an app that have passed its limit.
    pub(super) fn keep_within_limit(&self, cache: &AppCache) {
        if let Some(keep) = cache.budget.is_over() {
            self.evict_from(cache, keep);
        }
    }

    /// The same for the app of a name; gives how many bytes were let go.
    pub(super) fn evict(&self, app: &str, keep: usize) -> usize {
        let alone = self.caches.named(app).cloned();
        let all = alone.into_iter().chain(self.sets.caches(app));
        all.map(|cache| self.evict_from(&cache, keep)).sum()
    }

    fn evict_from(&self, cache: &AppCache, keep: usize) -> usize {
        let evicted = self.drop_oldest(cache, keep);
        if evicted.is_empty() {
            return 0;
        }
        cache.counters.add(Count::Evicted, evicted.len() as u64);
        let bytes = evicted.iter().map(|entry| entry.bytes()).sum();
        for entry in &evicted {
            self.tell(|| Event::Evicted {
                app: Arc::clone(&entry.record.app),
                key: entry.record.key,
            });
        }
        bytes
    }

    /// Drops values that nobody holds, those that were used longest ago first, until all that are left take so many bytes;
    /// gives the entries that had them.
    fn drop_oldest(&self, cache: &AppCache, keep: usize) -> Vec<Arc<Entry>> {
        let budget = &cache.budget;
        if budget.limit().is_none() {
            // Nobody has listed them.
            budget.list(cache.entries().iter().map(|entry| &**entry));
        }
        let now = budget.tick();
        let mut gone = Vec::new();
        loop {
            let oldest = budget.take_oldest(keep, now);
            if oldest.is_empty() {
                break;
            }
            let entries = oldest
                .into_iter()
                .filter_map(|(listed, key)| Some((listed, cache.entry(&key)?)));
            let (used, unused): (Vec<_>, Vec<_>) =
                entries.partition(|(listed, entry)| entry.used() > *listed);
            budget.list(used.iter().map(|(_, entry)| &**entry));
            let keys: Vec<Key> = unused.iter().map(|(_, entry)| entry.record.key).collect();
            self.save_before_dropping(&keys);
            for key in &keys {
                gone.extend(cache.take_values(key, now));
            }
        }
        budget.put_off();
        gone
    }
}
