//! The cell for any data: a record that is exchanged whole.
//!
//! A record is never changed once it is in the cell; a writer replaces it by a new one. Readers look at the current
//! record without touching its reference count: counting would have all of them write to one cache line.

use super::{Epoch, FIRST_EPOCH};
use crate::sync::ArcCell;
use crate::sync::atomic::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::borrow::Borrow;

/// The record that is exchanged. Read-only.
#[derive(Debug)]
struct Record<K, V> {
    epoch: u64,
    key: K,
    value: V,
}

/// The last key and value, of any types, shared by all threads.
///
/// # Cost
///
/// `get` compares the key in place and clones only the value it returns. Readers do not disturb one another, except by
/// what that clone does (for an `Arc`, its own count). `set` allocates a record and exchanges it for the old one. A
/// rare `set` costs nothing. If two threads set in turn, the record travels between their cores, and each loses the
/// other's: then use [`LastValuePerThread`](super::LastValuePerThread).
///
/// Neither waits for the other: a stopped writer or reader leaves the cell usable. The old record is dropped by the
/// writer or, if readers were looking at it, by the last of them.
///
/// # Examples
///
/// ```
/// use sde::last_value::LastValue;
/// use std::sync::Arc;
///
/// static LAST: LastValue<String, Arc<[f64]>> = LastValue::new();
///
/// fn table(name: &str) -> Arc<[f64]> {
///     LAST.get_or_compute(name, || Arc::from(vec![0.5; name.len()]))
/// }
///
/// let first = table("water");
/// assert!(Arc::ptr_eq(&first, &table("water")));
/// assert!(LAST.get("benzene").is_none());
/// ```
#[derive(Debug)]
pub struct LastValue<K, V> {
    epoch: CachePadded<AtomicU64>,
    record: ArcCell<Record<K, V>>,
}

impl<K, V> LastValue<K, V> {
    /// An empty cell.
    #[cfg(not(sde_model))]
    pub const fn new() -> Self {
        let epoch = CachePadded::new(AtomicU64::new(FIRST_EPOCH));
        Self {
            epoch,
            record: ArcCell::empty(),
        }
    }

    /// An empty cell (loom's atomics cannot be made at compile time).
    #[cfg(sde_model)]
    pub fn new() -> Self {
        let epoch = CachePadded::new(AtomicU64::new(FIRST_EPOCH));
        Self {
            epoch,
            record: ArcCell::empty(),
        }
    }

    /// The value last set, if its key satisfies `matches` and it was set since the last
    /// [`clear`](Self::clear).
    ///
    /// `matches` may use the cell.
    #[inline]
    pub fn get_by(&self, matches: impl FnOnce(&K) -> bool) -> Option<V>
    where
        V: Clone,
    {
        let epoch = self.epoch();
        self.record.look(|record| {
            let record = record.filter(|record| record.epoch == epoch.0)?;
            matches(&record.key).then(|| record.value.clone())
        })
    }

    /// The value last set, if it was set for `key` and since the last [`clear`](Self::clear).
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
        V: Clone,
    {
        self.get_by(|last| last.borrow() == key)
    }

    /// Makes this the last key and value, which must have been computed after the last
    /// [`clear`](Self::clear); see [`set_at`](Self::set_at).
    pub fn set(&self, key: K, value: V) -> bool {
        self.set_at(self.epoch(), key, value)
    }

    /// The current epoch, to be taken before a computation.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Sets a value whose computation began at `epoch`. `false` if the cell was cleared since and the value is not
    /// kept.
    pub fn set_at(&self, epoch: Epoch, key: K, value: V) -> bool {
        if self.epoch() != epoch {
            return false;
        }
        self.record.replace(Some(Record {
            epoch: epoch.0,
            key,
            value,
        }));
        // A clear may have raised the epoch and emptied the cell before our record came in. No look-up finds the record
        // then, but it must not stay in memory. (If this removes another thread's newer record, that is computed
        // again.)
        let current = self.epoch() == epoch;
        if !current {
            self.record.replace(None);
        }
        current
    }

    /// The value for `key`: the remembered one or else what `compute` returns, which is then
    /// remembered unless the cell was cleared meanwhile.
    ///
    /// Several threads that ask for the same key at the same time may each compute it.
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

    /// Empties the cell and drops what it held. Once this has returned, no value computed before is
    /// found, not even one that is being stored at this moment.
    pub fn clear(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.record.replace(None);
    }
}

impl<K, V> Default for LastValue<K, V> {
    fn default() -> Self {
        Self::new()
    }
}
