//! Evicting values of an app that may take only so much memory.
//!
//! Some values hold more than memory of the process, a kernel on a GPU for one, and would fill
//! what there is for them. So the values of an app may have a limit. When it is passed, those that
//! were used longest ago go, until seven eighths are left; what somebody holds stays, since dropping it
//! would free nothing. The records of the runs stay too.
//!
//! Entries are listed by when they were used last, as far as that is known: a hit only writes the time into its
//! entry (hits of several threads on one entry must not write to the same place again and again, so
//! the time is how many entries had come by then), and an entry that is about to go is listed anew if it was used since.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::app_cache::{AppCache, Slot};
use super::entry::Entry;
use crate::key::{BuildKeyHasher, Key};
use crate::sync::lock;

/// Why a value is gone.
const WHY: &str = "it was dropped to make room";

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
    listed: Mutex<Listed>,
    /// Whether it was told that some values have no size.
    pub(crate) told: AtomicBool,
}

/// What has to go goes in pieces of so many bytes: a store that it is saved to first makes a copy.
const PIECE: usize = 16 << 20;

/// The entries with values, the one that was used longest ago first.
#[derive(Default)]
struct Listed {
    by_use: BTreeMap<(u64, Key), usize>,
    used: HashMap<Key, u64, BuildKeyHasher>,
    bytes: usize,
}

impl Listed {
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

    /// Takes note of an entry that is in the map now.
    pub(super) fn added(&self, entry: &Entry) {
        if self.limit.is_some() {
            entry.set_used(self.time.fetch_add(1, Ordering::Relaxed) + 1);
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
        *self.lock() = Listed::default();
        self.bytes.store(0, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Listed> {
        lock(&self.listed)
    }

    /// Takes note of what entries have now.
    fn list<'e>(&self, entries: impl IntoIterator<Item = &'e Entry>) {
        let mut listed = self.lock();
        entries.into_iter().for_each(|entry| listed.put(entry));
        self.bytes.store(listed.bytes, Ordering::Release);
    }

    /// How much may stay, if there is too much.
    pub(crate) fn is_over(&self) -> Option<usize> {
        let limit = self.limit?;
        let is_over = self.bytes.load(Ordering::Acquire) > self.next.load(Ordering::Relaxed);
        is_over.then_some(limit - limit / 8)
    }

    /// Takes off the list a piece of what has to go so that no more than this is left: the entries that were used longest
    /// ago, as far as is known, and before this time.
    fn take_oldest(&self, keep: usize, before: u64) -> Vec<(u64, Key)> {
        let mut listed = self.lock();
        let mut oldest = Vec::new();
        let keep = keep.max(listed.bytes.saturating_sub(PIECE));
        while listed.bytes > keep
            && let Some(first) = listed.by_use.first_entry()
            && first.key().0 < before
        {
            let (at, bytes) = first.remove_entry();
            listed.used.remove(&at.1);
            listed.bytes -= bytes;
            oldest.push(at);
        }
        self.bytes.store(listed.bytes, Ordering::Release);
        oldest
    }

    /// What could not go is not looked at again before an eighth of the limit has come.
    fn put_off(&self) {
        if let Some(limit) = self.limit {
            let left = self.bytes.load(Ordering::Acquire);
            let next = left.saturating_add(limit / 8).max(limit);
            self.next.store(next, Ordering::Relaxed);
        }
    }
}

impl AppCache {
    /// Drops values that nobody holds, those that were used longest ago first, until all that are
    /// left take so many bytes; gives the entries that had them. `let_go` is told what is about to be dropped.
    pub(crate) fn evict(&self, keep: usize, let_go: impl Fn(&[Key])) -> Vec<Arc<Entry>> {
        let budget = &self.budget;
        if budget.limit.is_none() {
            // Nobody has listed them.
            budget.list(self.entries().iter().map(|entry| &**entry));
        }
        let now = budget.time.fetch_add(1, Ordering::Relaxed) + 1;
        let mut gone = Vec::new();
        loop {
            let oldest = budget.take_oldest(keep, now);
            if oldest.is_empty() {
                break;
            }
            let entries = oldest
                .into_iter()
                .filter_map(|(listed, key)| Some((listed, self.entry(&key)?)));
            let (used, unused): (Vec<_>, Vec<_>) =
                entries.partition(|(listed, entry)| entry.used() > *listed);
            budget.list(used.iter().map(|(_, entry)| &**entry));
            let keys: Vec<Key> = unused.iter().map(|(_, entry)| entry.record.key).collect();
            let_go(&keys);
            for key in &keys {
                gone.extend(self.take_values(key, now));
            }
        }
        budget.put_off();
        if !gone.is_empty() {
            // A thread's last value would keep what is to go.
            self.recent.clear();
        }
        gone
    }

    /// Has only the record stay of an entry, if nobody holds its values; gives what was there.
    fn take_values(&self, key: &Key, now: u64) -> Option<Arc<Entry>> {
        let mut slot = self.map.get_mut(key)?;
        let (taken, stands) = match &mut *slot {
            Slot::Ready(entry) if !entry.is_in_use() => {
                let without = Arc::new(entry.without(|_| true, WHY));
                (
                    Some(std::mem::replace(entry, Arc::clone(&without))),
                    without,
                )
            }
            Slot::Ready(entry) | Slot::Flying(_, Some(entry)) => {
                entry.set_used(now);
                (None, Arc::clone(entry))
            }
            _ => return None,
        };
        drop(slot);
        self.budget.list([&*stands]);
        taken
    }
}
