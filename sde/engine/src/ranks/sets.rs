//! The process sets of one engine, and what belongs to each.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Mutex, Weak};

use super::collective::Ranks;
use super::exchange::Received;
use crate::cache::{AppCache, Entry, RecordHead};
use crate::key::Key;
use crate::result_map::Tags;
use crate::sync::lock;

/// Runs of ordinary apps: app and key.
pub(crate) type Runs = Vec<(Arc<str>, Key)>;

type NotEvicted = VecDeque<(Arc<AppCache>, Weak<Entry>)>;

/// Ranks, and the results that they made together.
pub(crate) struct ProcessSet {
    ranks: Ranks,
    /// The caches of distributed apps, by name.
    caches: Mutex<HashMap<Arc<str>, Arc<AppCache>>>,
    order: Mutex<SharedOrder>,
    /// What this rank could not evict when all were to, since no store had it: it is tried again.
    not_evicted: Mutex<NotEvicted>,
    /// The ordinary runs that were made while this was the innermost process set, and those of
    /// parts of it that were released.
    fresh: Mutex<Runs>,
}

impl ProcessSet {
    pub(crate) fn new(ranks: Ranks) -> Self {
        Self {
            ranks,
            caches: Mutex::default(),
            order: Mutex::default(),
            not_evicted: Mutex::default(),
            fresh: Mutex::default(),
        }
    }

    /// The cache of an app, by that which it has for what each rank makes alone.
    pub(crate) fn cache(&self, alone: &AppCache) -> Arc<AppCache> {
        let mut caches = lock(&self.caches);
        let of_app = caches.entry(Arc::clone(&alone.name));
        Arc::clone(of_app.or_insert_with(|| Arc::new(alone.of_set())))
    }

    pub(crate) fn caches(&self) -> Vec<Arc<AppCache>> {
        lock(&self.caches).values().cloned().collect()
    }

    pub(crate) fn entry(&self, key: &Key) -> Option<Arc<Entry>> {
        self.caches().iter().find_map(|cache| cache.entry(key))
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        let caches = self.caches();
        caches.iter().flat_map(|cache| cache.entries()).collect()
    }

    /// Whether all that a run needs of this computation is there.
    pub(crate) fn has(&self, record: &RecordHead) -> bool {
        let entry = self.entry(&record.key);
        entry.is_some_and(|entry| entry.record.run == record.run && entry.lacks().is_none())
    }

    fn clear(&self) {
        let caches = self.caches();
        let _before: Vec<_> = caches.iter().map(|cache| cache.forget_all()).collect();
        let _order = self.take_order();
        let _fresh = self.take_fresh();
    }

    fn take_order(&self) -> (SharedOrder, NotEvicted) {
        let order = std::mem::take(&mut *lock(&self.order));
        (order, std::mem::take(&mut *lock(&self.not_evicted)))
    }

    fn take_fresh(&self) -> Runs {
        std::mem::take(&mut lock(&self.fresh))
    }

    /// Takes note of a use that is one on all ranks.
    pub(crate) fn used(&self, cache: &Arc<AppCache>, key: Key) {
        lock(&self.order).used(cache, key);
    }

    /// How many of the results that these ranks made together, of those that `count` for the budget of an app, are to be
    /// evicted for this rank to keep to it.
    pub(crate) fn too_many(&self, of: &AppCache, count: impl Fn(&AppCache) -> bool) -> u32 {
        let Some(memory) = &of.counted else {
            return 0;
        };
        let (too_much, mut bytes, mut number) = (memory.0.collective_excess(), 0, 0);
        if too_much > 0 {
            for (cache, key) in lock(&self.order).of(count) {
                if bytes >= too_much {
                    break;
                }
                bytes += cache.entry(key).map_or(0, |entry| entry.known_memory());
                number += 1;
            }
        }
        number
    }

    /// Takes so many of those that `count` for one budget out of the order, which all ranks are to evict, with some that this
    /// one could not before.
    pub(crate) fn take_first(
        &self,
        number: u32,
        count: impl Fn(&AppCache) -> bool,
    ) -> Vec<(Arc<AppCache>, Arc<Entry>)> {
        let mut order = lock(&self.order);
        let first: Vec<_> = order.of(count).take(number as usize).cloned().collect();
        first.iter().for_each(|(_, key)| order.forget(key));
        drop(order);
        let first = first.into_iter();
        let first = first.filter_map(|(cache, key)| Some((Arc::clone(&cache), cache.entry(&key)?)));
        let mut not_evicted = lock(&self.not_evicted);
        let some = not_evicted.len().min(TRIED_AGAIN);
        let again = not_evicted.drain(..some);
        let again = again.filter_map(|(cache, entry)| Some((cache, entry.upgrade()?)));
        first.chain(again).collect()
    }

    pub(crate) fn note_not_evicted(&self, cache: Arc<AppCache>, entry: &Arc<Entry>) {
        lock(&self.not_evicted).push_back((cache, Arc::downgrade(entry)));
    }

    /// Gives the ordinary runs whose results others lack. From here on it keeps nothing, whoever still has a handle of it.
    pub(crate) fn end(&self) -> Runs {
        let _order = self.take_order();
        let _caches = std::mem::take(&mut *lock(&self.caches));
        self.take_fresh()
    }

    /// Takes note of runs whose results others lack, unless there are no others.
    pub(crate) fn add_fresh(&self, more: impl IntoIterator<Item = (Arc<str>, Key)>) {
        if !self.is_world() {
            lock(&self.fresh).extend(more);
        }
    }
}

/// So many that could not be evicted are tried again at each meeting.
const TRIED_AGAIN: usize = 4;

/// What the ranks of a set made together, that which was used longest ago first. It is the same on all of them, whatever each
/// has yet: it changes only where all are.
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

    /// Those of some apps.
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

/// All process sets of one engine, from the one the program began with to the innermost, and
/// what came from other ranks.
#[derive(Default)]
pub(crate) struct Sets {
    nested: Mutex<Vec<Arc<ProcessSet>>>,
    pub(crate) received: Received,
    /// What others have computed and this rank has not got.
    elsewhere: Mutex<BTreeSet<Key>>,
}

impl Sets {
    pub(crate) fn push(&self, set: Arc<ProcessSet>) {
        lock(&self.nested).push(set);
    }

    /// Takes off a set that is released, and ends those within it.
    pub(crate) fn remove(&self, id: u64) {
        let mut nested = lock(&self.nested);
        let at = nested.iter().position(|set| set.id() == id);
        let gone = at.map_or_else(Vec::new, |at| nested.split_off(at));
        drop(nested);
        for within in gone.iter().skip(1) {
            let _kept = within.end();
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<ProcessSet>> {
        lock(&self.nested).clone()
    }

    /// What each of the sets has under a key.
    pub(crate) fn entry(&self, key: &Key) -> impl Iterator<Item = Arc<Entry>> {
        self.all().into_iter().filter_map(|set| set.entry(key))
    }

    /// What a process set that was split has under a key, on which a part of it goes on.
    pub(crate) fn entry_of_larger(&self, key: &Key) -> Option<Arc<Entry>> {
        let all = self.all();
        let mut larger = all.iter().rev().skip(1);
        larger.find_map(|set| set.entry(key).filter(|entry| entry.lacks().is_none()))
    }

    /// Takes note of an ordinary run, if its results are to be given to others some day: within
    /// a part of the ranks.
    pub(crate) fn note_fresh(&self, app: &Arc<str>, key: Key) {
        let innermost = lock(&self.nested).last().cloned();
        if let Some(innermost) = innermost {
            innermost.add_fresh([(Arc::clone(app), key)]);
        }
    }

    /// Drops values of an app, as its cache does.
    pub(crate) fn clean(&self, app: &str, goes: impl Fn(Tags) -> bool, why: &'static str) {
        self.received.clean(app, &goes);
        for cache in self.caches(app) {
            cache.clean(|named| goes(named.tags.unwrap_or_default()), why);
        }
    }

    /// The caches of a distributed app.
    pub(crate) fn caches(&self, app: &str) -> Vec<Arc<AppCache>> {
        let sets = self.all();
        let caches = sets.iter().flat_map(|set| set.caches());
        caches.filter(|cache| *cache.name == *app).collect()
    }

    /// Takes note of what stayed on other ranks.
    pub(crate) fn note_elsewhere(&self, keys: impl Iterator<Item = Key>) {
        lock(&self.elsewhere).extend(keys);
    }

    /// What stayed on other ranks, as far as `is_still` says that it is not here now.
    pub(crate) fn elsewhere(&self, is_still: impl Fn(&Key) -> bool) -> Vec<Key> {
        // What is here now may go again, and is of this rank's own concern then.
        let mut stayed = std::mem::take(&mut *lock(&self.elsewhere));
        stayed.retain(is_still);
        let keys = stayed.iter().copied().collect();
        lock(&self.elsewhere).append(&mut stayed);
        keys
    }

    /// Forgets everything.
    pub(crate) fn forget_all(&self) {
        self.received.forget_all();
        lock(&self.elsewhere).clear();
        self.all().iter().for_each(|set| set.clear());
    }

    /// The entries of distributed apps, of all sets.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        let all = self.all();
        all.iter().flat_map(|set| set.entries()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ranks::group::OneProcess;

    fn ranks() -> Ranks {
        Ranks::world(Box::new(OneProcess), Duration::MAX, Arc::new(|_, _| ()))
    }

    /// Nobody would ever take it: the list would grow as long as the program runs.
    #[test]
    fn what_all_ranks_have_is_not_kept_for_others() {
        let runs = || [(Arc::from("app"), Key::from_bytes([1; 32]))];
        let world = ProcessSet::new(ranks());
        world.add_fresh(runs());
        assert_eq!(world.take_fresh(), []);
        let part = ranks().part(Box::new(OneProcess), 0, &[0]);
        let part = ProcessSet::new(part);
        part.add_fresh(runs());
        assert_eq!(part.take_fresh(), runs());
    }

    /// Found by counting bytes: some 160 of each run of a distributed app stayed when another store was loaded.
    #[test]
    fn what_is_forgotten_has_no_place_in_the_order_of_use() {
        let (set, sets) = (Arc::new(ProcessSet::new(ranks())), Sets::default());
        sets.push(Arc::clone(&set));
        let cache = set.cache(&AppCache::new(Arc::from("app"), None));
        set.used(&cache, Key::from_bytes([1; 32]));
        assert_eq!(lock(&set.order).of(|_| true).count(), 1);
        sets.forget_all();
        assert_eq!(lock(&set.order).of(|_| true).count(), 0);
        assert!(lock(&set.order).last_use.is_empty());
    }

    /// Its entries would be in memory as long as any handle of it.
    #[test]
    fn a_set_that_has_ended_keeps_nothing() {
        let part = || ProcessSet::new(ranks().part(Box::new(OneProcess), 0, &[0]));
        let (outer, inner) = (Arc::new(part()), Arc::new(part()));
        let sets = Sets::default();
        for set in [&outer, &inner] {
            sets.push(Arc::clone(set));
            set.cache(&AppCache::new(Arc::from("app"), None));
            set.add_fresh([(Arc::from("app"), Key::from_bytes([1; 32]))]);
        }
        sets.remove(outer.id());
        assert_eq!(outer.end().len(), 1);
        for set in [outer, inner] {
            assert!(set.caches().is_empty());
            assert_eq!(set.take_fresh(), []);
        }
    }
}
