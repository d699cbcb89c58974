//! Making room: values of an app that may take only so much memory.
//!
//! Some values hold more than memory of the process, a kernel on a GPU for one, and would fill
//! what there is for them. So the values of an app may have a limit. When it is passed, those that
//! were used longest ago go, until seven eighths are left; what somebody holds stays, since dropping it
//! would free nothing. The records of the runs stay too.
//!
//! Uses are dated by how many entries had come by then, and written to an entry only if that has
//! changed: hits of several threads on one entry must not write to the same place again and again.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::app_cache::{AppCache, Slot};
use super::entry::Entry;
use crate::key::Key;

/// Why a value is gone.
const WHY: &str = "it was dropped to make room";

/// How much room an app has, and takes.
#[derive(Default)]
pub(crate) struct Room {
    limit: Option<usize>,
    /// How many bytes the entries hold. Those that come while they are counted may be in it twice,
    /// until they are counted again; none is left out.
    held: AtomicUsize,
    /// How many entries have come.
    time: AtomicU64,
    counting: Mutex<()>,
}

impl Room {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self {
            limit,
            ..Self::default()
        }
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
            let time = self.time.fetch_add(1, Ordering::Relaxed) + 1;
            entry.set_used(time);
            self.held.fetch_add(entry.bytes(), Ordering::AcqRel);
        }
    }

    /// How much may stay, if there is too much.
    pub(crate) fn is_over(&self) -> Option<usize> {
        let limit = self.limit?;
        let is_over = self.held.load(Ordering::Acquire) > limit;
        is_over.then_some(limit - limit / 8)
    }
}

/// An entry that may go.
struct Candidate {
    key: Key,
    used: u64,
    bytes: usize,
}

impl AppCache {
    /// Drops values that nobody holds, those that were used longest ago first, until all that are
    /// left take so many bytes; gives the entries that had them.
    pub(crate) fn make_room(&self, keep: usize) -> Vec<Arc<Entry>> {
        let _one = self
            .room
            .counting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = self.room.held.load(Ordering::Acquire);
        let mut candidates = self.candidates();
        let mut held: usize = candidates.iter().map(|one| one.bytes).sum();
        candidates.sort_unstable_by_key(|one| one.used);
        let mut gone = Vec::new();
        for one in candidates.iter().filter(|one| one.bytes > 0) {
            if held <= keep {
                break;
            }
            if let Some(entry) = self.take_values(&one.key) {
                held -= one.bytes;
                gone.push(entry);
            }
        }
        if !gone.is_empty() {
            // A thread's last value would keep what is to go.
            self.recent.clear();
        }
        self.room
            .held
            .fetch_add(held.wrapping_sub(before), Ordering::AcqRel);
        gone
    }

    fn candidates(&self) -> Vec<Candidate> {
        let of = |entry: &Arc<Entry>| Candidate {
            key: entry.record.key,
            used: entry.used(),
            bytes: entry.bytes(),
        };
        let entries = self.map.iter().filter_map(|slot| match &*slot {
            Slot::Ready(entry) | Slot::Flying(_, Some(entry)) => Some(of(entry)),
            _ => None,
        });
        entries.collect()
    }

    /// Has only the record stay of an entry whose values nobody holds; gives what was there.
    fn take_values(&self, key: &Key) -> Option<Arc<Entry>> {
        let mut slot = self.map.get_mut(key)?;
        let Slot::Ready(entry) = &mut *slot else {
            return None;
        };
        if entry.is_in_use() {
            return None;
        }
        let without = Arc::new(entry.without(|_| true, WHY));
        Some(std::mem::replace(entry, without))
    }
}
