//! What a cache tells the memory budget that counts its entries.

use std::sync::Arc;

use super::app_cache::{AppCache, Change, Slot};
use super::entry::Entry;
use super::memory::Stays;

impl AppCache {
    /// Asks the values of an entry what they take, if that is counted: before the entry is put into the map.
    pub(crate) fn measure(&self, entry: &Entry) {
        if self.counted.is_some() {
            entry.bytes();
        }
    }

    pub(super) fn measured(&self, entry: Arc<Entry>) -> Arc<Entry> {
        self.measure(&entry);
        entry
    }

    /// What having an entry again takes, in nanoseconds.
    pub(crate) fn cost(&self, entry: &Entry) -> u64 {
        self.counted
            .as_ref()
            .map_or(entry.nanos, |(memory, _)| memory.cost(entry))
    }

    /// Takes note of a use, if uses matter.
    #[inline]
    pub(crate) fn used(&self, entry: &Entry) {
        if let Some((memory, _)) = &self.counted {
            memory.used(entry);
        }
    }

    /// Drops an entry, or what another lacks of it, unless it is being computed again or was replaced; says whether it did.
    pub(crate) fn evict(&self, entry: &Arc<Entry>, after: Option<Arc<Entry>>) -> bool {
        let is_it = |slot: Option<&Slot>| matches!(slot, Some(Slot::Ready(there) | Slot::Failed(there)) if Arc::ptr_eq(there, entry));
        let (is_evicted, _before) =
            self.change(entry.record.key, |slot| match (is_it(slot), after) {
                (false, _) => (false, Change::Keep),
                (true, Some(after)) => (true, Change::Put(Slot::Ready(after))),
                (true, None) => (true, Change::Remove),
            });
        is_evicted
    }

    /// What an entry takes is less now, and if it stayed for want of a store it may leave.
    pub(crate) fn count_as_saved(&self, entry: &Arc<Entry>) {
        if let Some((memory, _)) = &self.counted
            && memory.keeps_saved(entry)
        {
            self.count_again(entry, Stays::ForNow);
        }
    }

    /// Has an entry counted that was to leave and stays.
    pub(crate) fn count_again(&self, entry: &Arc<Entry>, why: Stays) {
        let Some((memory, owner)) = &self.counted else {
            return;
        };
        if let Some(slot) = self.map.get(&entry.record.key)
            && let Some(there) = self.counts_of(Some(&slot))
            && Arc::ptr_eq(there, entry)
        {
            memory.count_again(*owner, entry, why);
        }
    }
}

/// A process set that ends takes what its ranks made together off the list.
impl Drop for AppCache {
    fn drop(&mut self) {
        if let Some((memory, owner)) = &self.counted {
            for slot in &self.map {
                memory.change(*owner, self.counts_of(Some(&slot)), None);
            }
        }
    }
}

/// Why a value is gone that made room.
pub(crate) const EVICTED: &str = "it was dropped to make room";
