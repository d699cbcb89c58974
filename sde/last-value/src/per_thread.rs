//! The cell for threads that work on different things: a record for each.
//!
//! With one shared record, two threads that compute different things overwrite each other's record, and neither finds
//! its own. With a record for each thread, both do. As no other thread writes to a thread's cache line, hits on all
//! threads go at the speed of one.
//!
//! A slot is guarded even so, by a flag that nobody waits for: there may be more threads than slots, and `clear` looks
//! into all slots.

use super::try_cell::TryCell;
use super::{Epoch, FIRST_EPOCH};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::thread_number;
use crossbeam_utils::CachePadded;
use std::borrow::Borrow;
use std::sync::OnceLock;

#[derive(Debug)]
struct Record<K, V> {
    epoch: u64,
    key: K,
    value: V,
}

/// The slot of one thread, as a rule.
type Slot<K, V> = TryCell<Option<Record<K, V>>>;

/// The last key and value of each thread.
///
/// There is a fixed number of slots, twice the number of cores unless chosen otherwise
/// ([`with_slots`](Self::with_slots)). A thread gets the lowest free slot and keeps it. With more threads than slots,
/// some share one and find each other's records, or none. The record of a thread that ended stays until the next thread
/// in its slot sets one, or until the cell is cleared.
///
/// # Cost
///
/// `get` is one read-modify-write on a cache line that is the thread's own, the comparison, and the
/// clone of the value. Nothing is allocated. `set` costs about the same;
/// [`set_with`](Self::set_with) reuses the old key's memory.
///
/// Nobody waits. If a thread is stopped inside its slot, threads that share the slot compute; the others notice
/// nothing.
///
/// # Examples
///
/// ```
/// use sde::last_value::LastValuePerThread;
/// use std::sync::Arc;
///
/// let last = LastValuePerThread::<String, Arc<str>>::new();
/// last.set("water".to_owned(), Arc::from("H2O"));
/// assert_eq!(last.get("water").as_deref(), Some("H2O"));
/// assert_eq!(last.get("benzene"), None);
///
/// // What another thread computes does not push ours out.
/// std::thread::scope(|scope| {
///     scope.spawn(|| last.set("benzene".to_owned(), Arc::from("C6H6")));
/// });
/// assert!(last.get("water").is_some());
/// ```
#[derive(Debug)]
pub struct LastValuePerThread<K, V> {
    epoch: CachePadded<AtomicU64>,
    // A power of two of them.
    slots: Box<[CachePadded<Slot<K, V>>]>,
}

/// Twice as many as the machine has cores, at least 8: a power of two.
pub(super) fn slots_by_default() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES
        .get_or_init(|| std::thread::available_parallelism().map_or(4, std::num::NonZero::get));
    (2 * cores).clamp(8, 1024).next_power_of_two()
}

impl<K, V> LastValuePerThread<K, V> {
    /// An empty cell with twice as many slots as the machine has cores, at least 8.
    pub fn new() -> Self {
        Self::with_slots(slots_by_default())
    }

    /// An empty cell with `slots` slots or the next power of two; at least one, at most 1024.
    pub fn with_slots(slots: usize) -> Self {
        let slot = || CachePadded::new(TryCell::new(None));
        Self {
            epoch: CachePadded::new(AtomicU64::new(FIRST_EPOCH)),
            slots: (0..slots.clamp(1, 1024).next_power_of_two())
                .map(|_| slot())
                .collect(),
        }
    }

    /// The value this thread last set, if its key satisfies `matches` and it was set since the last
    /// [`clear`](Self::clear).
    ///
    /// While `matches` and the value's `clone` run, the slot is taken: if they use the cell, they
    /// find nothing and store nothing.
    #[inline]
    pub fn get_by(&self, matches: impl FnOnce(&K) -> bool) -> Option<V>
    where
        V: Clone,
    {
        self.look_by(matches, V::clone)
    }

    /// Calls `look` with the value that [`get_by`](Self::get_by) would clone.
    #[inline]
    pub fn look_by<R>(
        &self,
        matches: impl FnOnce(&K) -> bool,
        look: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        let epoch = self.epoch().0;
        self.slot().enter(|record| {
            let record = record.as_ref().filter(|record| record.epoch == epoch)?;
            matches(&record.key).then(|| look(&record.value))
        })?
    }

    /// The value this thread last set, if it was set for `key` and since the last
    /// [`clear`](Self::clear).
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
        V: Clone,
    {
        self.get_by(|last| last.borrow() == key)
    }

    /// Makes this the thread's last key and value, which must have been computed after the last
    /// [`clear`](Self::clear); see [`set_at`](Self::set_at). `false` if the slot was taken.
    pub fn set(&self, key: K, value: V) -> bool {
        self.set_at(self.epoch(), key, value)
    }

    /// The current epoch, to be taken before a computation.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Sets a value whose computation began at `epoch`. `false` also if the cell was cleared since.
    pub fn set_at(&self, epoch: Epoch, key: K, value: V) -> bool {
        let new = Record {
            epoch: epoch.0,
            key,
            value,
        };
        self.exchange(epoch, |slot| slot.replace(new))
    }

    /// Sets a value whose computation began at `epoch`, with a key made from the old one, whose memory it may reuse.
    ///
    /// `key` is called with the slot's last key, of whatever thread, or `None`. It runs while the slot
    /// is taken, and not at all if the result is `false`. If it panics the slot is left empty.
    pub fn set_with(&self, epoch: Epoch, key: impl FnOnce(Option<K>) -> K, value: V) -> bool {
        self.exchange(epoch, |slot| {
            let (old_key, old_value) = slot
                .take()
                .map_or((None, None), |old| (Some(old.key), Some(old.value)));
            let key = key(old_key);
            *slot = Some(Record {
                epoch: epoch.0,
                key,
                value,
            });
            old_value
        })
    }

    /// The value for `key`: the remembered one or else what `compute` returns, which is then
    /// remembered unless the slot is taken or the cell was cleared meanwhile.
    pub fn get_or_compute<Q>(&self, key: &Q, compute: impl FnOnce() -> V) -> V
    where
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        let epoch = self.epoch();
        self.get(key).unwrap_or_else(|| {
            let value = compute();
            self.set_at(epoch, key.to_owned(), value.clone());
            value
        })
    }

    /// Empties all slots and drops what they held. Once this has returned, no value computed before
    /// is found, not even one that is being stored at this moment.
    ///
    /// A slot is passed over if its thread is in it through a hundred looks, as when the thread was stopped there. Then
    /// the result is `false`: the slot's record is not found any more, but stays in memory until the slot is written or
    /// cleared again.
    pub fn clear(&self) -> bool {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let left = self.slots.iter().filter(|slot| !slot.empty());
        left.count() == 0
    }

    #[inline]
    fn slot(&self) -> &Slot<K, V> {
        &self.slots[thread_number() & (self.slots.len() - 1)]
    }

    /// Changes this thread's record unless `epoch` is over. The result of `change` is dropped when the slot is free
    /// again: a destructor may take its time, and may use the cell.
    fn exchange<Old>(
        &self,
        epoch: Epoch,
        change: impl FnOnce(&mut Option<Record<K, V>>) -> Option<Old>,
    ) -> bool {
        // If `change` is not called, it too is dropped when the slot is free again.
        let mut change = Some(change);
        let old = self.slot().enter(|slot| {
            // Looked at from inside: a clear that comes later looks into this slot later, so what
            // we store does not outlive it.
            let change = change.take_if(|_| self.epoch() == epoch)?;
            Some(change(slot))
        });
        matches!(old, Some(Some(_)))
    }
}

impl<K, V> Default for LastValuePerThread<K, V> {
    fn default() -> Self {
        Self::new()
    }
}
