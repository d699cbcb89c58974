//! Evicting values of an app that may take only so much memory.
//!
//! Some values hold more than memory of the process, a kernel on a GPU for one, and would fill
//! what there is for them. So the values of an app may have a limit. When it is passed, those that
//! were used longest ago go, until seven eighths are left; what the program holds too stays, since dropping it
//! would free nothing. The records of the runs stay too.
//!
//! Entries are listed by when they were used last, as far as that is known: a hit only writes the time into its
//! entry (hits of several threads on one entry must not write to the same place again and again, so
//! the time is how many entries had come by then), and an entry that is about to go is listed anew if it was used since.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::entry::Entry;
use crate::key::{BuildKeyHasher, Key};
use crate::sync::lock;

/// How much memory the values of an app may take, and do.
#[derive(Default)]
pub(crate) struct MemoryBudget {
    limit: Option<usize>,
    /// Beyond this values are evicted. More than the limit while much of what there is can't go: it is not looked at
    /// again for each entry that comes.
    next: AtomicUsize,
    /// How many bytes are listed.
    bytes: AtomicUsize,
    /// How many entries have come.
    time: AtomicU64,
    lru: Mutex<LruList>,
    /// Whether it was told that some values have no size.
    pub(crate) told: AtomicBool,
}

/// What has to go goes in pieces of so many bytes: a store that it is saved to first makes a copy.
const PIECE: usize = 16 << 20;

/// The entries with values, the one that was used longest ago first.
#[derive(Default)]
struct LruList {
    by_use: BTreeMap<(u64, Key), usize>,
    used: HashMap<Key, u64, BuildKeyHasher>,
    bytes: usize,
}

impl LruList {
    /// Lists an entry as it is now.
    fn put(&mut self, entry: &Entry) {
        let (key, used, bytes) = (entry.record.key, entry.used(), entry.bytes());
        if let Some(before) = self.used.remove(&key) {
            self.bytes -= self.by_use.remove(&(before, key)).unwrap_or_default();
        }
        if bytes > 0 {
            self.used.insert(key, used);
            self.by_use.insert((used, key), bytes);
            self.bytes += bytes;
        }
    }
}

impl MemoryBudget {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self {
            limit,
            next: AtomicUsize::new(limit.unwrap_or(usize::MAX)),
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Takes note of a use, if uses matter.
    #[inline]
    pub(crate) fn used(&self, entry: &Entry) {
        if self.limit.is_some() {
            entry.set_used(self.time.load(Ordering::Relaxed));
        }
    }

    /// One later than all times until now.
    pub(crate) fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes note of an entry that is in the map now.
    pub(super) fn added(&self, entry: &Entry) {
        if self.limit.is_some() {
            entry.set_used(self.tick());
            self.list([entry]);
        }
    }

    /// Takes note of entries that have lost values.
    pub(super) fn cleaned<'e>(&self, entries: impl IntoIterator<Item = &'e Entry>) {
        if self.limit.is_some() {
            self.list(entries);
        }
    }

    /// Nothing is left.
    pub(super) fn forget_all(&self) {
        *self.lock() = LruList::default();
        self.bytes.store(0, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, LruList> {
        lock(&self.lru)
    }

    /// Takes note of what entries have now.
    pub(crate) fn list<'e>(&self, entries: impl IntoIterator<Item = &'e Entry>) {
        let mut lru = self.lock();
        entries.into_iter().for_each(|entry| lru.put(entry));
        self.bytes.store(lru.bytes, Ordering::Release);
    }

    /// How much may stay, if there is too much.
    pub(crate) fn is_over(&self) -> Option<usize> {
        let limit = self.limit?;
        let is_over = self.bytes.load(Ordering::Acquire) > self.next.load(Ordering::Relaxed);
        is_over.then_some(limit - limit / 8)
    }

    /// Takes off the list a piece of what has to go so that no more than this is left: the entries that were used longest
    /// ago, as far as is known, and before this time.
    pub(crate) fn take_oldest(&self, keep: usize, before: u64) -> Vec<(u64, Key)> {
        let mut lru = self.lock();
        let mut oldest = Vec::new();
        let keep = keep.max(lru.bytes.saturating_sub(PIECE));
        while lru.bytes > keep
            && let Some(first) = lru.by_use.first_entry()
            && first.key().0 < before
        {
            let (at, bytes) = first.remove_entry();
            lru.used.remove(&at.1);
            lru.bytes -= bytes;
            oldest.push(at);
        }
        self.bytes.store(lru.bytes, Ordering::Release);
        oldest
    }

    /// What could not go is not looked at again before an eighth of the limit has come.
    pub(crate) fn put_off(&self) {
        if let Some(limit) = self.limit {
            let left = self.bytes.load(Ordering::Acquire);
            let next = left.saturating_add(limit / 8).max(limit);
            self.next.store(next, Ordering::Relaxed);
        }
    }
}
