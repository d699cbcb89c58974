//! The entries and flights of one app type.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dashmap::{DashMap, SharedValue};

use super::key_state::{Change, KeyState};
use super::ledger::Owner;
use super::memory::Memory;
use super::run_cost::RunCost;
use super::run_flight::RunFlight;
use super::scratches::Scratches;
use super::stats::Counters;
use crate::entry::{Entry, Provenance, Served};
use crate::error::Error;
use crate::key::{BuildKeyHasher, Key};
use crate::result_map::Named;
use crate::sync::{Held, lock};

/// The parts of the map, each with a lock of its own. Readers of a part write to its lock, so threads that hit
/// different keys must seldom meet in one. A part takes 128 bytes.
const SHARDS: usize = 128;

/// The cache of one app type.
pub(crate) struct AppCache {
    pub(crate) name: Arc<str>,
    pub(super) map: DashMap<KeyState, (), BuildKeyHasher>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) scratches: Arc<Scratches>,
    /// The budget that counts its entries, if any, and the owner that they count for.
    pub(crate) counted: Option<(Arc<Memory>, Owner)>,
    /// The provenance of the latest run, to be shared by the next.
    latest: Mutex<Option<Arc<Provenance>>>,
    /// Times that runs took, noted where work is shared with other processes.
    pub(crate) cost: RunCost,
    /// Whether a run turned out to be non-deterministic. Other processes then make no use of this one's results.
    pub(crate) varies: AtomicBool,
    /// The exclusive runs, if the app is not thread-safe: one for all, and one for the runs nested in each run, by the
    /// address of its frame.
    pub(crate) exclusive_runs: Mutex<HashMap<usize, Arc<RunFlight>>>,
    /// Whether any run has gone on without a claim; the map knows nothing of such runs.
    pub(crate) unclaimed: AtomicBool,
    /// Raised when the contents are swapped. A flight of an earlier generation publishes to its waiters only.
    generation: AtomicU64,
}

/// The earlier slot and the entry taken off the list. Drop both with no lock held and no thread waiting: destructors
/// may use the engine.
pub(crate) type Before = (Option<KeyState>, Option<Arc<Entry>>);

/// Which of several computations gives a key its results.
pub(crate) enum Decision {
    /// The caller's, which the caller must [show](AppCache::show) by this flight: its own, or a new one if that has
    /// failed. The cache keeps them unless its contents were swapped or a third flight has the key.
    Won {
        flight: Arc<RunFlight>,
        is_kept: bool,
    },
    /// The results of this entry, which was decided on before.
    Lost(Arc<Entry>),
}

/// The outcome of claiming a key.
pub(crate) enum Claimed {
    /// The key has an entry that is new to the caller.
    Ready(Arc<Entry>),
    /// The run failed before, and is not to be made again.
    Failed(Error),
    /// The caller has the claim and must end the flight. The entry is the one that the key had before.
    Mine(Arc<RunFlight>, Option<Arc<Entry>>),
    /// Another call has the claim.
    Theirs(Arc<RunFlight>),
}

impl AppCache {
    pub(crate) fn new(name: Arc<str>, counted: Option<(Arc<Memory>, Owner)>) -> Self {
        Self {
            name,
            map: DashMap::with_hasher_and_shard_amount(BuildKeyHasher::default(), SHARDS),
            counters: Arc::default(),
            scratches: Arc::default(),
            counted,
            latest: Mutex::default(),
            cost: RunCost::default(),
            varies: AtomicBool::new(false),
            exclusive_runs: Mutex::default(),
            unclaimed: AtomicBool::new(false),
            generation: AtomicU64::new(0),
        }
    }

    /// A cache of the same app for results that the ranks of a process set make together. Both share counters and
    /// scratches.
    pub(crate) fn of_set(&self) -> Self {
        let memory = self.counted.as_ref().map(|(memory, _)| memory);
        let counted = memory.map(|memory| (Arc::clone(memory), Owner::Ranks));
        let mut of_set = Self::new(Arc::clone(&self.name), counted);
        of_set.counters = Arc::clone(&self.counters);
        of_set.scratches = Arc::clone(&self.scratches);
        of_set
    }

    /// The provenance of a run, or that of the latest run if they are equal.
    pub(crate) fn provenance(&self, of_run: Provenance) -> Arc<Provenance> {
        let mut latest = lock(&self.latest);
        match &*latest {
            Some(one) if **one == of_run => Arc::clone(one),
            _ => Arc::clone(latest.insert(Arc::new(of_run))),
        }
    }

    /// The entry of a key, even if its values are gone or it is being computed again: until then its values are as
    /// good.
    pub(crate) fn entry(&self, key: &Key) -> Option<Arc<Entry>> {
        self.look_ready(key, Arc::clone)
    }

    /// Brings an entry's values up to date. Values that were read are then held like computed ones: a call finds them as
    /// fast, and they count with their size. Gives the entry that stands afterwards.
    pub(crate) fn update_values(&self, entry: Arc<Entry>) -> Arc<Entry> {
        let Some(now) = entry.with_values_as_they_are() else {
            return entry;
        };
        let now = self.measured(Arc::new(now));
        if let Some((memory, _)) = &self.counted {
            memory.note_read_time(entry.read_time());
        }
        if self.replace_unless_flying(&entry, Some(Arc::clone(&now))) {
            now
        } else {
            entry
        }
    }

    /// The failure that is remembered for a key in this epoch.
    pub(crate) fn failure(&self, key: &Key, epoch: u64) -> Option<Error> {
        let entry = self.failed_entry(key, epoch)?;
        entry.failure().map(|failed| failed.error.clone())
    }

    /// The entry of that failure.
    pub(crate) fn failed_entry(&self, key: &Key, epoch: u64) -> Option<Arc<Entry>> {
        self.failed_in(self.map.get(key)?.key(), epoch).cloned()
    }

    fn failed_in<'s>(&self, slot: &'s KeyState, epoch: u64) -> Option<&'s Arc<Entry>> {
        let KeyState::Failed(entry) = slot else {
            return None;
        };
        self.used(entry);
        Some(entry).filter(|entry| entry.is_checked(epoch))
    }

    /// Calls `look` with the result of [`entry`](Self::entry). The map's guard is held, so `look` must look at the
    /// entry only.
    #[inline]
    pub(crate) fn look_ready<R>(
        &self,
        key: &Key,
        look: impl FnOnce(&Arc<Entry>) -> R,
    ) -> Option<R> {
        let _held = Held::of::<KeyState>();
        self.map.get(key)?.key().entry().map(look)
    }

    /// Whether a run of this key may be going on, in this engine.
    pub(crate) fn may_be_running(&self, key: &Key) -> bool {
        self.is_flying(key) || self.unclaimed.load(Ordering::Acquire)
    }

    /// Whether the key is being computed.
    pub(crate) fn is_flying(&self, key: &Key) -> bool {
        let slot = self.map.get(key);
        slot.is_some_and(|slot| slot.key().under_way().is_some())
    }

    /// The one step that decides which caller computes. An entry that `is_new` to the caller is given; the caller
    /// checks whether it serves. `is_new` is called with the map's guard held and must look at the entry only. A
    /// failure remembered in `epoch` is given; `None` has it tried again.
    ///
    /// Drop the earlier contents once this thread is registered as running the key: a destructor may ask for it.
    pub(crate) fn claim(
        &self,
        key: Key,
        epoch: Option<u64>,
        is_new: impl Fn(&Arc<Entry>) -> bool,
    ) -> (Claimed, Before) {
        self.change(key, |slot| {
            if let Some(flight) = slot.and_then(KeyState::under_way) {
                return (Claimed::Theirs(Arc::clone(flight)), Change::Keep);
            }
            let failed = |(slot, epoch)| self.failed_in(slot, epoch)?.failure();
            if let Some(failed) = slot.zip(epoch).and_then(failed) {
                return (Claimed::Failed(failed.error.clone()), Change::Keep);
            }
            let previous = slot.and_then(KeyState::entry).cloned();
            if let Some(entry) = previous.as_ref().filter(|entry| is_new(entry)) {
                return (Claimed::Ready(Arc::clone(entry)), Change::Keep);
            }
            let flight = self.new_flight(key);
            let flying = KeyState::flying(&flight, previous.clone());
            (Claimed::Mine(flight, previous), Change::Put(flying))
        })
    }

    /// Changes the slot of a key and the budget's count of it. Drop the contents given back once the map's lock is
    /// free: destructors may use the cache.
    pub(super) fn change<R>(
        &self,
        key: Key,
        change: impl FnOnce(Option<&KeyState>) -> (R, Change),
    ) -> (R, Before) {
        let _held = Held::of::<KeyState>();
        let hash = self.map.hasher().hash_one(key);
        let of_key = |(slot, _): &(KeyState, SharedValue<()>)| *slot.key() == key;
        let shard = self.map.determine_shard(hash as usize);
        let mut shard = self.map.shards()[shard].write();
        let there = shard.get_mut(hash, of_key);
        let (result, change) = change(there.as_deref().map(|(slot, _)| slot));
        let after = match change {
            Change::Keep => return (result, Before::default()),
            Change::Put(slot) => Some(slot),
            Change::Remove => None,
        };
        let uncounted = self.counted.as_ref().and_then(|(memory, owner)| {
            let before = there.as_deref().map(|(slot, _)| slot);
            memory.change(
                *owner,
                self.counts_of(before),
                self.counts_of(after.as_ref()),
            )
        });
        let before = match (there, after) {
            (Some((there, _)), Some(slot)) => Some(std::mem::replace(there, slot)),
            (Some(_), None) => shard.remove_entry(hash, of_key).map(|(slot, _)| slot),
            (None, Some(slot)) => {
                let hash_of = |(slot, _): &(KeyState, _)| self.map.hasher().hash_one(slot);
                shard.insert(hash, (slot, SharedValue::new(())), hash_of);
                None
            }
            (None, None) => None,
        };
        (result, (before, uncounted))
    }

    /// The entry of a slot that the budget counts. Failures of runs that ranks made together do not count: nothing
    /// evicts these on all ranks.
    pub(super) fn counts_of<'s>(&self, slot: Option<&'s KeyState>) -> Option<&'s Arc<Entry>> {
        let entry = slot?.entry_or_failure()?;
        let is_of_app = matches!(self.counted, Some((_, Owner::App(_))));
        (is_of_app || entry.failure().is_none()).then_some(entry)
    }

    pub(crate) fn new_flight(&self, key: Key) -> Arc<RunFlight> {
        Arc::new(RunFlight::new(key, self.generation()))
    }

    /// Decides which results a key gets: among calls that compute one flight, those of the first that decides. A call
    /// whose flight has failed meanwhile takes on a new flight.
    pub(crate) fn decide(&self, flight: &Arc<RunFlight>, entry: &Arc<Entry>) -> (Decision, Before) {
        let won = |flight: &Arc<RunFlight>, is_kept| Decision::Won {
            flight: Arc::clone(flight),
            is_kept,
        };
        let is_current = self.is_current(flight);
        if let Err(winner) = flight.decide(Arc::clone(entry)) {
            return (Decision::Lost(winner), Before::default());
        }
        if !is_current || !flight.is_complete() {
            return (won(flight, is_current), Before::default());
        }
        self.change(flight.key, |slot| match slot {
            Some(slot) if slot.under_way().is_some() => (won(flight, false), Change::Keep),
            Some(KeyState::Ready(first)) if first.serves_all() => {
                (Decision::Lost(Arc::clone(first)), Change::Keep)
            }
            slot => {
                let flight = self.new_flight(flight.key);
                // No other thread has the new flight yet, so this decision stands.
                let _ = flight.decide(Arc::clone(entry));
                let flying = KeyState::flying(&flight, slot.and_then(KeyState::entry).cloned());
                (won(&flight, true), Change::Put(flying))
            }
        })
    }

    /// The entry that was decided on for a key and is not visible yet.
    pub(crate) fn decided(&self, key: &Key) -> Option<Arc<Entry>> {
        match self.map.get(key)?.key() {
            KeyState::Flying(flying) => flying.flight.decided(),
            KeyState::Ready(_) | KeyState::Failed(_) => None,
        }
    }

    /// Makes an entry visible that was [decided](Self::decide) on, if it is kept, and wakes the waiters, who get its
    /// map. `when_visible` is called with the map's guard held, before any thread finds the entry.
    pub(crate) fn show(
        &self,
        flight: &RunFlight,
        made: &Served,
        is_kept: bool,
        when_visible: impl FnOnce(),
    ) -> Before {
        flight.set_given(&made.map);
        let show = |slot: Option<&KeyState>| {
            let is_its_own = match slot {
                Some(KeyState::Flying(other)) => std::ptr::eq(&*other.flight, flight),
                Some(KeyState::Ready(_)) => false,
                // A flight that began during a swap was taken out with the earlier ones; and the holder of this flight
                // may have failed.
                Some(KeyState::Failed(_)) | None => true,
            };
            // The guard is held: a thread that swaps the contents raises the generation first and needs this guard to
            // take the entry out.
            if !is_its_own || !self.is_current(flight) {
                return ((), Change::Keep);
            }
            when_visible();
            ((), Change::Put(KeyState::Ready(Arc::clone(&made.entry))))
        };
        let before = is_kept.then(|| self.change(flight.key, show).1);
        let _ = flight.complete(Ok(Arc::clone(&made.entry)));
        before.unwrap_or_default()
    }

    /// Whether the cache still has the contents that it had when the flight began.
    pub(crate) fn is_current(&self, flight: &RunFlight) -> bool {
        flight.generation == self.generation()
    }

    /// How often the contents were swapped.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Puts an entry into the map without a flight: the latest record of a non-deterministic run, or an entry read from
    /// a store.
    ///
    /// Says whether it did: not if the contents were swapped since `generation`.
    pub(crate) fn record(&self, entry: &Arc<Entry>, generation: u64) -> bool {
        let entry = self.measured(Arc::clone(entry));
        let (recorded, _before) = self.change(entry.record.key, |slot| {
            if self.generation() != generation {
                return (false, Change::Keep);
            }
            (true, Change::to(slot, Some(Arc::clone(&entry))))
        });
        recorded
    }

    /// Ends the flight in an error, or has a waiter take over. The entry that the key had before is restored. `keep` is
    /// the entry that remembers the failure.
    pub(crate) fn fail(
        &self,
        flight: &RunFlight,
        error: &Error,
        retry: bool,
        keep: Option<Arc<Entry>>,
    ) {
        // A kept failure enters the map before its flight ends, which lets others claim the key. It is not retried.
        if keep.is_none() && flight.fail(error.clone(), retry) {
            return;
        }
        let ((), _before) = self.change(flight.key, |slot| {
            let change = match slot {
                // Another computation was decided on; its results are on their way to a disk.
                _ if flight.decided().is_some() => Change::Keep,
                Some(KeyState::Flying(flying)) if std::ptr::eq(&*flying.flight, flight) => {
                    match (&flying.previous, &keep) {
                        (Some(previous), _) => Change::Put(KeyState::Ready(Arc::clone(previous))),
                        (None, Some(failed)) => Change::Put(KeyState::Failed(Arc::clone(failed))),
                        (None, None) => Change::Remove,
                    }
                }
                _ => Change::Keep,
            };
            ((), change)
        });
        if keep.is_some() {
            flight.fail(error.clone(), false);
        }
    }

    /// Drops the values for which `drop` holds, and remembered failures.
    pub(crate) fn clear(&self, drop: impl Fn(&Named) -> bool, why: &'static str) {
        for failed in self.failures() {
            self.replace(&failed, None);
        }
        for entry in self.entries() {
            let mut before = entry;
            // Repeated until the entry looked at is the one replaced.
            while before.results.iter().any(&drop) {
                let after = self.measured(Arc::new(before.without(&drop, why)));
                match self.replace(&before, Some(after)) {
                    Some(there) => before = there,
                    None => break,
                }
            }
        }
    }

    /// Replaces an entry by another or by none. If the map has a different entry by now, gives that one.
    fn replace(&self, before: &Arc<Entry>, after: Option<Arc<Entry>>) -> Option<Arc<Entry>> {
        let (other, _before) = self.change(before.record.key, |slot| {
            match slot.and_then(KeyState::entry_or_failure) {
                Some(there) if Arc::ptr_eq(there, before) => (None, Change::to(slot, after)),
                there => (there.cloned(), Change::Keep),
            }
        });
        other
    }

    /// Forgets everything. Flights under way end with their waiters only. Gives the old contents for the caller to
    /// drop.
    pub(crate) fn forget_all(&self) -> impl Sized + use<> {
        self.generation.fetch_add(1, Ordering::AcqRel);
        let (mut before, mut uncounted) = (Vec::new(), Vec::new());
        self.map.retain(|slot, ()| {
            if let Some((memory, owner)) = &self.counted {
                uncounted.push(memory.change(*owner, self.counts_of(Some(slot)), None));
            }
            before.push(slot.clone());
            false
        });
        (before, uncounted, self.scratches.take_all())
    }

    /// The entry of each run that is remembered as failed.
    pub(crate) fn failures(&self) -> Vec<Arc<Entry>> {
        let slots = self.map.iter();
        let entries = slots.filter_map(|slot| slot.key().entry_or_failure().cloned());
        entries.filter(|entry| entry.failure().is_some()).collect()
    }

    /// Every entry, even if its values are gone.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        self.map
            .iter()
            .filter_map(|slot| slot.key().entry().cloned())
            .collect()
    }
}
