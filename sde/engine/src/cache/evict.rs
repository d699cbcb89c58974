//! Dropping values of a cache, those that were used longest ago first.

use std::sync::Arc;

use super::app_cache::{AppCache, Slot};
use super::entry::Entry;
use crate::key::Key;

/// Why a value is gone.
const WHY: &str = "it was dropped to make room";

impl AppCache {
    /// Drops values that nobody holds, those that were used longest ago first, until all that are
    /// left take so many bytes; gives the entries that had them. `let_go` is told what is about to be dropped.
    pub(crate) fn evict(&self, keep: usize, let_go: impl Fn(&[Key])) -> Vec<Arc<Entry>> {
        let budget = &self.budget;
        if budget.limit().is_none() {
            // Nobody has listed them.
            budget.list(self.entries().iter().map(|entry| &**entry));
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
