//! The entries and flights of one app type.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry as Place;

use super::entry::{Entry, Served};
use super::ledger::Owner;
use super::memory::Memory;
use super::record::Provenance;
use super::run_cost::RunCost;
use super::run_flight::RunFlight;
use super::scratches::Scratches;
use super::stats::Counters;
use crate::app::{AppId, Callee};
use crate::error::Error;
use crate::key::{BuildKeyHasher, Key};
use crate::result_map::Named;
use crate::sync::{Held, lock};

/// Into how many parts the map is divided, each with a lock of its own. Readers of one part
/// write to its lock, so threads that hit different keys must seldom meet in one; a part
/// takes 128 bytes.
const SHARDS: usize = 128;

/// The cache of one app type.
pub(crate) struct AppCache {
    pub(crate) name: Arc<str>,
    pub(super) map: DashMap<Key, Slot, BuildKeyHasher>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) scratches: Arc<Scratches>,
    /// What counts its entries, and as whose, if anything does.
    pub(crate) counted: Option<(Arc<Memory>, Owner)>,
    /// What the latest run has in common with others.
    latest: Mutex<Option<Arc<Provenance>>>,
    /// What runs took, where work is shared with other processes.
    pub(crate) cost: RunCost,
    /// Whether a run turned out to be non-deterministic: other processes make no use of what this one computes.
    pub(crate) varies: AtomicBool,
    /// The runs that are exclusive, if the app is not thread-safe: one for all, and one
    /// for those nested in each run, by the address of its frame.
    pub(crate) exclusive_runs: Mutex<HashMap<usize, Arc<RunFlight>>>,
    /// Whether any run has gone on without a claim, of which the map knows nothing.
    pub(crate) unclaimed: AtomicBool,
    /// Raised when the contents are swapped; a flight of an earlier one publishes
    /// to its waiters only.
    generation: AtomicU64,
}

/// What the map holds for one key.
#[derive(Clone)]
pub(crate) enum Slot {
    /// An entry; some of its values may be gone.
    Ready(Arc<Entry>),
    /// A computation, and what there was before it.
    Flying(Arc<RunFlight>, Option<Arc<Entry>>),
    /// What is left of a run that failed and would again, in the epoch that it was checked in.
    Failed(Arc<Entry>),
}

impl Slot {
    /// The entry, whatever is left of it; also while it is being computed again.
    pub(super) fn entry(&self) -> Option<&Arc<Entry>> {
        match self {
            Self::Ready(entry) | Self::Flying(_, Some(entry)) => Some(entry),
            Self::Flying(_, None) | Self::Failed(_) => None,
        }
    }
}

/// What the map and the list held before, to be dropped with no lock held and nobody waiting: destructors may use the engine.
pub(crate) type Before = (Option<Slot>, Option<Arc<Entry>>);

/// Whose results are to be those of a key.
pub(crate) enum Decision {
    /// The caller's, who is to [show](AppCache::show) them, by another flight where its own has failed. The cache keeps them
    /// unless its contents were swapped, or yet another flight has the key.
    Won {
        instead: Option<Arc<RunFlight>>,
        is_kept: bool,
    },
    /// Those of this entry.
    Lost(Arc<Entry>),
}

/// What becomes of what the map holds for a key.
pub(super) enum Change {
    Keep,
    Put(Slot),
    Remove,
}

/// What came of claiming a key.
pub(crate) enum Claimed {
    /// There is an entry that is new to the caller.
    Ready(Arc<Entry>),
    /// It failed before, for good.
    Failed(Error),
    /// The caller has the claim, and must end the flight; with the entry that is there.
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

    /// A cache of the same app for what the ranks of a process set make together. Counted is what happens in all.
    pub(crate) fn of_set(&self) -> Self {
        let memory = self.counted.as_ref().map(|(memory, _)| memory);
        let counted = memory.map(|memory| (Arc::clone(memory), Owner::Ranks));
        let mut of_set = Self::new(Arc::clone(&self.name), counted);
        of_set.counters = Arc::clone(&self.counters);
        of_set.scratches = Arc::clone(&self.scratches);
        of_set
    }

    /// That of a run of the app with these settings which rests on these: the latest run's, if it is equal. In one process it
    /// follows from the two.
    pub(crate) fn provenance(
        &self,
        id: &AppId,
        dependencies: Vec<Callee>,
        new: impl FnOnce(Vec<Callee>) -> Provenance,
    ) -> Arc<Provenance> {
        let mut latest = lock(&self.latest);
        match &*latest {
            Some(one) if one.id == *id && one.dependencies == dependencies => Arc::clone(one),
            _ => Arc::clone(latest.insert(Arc::new(new(dependencies)))),
        }
    }

    /// The entry of a key, whatever is left of it. Also while it is being computed again,
    /// to fill a gap or afresh: what it has is as good until then.
    pub(crate) fn entry(&self, key: &Key) -> Option<Arc<Entry>> {
        self.look_ready(key, Arc::clone)
    }

    /// Holds what was read of an entry by now, so that it is found as fast as what was computed, and counts as that; the entry
    /// that stands afterwards.
    pub(crate) fn hold_read(&self, entry: Arc<Entry>) -> Arc<Entry> {
        let Some(read) = entry.with_read() else {
            return entry;
        };
        let read = self.measured(Arc::new(read));
        if let Some((memory, _)) = &self.counted {
            memory.note_read_time(entry.read_time());
        }
        let (stands, _before) = self.change(entry.record.key, |slot| match slot {
            Some(Slot::Ready(there)) if Arc::ptr_eq(there, &entry) => {
                (Arc::clone(&read), Change::Put(Slot::Ready(read)))
            }
            _ => (Arc::clone(&entry), Change::Keep),
        });
        stands
    }

    /// The failure that is remembered for a key in this epoch.
    pub(crate) fn failure(&self, key: &Key, epoch: u64) -> Option<Error> {
        self.failure_of(&*self.map.get(key)?, epoch)
    }

    fn failure_of(&self, slot: &Slot, epoch: u64) -> Option<Error> {
        let Slot::Failed(entry) = slot else {
            return None;
        };
        self.used(entry);
        entry.failure.clone().filter(|_| entry.is_checked(epoch))
    }

    /// What `look` makes of what [`entry`](Self::entry) gives. It is called with the map's
    /// guard held and must look at the entry only.
    #[inline]
    pub(crate) fn look_ready<R>(
        &self,
        key: &Key,
        look: impl FnOnce(&Arc<Entry>) -> R,
    ) -> Option<R> {
        let _held = Held::of::<Slot>();
        self.map.get(key)?.entry().map(look)
    }

    /// Whether a run of this key may be going on, in this engine.
    pub(crate) fn may_be_running(&self, key: &Key) -> bool {
        self.is_flying(key) || self.unclaimed.load(Ordering::Acquire)
    }

    /// Whether the key is being computed.
    pub(crate) fn is_flying(&self, key: &Key) -> bool {
        let slot = self.map.get(key);
        slot.is_some_and(
            |slot| matches!(&*slot, Slot::Flying(flight, _) if !flight.flight.is_complete()),
        )
    }

    /// The one step that decides who computes. An entry that `is_new` to the caller is given, who is to see whether it serves;
    /// `is_new` is called with the map's guard held and must look at the entry only. A failure that was remembered in this
    /// epoch is given, unless it is to be tried again: `epoch` is `None`.
    ///
    /// What the map held before is to be dropped when this thread is known to be at the run: a destructor may ask for it.
    pub(crate) fn claim(
        &self,
        key: Key,
        epoch: Option<u64>,
        is_new: impl Fn(&Arc<Entry>) -> bool,
    ) -> (Claimed, Before) {
        self.change(key, |slot| match slot {
            Some(Slot::Flying(flight, _)) if !flight.flight.is_complete() => {
                (Claimed::Theirs(Arc::clone(flight)), Change::Keep)
            }
            slot => {
                let failure = |(slot, epoch)| self.failure_of(slot, epoch);
                if let Some(error) = slot.zip(epoch).and_then(failure) {
                    return (Claimed::Failed(error), Change::Keep);
                }
                let previous = slot.and_then(Slot::entry);
                if let Some(entry) = previous.filter(|entry| is_new(entry)) {
                    return (Claimed::Ready(Arc::clone(entry)), Change::Keep);
                }
                let flight = self.new_flight(key);
                let flying = Slot::Flying(Arc::clone(&flight), previous.cloned());
                (
                    Claimed::Mine(flight, previous.cloned()),
                    Change::Put(flying),
                )
            }
        })
    }

    /// Changes what the map holds for a key, and what is counted of it. What it held is given back: it is to be dropped when
    /// the map's lock is free again, since destructors may use the cache.
    pub(super) fn change<R>(
        &self,
        key: Key,
        change: impl FnOnce(Option<&Slot>) -> (R, Change),
    ) -> (R, Before) {
        let _held = Held::of::<Slot>();
        let count = |before: Option<&Slot>, after: Option<&Slot>| {
            let (memory, owner) = self.counted.as_ref()?;
            memory.change(*owner, self.counts_of(before), self.counts_of(after))
        };
        match self.map.entry(key) {
            Place::Vacant(vacant) => {
                let (result, change) = change(None);
                let Change::Put(slot) = change else {
                    return (result, (None, None));
                };
                let uncounted = count(None, Some(&slot));
                vacant.insert(slot);
                (result, (None, uncounted))
            }
            Place::Occupied(mut occupied) => match change(Some(occupied.get())) {
                (result, Change::Keep) => (result, (None, None)),
                (result, Change::Put(slot)) => {
                    let uncounted = count(Some(occupied.get()), Some(&slot));
                    (result, (Some(occupied.insert(slot)), uncounted))
                }
                (result, Change::Remove) => {
                    let uncounted = count(Some(occupied.get()), None);
                    (result, (Some(occupied.remove()), uncounted))
                }
            },
        }
    }

    /// What counts of a slot. Failures of what ranks made together do not: nothing has these leave on all ranks.
    pub(super) fn counts_of<'s>(&self, slot: Option<&'s Slot>) -> Option<&'s Arc<Entry>> {
        match slot? {
            Slot::Failed(entry) => {
                let is_of_app = matches!(self.counted, Some((_, Owner::App(_))));
                is_of_app.then_some(entry)
            }
            slot => slot.entry(),
        }
    }

    pub(crate) fn new_flight(&self, key: Key) -> Arc<RunFlight> {
        Arc::new(RunFlight::new(key, self.generation()))
    }

    /// Decides whose results are to be those of a key: of several calls that compute one flight, the first that asks. A call
    /// whose flight has failed meanwhile, for another that computed it, takes on a new one.
    pub(crate) fn decide(&self, flight: &RunFlight, entry: &Arc<Entry>) -> (Decision, Before) {
        let won = |instead, is_kept| Decision::Won { instead, is_kept };
        let is_current = self.is_current(flight);
        match flight.flight.decide(Arc::clone(entry)) {
            Err(winner) => return (Decision::Lost(winner), Before::default()),
            Ok(()) if !is_current || !flight.flight.is_complete() => {
                return (won(None, is_current), Before::default());
            }
            Ok(()) => {}
        }
        self.change(flight.key, |slot| match slot {
            Some(Slot::Flying(other, _)) if !other.flight.is_complete() => {
                (won(None, false), Change::Keep)
            }
            Some(Slot::Ready(first)) if first.lacks().is_none() => {
                (Decision::Lost(Arc::clone(first)), Change::Keep)
            }
            slot => {
                let flight = self.new_flight(flight.key);
                // Nobody else has it yet.
                let _ = flight.flight.decide(Arc::clone(entry));
                let previous = slot.and_then(Slot::entry).cloned();
                let flying = Slot::Flying(Arc::clone(&flight), previous);
                (won(Some(flight), true), Change::Put(flying))
            }
        })
    }

    /// The entry that a key is about to have.
    pub(crate) fn decided(&self, key: &Key) -> Option<Arc<Entry>> {
        let flight = match &*self.map.get(key)? {
            Slot::Flying(flight, _) => Arc::clone(flight),
            Slot::Ready(_) | Slot::Failed(..) => return None,
        };
        flight.flight.decided()
    }

    /// Makes an entry visible that was [decided](Self::decide) on, if it is kept, and wakes those who wait, who get the map that
    /// was made. `when_visible` is done with the map's guard held, before any thread finds the entry.
    pub(crate) fn show(
        &self,
        flight: &RunFlight,
        made: &Served,
        is_kept: bool,
        when_visible: impl FnOnce(),
    ) -> Before {
        flight.set_given(&made.map);
        let entry = || Arc::clone(&made.entry);
        let show = |slot: Option<&Slot>| match slot {
            // With the guard held: the thread that swaps the contents raises the generation
            // first and needs this guard to take the entry out.
            Some(Slot::Flying(flying, _)) if !std::ptr::eq(&**flying, flight) => ((), Change::Keep),
            Some(Slot::Ready(_)) => ((), Change::Keep),
            // A flight that began while the contents were swapped was taken out with the earlier ones; and the holder of this one
            // may have failed.
            _ if self.is_current(flight) => {
                when_visible();
                ((), Change::Put(Slot::Ready(entry())))
            }
            _ => ((), Change::Keep),
        };
        let before = is_kept.then(|| self.change(flight.key, show).1);
        let _ = flight.flight.complete(Ok(entry()));
        before.unwrap_or_default()
    }

    /// Whether the cache still has the contents that it had when the flight began.
    pub(crate) fn is_current(&self, flight: &RunFlight) -> bool {
        flight.generation == self.generation()
    }

    /// Counts how often the contents were swapped.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Puts an entry there without a flight: the latest record of a
    /// non-deterministic run, or what was read from a store.
    ///
    /// Says whether it is there: not if the contents were swapped since `generation`.
    pub(crate) fn record(&self, entry: &Arc<Entry>, generation: u64) -> bool {
        let entry = self.measured(Arc::clone(entry));
        let (recorded, _before) = self.change(entry.record.key, |slot| {
            let entry = Arc::clone(&entry);
            match slot {
                _ if self.generation() != generation => (false, Change::Keep),
                Some(Slot::Flying(flight, _)) => {
                    let flying = Slot::Flying(Arc::clone(flight), Some(entry));
                    (true, Change::Put(flying))
                }
                _ => (true, Change::Put(Slot::Ready(entry))),
            }
        });
        recorded
    }

    /// Ends the flight in an error, or has a waiter take over. What there was before it is there again.
    /// `keep` is what is remembered of it, if it would come again.
    pub(crate) fn fail(
        &self,
        flight: &RunFlight,
        error: &Error,
        retry: bool,
        keep: Option<Arc<Entry>>,
    ) {
        // Before the flight is over, which has others claim the key. One that is kept is not retried.
        if keep.is_none() && flight.flight.fail(error.clone(), retry) {
            return;
        }
        let ((), _before) = self.change(flight.key, |slot| match (slot, &keep) {
            // Another has results, which are on their way to a disk.
            _ if flight.flight.decided().is_some() => ((), Change::Keep),
            (Some(Slot::Flying(flying, _)), _) if !std::ptr::eq(&**flying, flight) => {
                ((), Change::Keep)
            }
            (Some(Slot::Flying(_, Some(previous))), _) => {
                ((), Change::Put(Slot::Ready(Arc::clone(previous))))
            }
            (Some(Slot::Flying(_, None)), Some(failed)) => {
                ((), Change::Put(Slot::Failed(Arc::clone(failed))))
            }
            (Some(Slot::Flying(_, None)), None) => ((), Change::Remove),
            _ => ((), Change::Keep),
        });
        if keep.is_some() {
            flight.flight.fail(error.clone(), false);
        }
    }

    /// Drops the values for which `drop` says so, and remembered failures.
    pub(crate) fn clean(&self, drop: impl Fn(&Named) -> bool, why: &'static str) {
        for failed in self.failures() {
            self.replace(&failed, None);
        }
        for entry in self.entries() {
            let mut before = entry;
            // Until what is there is what was looked at.
            while before.results.results().iter().any(&drop) {
                let after = self.measured(Arc::new(before.without(&drop, why)));
                match self.replace(&before, Some(after)) {
                    Some(there) => before = there,
                    None => break,
                }
            }
        }
    }

    /// Puts another entry, or none, in the place of one. If there is another by now, that one is given.
    fn replace(&self, before: &Arc<Entry>, after: Option<Arc<Entry>>) -> Option<Arc<Entry>> {
        let (other, _before) = self.change(before.record.key, |slot| match slot {
            Some(Slot::Ready(there) | Slot::Failed(there)) if Arc::ptr_eq(there, before) => (
                None,
                after.map_or(Change::Remove, |after| Change::Put(Slot::Ready(after))),
            ),
            Some(Slot::Flying(flight, Some(there))) if Arc::ptr_eq(there, before) => {
                (None, Change::Put(Slot::Flying(Arc::clone(flight), after)))
            }
            other => (other.and_then(Slot::entry).cloned(), Change::Keep),
        });
        other
    }

    /// Forgets everything; flights under way end with their waiters only. Gives what is to be dropped.
    pub(crate) fn forget_all(&self) -> impl Sized + use<> {
        self.generation.fetch_add(1, Ordering::AcqRel);
        let (mut before, mut uncounted) = (Vec::new(), Vec::new());
        self.map.retain(|_, slot| {
            if let Some((memory, owner)) = &self.counted {
                uncounted.push(memory.change(*owner, self.counts_of(Some(slot)), None));
            }
            before.push(slot.clone());
            false
        });
        (before, uncounted, self.scratches.take_all())
    }

    /// What is left of each run that failed and would again.
    pub(crate) fn failures(&self) -> Vec<Arc<Entry>> {
        let failed = |slot: &Slot| match slot {
            Slot::Failed(entry) => Some(Arc::clone(entry)),
            _ => None,
        };
        self.map.iter().filter_map(|slot| failed(&slot)).collect()
    }

    /// Every entry, whatever is left of it.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        self.map
            .iter()
            .filter_map(|slot| slot.entry().cloned())
            .collect()
    }
}
