//! How a cache reports its entries to the memory budget that counts them.

use std::sync::Arc;

use super::app_cache::AppCache;
use super::key_state::{Change, KeyState};
use super::ledger::AccountState;
use crate::entry::Entry;

impl AppCache {
    /// Measures the values of an entry before it is put into the map, if a budget counts this cache.
    pub(crate) fn measure(&self, entry: &Entry) {
        if self.counted.is_some() {
            entry.bytes();
        }
    }

    pub(super) fn measured(&self, entry: Arc<Entry>) -> Arc<Entry> {
        self.measure(&entry);
        entry
    }

    /// Nanoseconds to get an entry back once it has left.
    pub(crate) fn cost(&self, entry: &Entry) -> u64 {
        self.counted
            .as_ref()
            .map_or(entry.nanos(), |(memory, _)| memory.cost(entry))
    }

    /// Takes note of a use, if uses matter.
    #[inline]
    pub(crate) fn used(&self, entry: &Entry) {
        if let Some((memory, _)) = &self.counted {
            memory.used(entry);
        }
    }

    /// Drops an entry, or replaces it by `after`. Does nothing if the entry is being computed again or was replaced.
    /// Says whether it did.
    pub(crate) fn replace_unless_flying(
        &self,
        entry: &Arc<Entry>,
        after: Option<Arc<Entry>>,
    ) -> bool {
        let (is_replaced, _before) = self.change(entry.record.key, |slot| match slot {
            Some(KeyState::Ready(there) | KeyState::Failed(there)) if Arc::ptr_eq(there, entry) => {
                (true, Change::to(slot, after))
            }
            _ => (false, Change::Keep),
        });
        is_replaced
    }

    /// Counts a saved entry anew: its record is smaller. An entry that stayed because no store had it may leave.
    pub(crate) fn count_as_saved(&self, entry: &Arc<Entry>) {
        if let Some((memory, _)) = &self.counted
            && memory.measure_saved(entry)
        {
            self.count_again(entry, AccountState::MayLeave);
        }
    }

    /// Lists a victim again that stays in memory.
    pub(crate) fn count_again(&self, entry: &Arc<Entry>, state: AccountState) {
        let Some((memory, owner)) = &self.counted else {
            return;
        };
        if let Some(slot) = self.map.get(&entry.record.key)
            && let Some(there) = self.counts_of(Some(slot.key()))
            && Arc::ptr_eq(there, entry)
        {
            memory.count_again(*owner, entry, state);
        }
    }
}

/// The cache of a process set takes its entries off the list when the set ends.
impl Drop for AppCache {
    fn drop(&mut self) {
        if let Some((memory, owner)) = &self.counted {
            for slot in &self.map {
                memory.change(*owner, self.counts_of(Some(slot.key())), None);
            }
        }
    }
}
