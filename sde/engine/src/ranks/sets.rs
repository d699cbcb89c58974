//! The process sets of one engine, and the caches of each.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Mutex, Weak};

use super::collective::Ranks;
use super::exchange::Received;
use crate::cache::AppCache;
use crate::entry::{Entry, RecordHead};
use crate::key::Key;
use crate::result_map::Tags;
use crate::sync::{MutexGuard, lock};

/// Runs of ordinary apps: app and key.
pub(crate) type Runs = Vec<(Arc<str>, Key)>;

/// The ranks of a process set, with the results that they made together.
pub(crate) struct ProcessSet {
    ranks: Ranks,
    results: Mutex<SetResults>,
}

#[derive(Default)]
struct SetResults {
    /// The caches of distributed apps, by name.
    caches: HashMap<Arc<str>, Arc<AppCache>>,
    order: SharedOrder,
    /// Entries that this rank could not evict with the others, since no store had them. It tries again later.
    not_evicted: VecDeque<(Arc<AppCache>, Weak<Entry>)>,
    /// The ordinary runs made while this was the innermost process set, and those of its parts that were released.
    fresh: Runs,
}

impl ProcessSet {
    pub(crate) fn new(ranks: Ranks) -> Self {
        let results = Mutex::default();
        Self { ranks, results }
    }

    fn lock(&self) -> MutexGuard<'_, SetResults> {
        lock(&self.results)
    }

    /// The set's cache of an app, made from the cache of the runs that this rank makes alone.
    pub(crate) fn cache(&self, alone: &AppCache) -> Arc<AppCache> {
        let mut results = self.lock();
        let of_app = results.caches.entry(Arc::clone(&alone.name));
        Arc::clone(of_app.or_insert_with(|| Arc::new(alone.of_set())))
    }

    pub(crate) fn caches(&self) -> Vec<Arc<AppCache>> {
        self.lock().caches.values().cloned().collect()
    }

    pub(crate) fn entry(&self, key: &Key) -> Option<Arc<Entry>> {
        self.caches().iter().find_map(|cache| cache.entry(key))
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        let caches = self.caches();
        caches.iter().flat_map(|cache| cache.entries()).collect()
    }

    /// Whether all values that a run needs of this computation are here.
    pub(crate) fn has(&self, record: &RecordHead) -> bool {
        let entry = self.entry(&record.key);
        entry.is_some_and(|entry| entry.record.run == record.run && entry.serves_all())
    }

    /// Records a use that all ranks make alike.
    pub(crate) fn used(&self, cache: &Arc<AppCache>, key: Key) {
        self.lock().order.used(cache, key);
    }

    /// The number of shared results, of those that `count` for an app's budget, to evict so that this rank keeps to the
    /// budget.
    pub(crate) fn too_many(&self, of: &AppCache, count: impl Fn(&AppCache) -> bool) -> u32 {
        let Some(memory) = &of.counted else {
            return 0;
        };
        let (too_much, mut bytes, mut number) = (memory.0.collective_excess(), 0, 0);
        // Dropped when the lock is free: the last reference runs a destructor.
        let mut looked_at = Vec::new();
        if too_much > 0 {
            for (cache, key) in self.lock().order.of(count) {
                if bytes >= too_much {
                    break;
                }
                let entry = cache.entry(key);
                bytes += entry.as_ref().map_or(0, |entry| entry.known_memory());
                number += 1;
                looked_at.push(entry);
            }
        }
        number
    }

    /// Takes the first `number` of the results that `count` for one budget out of the order, to be evicted on all
    /// ranks. Adds some that this rank could not evict before.
    pub(crate) fn take_first(
        &self,
        number: u32,
        count: impl Fn(&AppCache) -> bool,
    ) -> Vec<(Arc<AppCache>, Arc<Entry>)> {
        let mut results = self.lock();
        let first = results.order.of(count).take(number as usize);
        let first: Vec<_> = first.cloned().collect();
        first.iter().for_each(|(_, key)| results.order.forget(key));
        let some = results.not_evicted.len().min(TRIED_AGAIN);
        let again: Vec<_> = results.not_evicted.drain(..some).collect();
        drop(results);
        let again = again.into_iter();
        let again = again.filter_map(|(cache, entry)| Some((cache, entry.upgrade()?)));
        let first = first.into_iter();
        let first = first.filter_map(|(cache, key)| Some((Arc::clone(&cache), cache.entry(&key)?)));
        first.chain(again).collect()
    }

    pub(crate) fn note_not_evicted(&self, cache: Arc<AppCache>, entry: &Arc<Entry>) {
        let entry = Arc::downgrade(entry);
        self.lock().not_evicted.push_back((cache, entry));
    }

    /// Forgets all results; gives the ordinary runs whose results other ranks lack. Handles that still hold the set
    /// keep no results.
    pub(crate) fn take_results(&self) -> Runs {
        // Dropped after the lock: destructors of values may use the engine.
        let ended = std::mem::take(&mut *self.lock());
        ended.fresh
    }

    /// Records runs whose results other ranks lack. The set of all ranks records none.
    pub(crate) fn add_fresh(&self, more: impl IntoIterator<Item = (Arc<str>, Key)>) {
        if !self.is_world() {
            self.lock().fresh.extend(more);
        }
    }
}

/// The number of evictions tried again at each meeting.
const TRIED_AGAIN: usize = 4;

/// The results that the ranks of a set made together, the least recently used first. All ranks have the same order,
/// whatever results each still has, since it changes only in collective operations.
#[derive(Default)]
struct SharedOrder {
    uses: u64,
    by_use: BTreeMap<u64, (Arc<AppCache>, Key)>,
    last_use: HashMap<Key, u64>,
}

impl SharedOrder {
    fn used(&mut self, cache: &Arc<AppCache>, key: Key) {
        self.forget(&key);
        self.uses += 1;
        self.by_use.insert(self.uses, (Arc::clone(cache), key));
        self.last_use.insert(key, self.uses);
    }

    /// The results of the apps that the function selects.
    fn of(&self, apps: impl Fn(&AppCache) -> bool) -> impl Iterator<Item = &(Arc<AppCache>, Key)> {
        self.by_use.values().filter(move |(cache, _)| apps(cache))
    }

    fn forget(&mut self, key: &Key) {
        if let Some(at) = self.last_use.remove(key) {
            self.by_use.remove(&at);
        }
    }
}

impl Deref for ProcessSet {
    type Target = Ranks;
    fn deref(&self) -> &Ranks {
        &self.ranks
    }
}

impl std::fmt::Debug for ProcessSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}

/// All process sets of one engine, from the one the program began with to the innermost, and the entries received from
/// other ranks.
#[derive(Default)]
pub(crate) struct Sets {
    nested: Mutex<Vec<Arc<ProcessSet>>>,
    pub(crate) received: Received,
    /// The keys that other ranks have computed and this rank lacks.
    elsewhere: Mutex<BTreeSet<Key>>,
}

impl Sets {
    pub(crate) fn push(&self, set: Arc<ProcessSet>) {
        lock(&self.nested).push(set);
    }

    /// Removes a set that is released, and ends the sets within it.
    pub(crate) fn remove(&self, id: u64) {
        let mut nested = lock(&self.nested);
        let at = nested.iter().position(|set| set.id() == id);
        let gone = at.map_or_else(Vec::new, |at| nested.split_off(at));
        drop(nested);
        for within in gone.iter().skip(1) {
            let _kept = within.take_results();
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<ProcessSet>> {
        lock(&self.nested).clone()
    }

    /// Each set's entry of a key.
    pub(crate) fn entry(&self, key: &Key) -> impl Iterator<Item = Arc<Entry>> {
        self.all().into_iter().filter_map(|set| set.entry(key))
    }

    /// The entry of a key in a larger process set, of which the current set is a part.
    pub(crate) fn entry_of_larger(&self, key: &Key) -> Option<Arc<Entry>> {
        let all = self.all();
        let mut larger = all.iter().rev().skip(1);
        larger.find_map(|set| set.entry(key).filter(|entry| entry.serves_all()))
    }

    /// Records an ordinary run whose results are to be given to other ranks later: one within a part of the ranks.
    pub(crate) fn note_fresh(&self, app: &Arc<str>, key: Key) {
        let innermost = lock(&self.nested).last().cloned();
        if let Some(innermost) = innermost {
            innermost.add_fresh([(Arc::clone(app), key)]);
        }
    }

    pub(crate) fn clear(&self, app: &str, goes: impl Fn(Tags) -> bool, why: &'static str) {
        self.received.clear(app, &goes);
        for cache in self.caches(app) {
            cache.clear(|named| goes(named.tags), why);
        }
    }

    pub(crate) fn caches(&self, app: &str) -> Vec<Arc<AppCache>> {
        let sets = self.all();
        let caches = sets.iter().flat_map(|set| set.caches());
        caches.filter(|cache| *cache.name == *app).collect()
    }

    /// Records keys that stayed on other ranks.
    pub(crate) fn note_elsewhere(&self, keys: impl Iterator<Item = Key>) {
        lock(&self.elsewhere).extend(keys);
    }

    /// The keys that stayed on other ranks, as far as `is_still` says that they are missing here.
    pub(crate) fn elsewhere(&self, is_still: impl Fn(&Key) -> bool) -> Vec<Key> {
        // A key that was here once is this rank's own concern, even if its values go again.
        let mut stayed = std::mem::take(&mut *lock(&self.elsewhere));
        stayed.retain(is_still);
        let keys = stayed.iter().copied().collect();
        lock(&self.elsewhere).append(&mut stayed);
        keys
    }

    pub(crate) fn forget_all(&self) {
        self.received.forget_all();
        lock(&self.elsewhere).clear();
        for set in self.all() {
            // First: runs in progress are not remembered.
            let caches = set.caches();
            let _before: Vec<_> = caches.iter().map(|cache| cache.forget_all()).collect();
            let _fresh = set.take_results();
        }
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        let all = self.all();
        all.iter().flat_map(|set| set.entries()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::group::OneProcess;

    fn ranks() -> Ranks {
        Ranks::of_test(OneProcess)
    }

    /// No rank would take such runs: the list would grow as long as the program runs.
    #[test]
    fn what_all_ranks_have_is_not_kept_for_others() {
        let runs = || [(Arc::from("app"), Key::from_bytes([1; 32]))];
        let world = ProcessSet::new(ranks());
        world.add_fresh(runs());
        assert_eq!(world.take_results(), []);
        let part = ranks().subset(Box::new(OneProcess), 0, &[0]);
        let part = ProcessSet::new(part);
        part.add_fresh(runs());
        assert_eq!(part.take_results(), runs());
    }

    /// Found by counting bytes: about 160 bytes of each run of a distributed app stayed when another store was loaded.
    #[test]
    fn what_is_forgotten_has_no_place_in_the_order_of_use() {
        let (set, sets) = (Arc::new(ProcessSet::new(ranks())), Sets::default());
        sets.push(Arc::clone(&set));
        let cache = set.cache(&AppCache::new(Arc::from("app"), None));
        set.used(&cache, Key::from_bytes([1; 32]));
        assert_eq!(set.lock().order.of(|_| true).count(), 1);
        sets.forget_all();
        assert_eq!(set.lock().order.of(|_| true).count(), 0);
        assert!(set.lock().order.last_use.is_empty());
    }

    /// The entries would stay in memory as long as any handle of the set.
    #[test]
    fn a_set_that_has_ended_keeps_nothing() {
        let part = || ProcessSet::new(ranks().subset(Box::new(OneProcess), 0, &[0]));
        let (outer, inner) = (Arc::new(part()), Arc::new(part()));
        let sets = Sets::default();
        for set in [&outer, &inner] {
            sets.push(Arc::clone(set));
            set.cache(&AppCache::new(Arc::from("app"), None));
            set.add_fresh([(Arc::from("app"), Key::from_bytes([1; 32]))]);
        }
        sets.remove(outer.id());
        assert_eq!(outer.take_results().len(), 1);
        for set in [outer, inner] {
            assert!(set.caches().is_empty());
            assert_eq!(set.take_results(), []);
        }
    }
}
