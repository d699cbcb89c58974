//! The entries that a budget counts, and which of them leave.
//!
//! An entry is listed where the map is changed, with the map's guard held, so the sums are those of the map. A caller
//! that takes a victim drops it from the map, or says why it stays.
//!
//! Lock order: a shard of a map, then a list. Nothing is dropped with either held: destructors may use the cache.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::budget::{EvictionOrder, MemoryBudget};
use super::eviction::{Candidate, Eviction, Uses};
use super::ledger::{Account, AccountState, Ledger, Owner};
use crate::app::TypeIndex;
use crate::entry::Entry;
use crate::key::{BuildKeyHasher, Key};
use crate::result_map::Named;
use crate::sync::lock;

/// The entries of all apps that share a budget.
pub(crate) struct Memory {
    pub(crate) budget: MemoryBudget,
    /// A copy of the eviction's tick, for hits, which take no lock.
    tick: AtomicU64,
    is_over: AtomicBool,
    /// Whether the list has entries whose values may have been read or let go since.
    has_watched: AtomicBool,
    list: Mutex<Ledger>,
    /// The average time of reading from the store, so far.
    nanos_per_kib: AtomicUsize,
    /// Whether the warning that too much can't leave was given.
    pub(crate) has_warned: AtomicBool,
}

/// Counts the memory that entries take of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Bytes of the values and records that count.
    pub bytes: usize,
    /// The number of entries, with those whose values are gone or are held by the program too, and with remembered
    /// failures.
    pub entries: usize,
    /// The part of [`bytes`](Self::bytes) that can't leave: it is to be saved, and no store has it.
    pub kept_bytes: usize,
    /// Further bytes: results that other ranks sent and nobody has asked for yet.
    pub received_bytes: usize,
    /// The budget.
    pub limit: usize,
}

/// An entry, and the app in whose cache it is.
pub(crate) type Listed = (TypeIndex, Arc<Entry>);

/// Victims are taken in pieces of this many bytes: a store that saves them first makes a copy.
const PIECE: usize = 16 << 20;

/// How many watched entries are looked at each time.
const WATCHED_LOOKS: usize = 4;

impl Memory {
    /// `None` if the budget limits nothing.
    pub(crate) fn new(budget: MemoryBudget) -> Option<Arc<Self>> {
        budget.is_limited().then(|| {
            let list = Ledger::new(Eviction::new(budget.order, budget.limit() / 64));
            Arc::new(Self {
                budget,
                tick: AtomicU64::new(1),
                is_over: AtomicBool::new(false),
                has_watched: AtomicBool::new(false),
                list: Mutex::new(list),
                nanos_per_kib: AtomicUsize::new(1 << 10),
                has_warned: AtomicBool::new(false),
            })
        })
    }

    /// Notes a use, unless the order of eviction is by arrival.
    #[inline]
    pub(crate) fn used(&self, entry: &Entry) {
        if self.budget.order != EvictionOrder::FirstIn {
            Uses::note(&entry.uses, self.tick.load(Ordering::Relaxed));
        }
    }

    /// Averages in the time that reading some values took.
    pub(super) fn note_read_time(&self, (took, bytes): (Duration, usize)) {
        if bytes == 0 {
            return;
        }
        let now = usize::try_from(took.as_nanos()).unwrap_or(usize::MAX) / (bytes / 1024 + 1);
        let before = self.nanos_per_kib.load(Ordering::Relaxed);
        let average = before - before / 8 + now / 8;
        self.nanos_per_kib.store(average, Ordering::Relaxed);
    }

    /// Nanoseconds to get an entry back once it has left: reading it, or computing it with its evicted dependencies.
    pub(crate) fn cost(&self, entry: &Entry) -> u64 {
        if !entry.is_read_back() {
            return entry.own_nanos.saturating_add(entry.dependencies_nanos());
        }
        let kib = entry.known_memory() / 1024 + 1;
        let nanos_per_kib = self.nanos_per_kib.load(Ordering::Relaxed) as u64;
        FIND.saturating_add(nanos_per_kib.saturating_mul(kib as u64))
    }

    /// Lists the new entry of a key in place of the old one. Called with the map's guard held. Drop the entry given
    /// back once that is free.
    pub(super) fn change(
        &self,
        owner: Owner,
        before: Option<&Arc<Entry>>,
        after: Option<&Arc<Entry>>,
    ) -> Option<Arc<Entry>> {
        if before.map(Arc::as_ptr) == after.map(Arc::as_ptr) {
            return None;
        }
        let mut list = lock(&self.list);
        let (removed, came_before) = before.map_or((None, None), |entry| list.remove(entry));
        let had = before.filter(|entry| entry.holds_values());
        match (had, after) {
            // The record stays, and its references go.
            (None, Some(entry)) if before.is_some() && !entry.holds_values() => {}
            (None, Some(entry)) => {
                list.eviction.came(number(&entry.record.key), &entry.uses);
                self.tick.store(list.eviction.tick, Ordering::Relaxed);
            }
            (Some(entry), Some(after)) if after.holds_values() => {
                after
                    .uses
                    .store(entry.uses.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            (Some(entry), _) => {
                let uses = Uses::of(&entry.uses);
                list.eviction.left(number(&entry.record.key), uses);
            }
            (None, None) => {}
        }
        if let Some(entry) = after {
            let is_same = had.is_some_and(|had| had.record.run == entry.record.run);
            let came = self.budget.max_age.map(|_| {
                let before = came_before.filter(|_| is_same);
                before.unwrap_or_else(Instant::now)
            });
            let keeps_records = !self.budget.forgets_records && entry.is_ever_saved();
            let is_only_a_record = !entry.holds_values() && !entry.is_saved();
            let refers = !entry.holds_values() && entry.has_references();
            let state = match owner {
                Owner::App(_) if refers => AccountState::Referring,
                _ if is_only_a_record && keeps_records => AccountState::Kept,
                Owner::Ranks => AccountState::Collective,
                Owner::App(_) => AccountState::MayLeave,
            };
            self.insert(&mut list, owner, entry, state, came);
            if let Owner::App(app) = owner
                && entry.values_may_change()
            {
                list.watched.push_back((app, Arc::downgrade(entry)));
            }
        }
        // One entry kept for want of a store is tried again.
        if let Some(at) = list.next_kept() {
            list.set_state(at, AccountState::MayLeave);
            self.order(&mut list, at);
        }
        self.note(&list);
        removed
    }

    /// Lists a victim again that stays, or an entry whose cost has changed. Called with the guard of its map held.
    pub(super) fn count_again(&self, owner: Owner, entry: &Arc<Entry>, state: AccountState) {
        let mut list = lock(&self.list);
        let (before, came) = list.remove(entry);
        let state = match owner {
            Owner::Ranks if state == AccountState::MayLeave => AccountState::Collective,
            _ => state,
        };
        self.insert(&mut list, owner, entry, state, came);
        self.note(&list);
        drop(list);
        drop(before);
    }

    /// Measures a saved entry again; says whether it had stayed for want of a store.
    pub(super) fn measure_saved(&self, entry: &Arc<Entry>) -> bool {
        let mut list = lock(&self.list);
        list.measure_record(entry) == Some(AccountState::Kept)
    }

    /// Takes victims, up to a piece of them.
    pub(crate) fn take(&self) -> Vec<Listed> {
        let mut list = lock(&self.list);
        let mut victims = Vec::new();
        let mut bytes = 0_usize;
        while bytes < PIECE
            && let Some(at) = self.next(&mut list)
        {
            bytes = bytes.saturating_add(list.accounts[at as usize].bytes());
            list.set_state(at, AccountState::Taken);
            let Account { owner, entry, .. } = &list.accounts[at as usize];
            if let (Owner::App(app), Some(entry)) = (*owner, entry.clone()) {
                victims.push((app, entry));
            }
        }
        self.note(&list);
        victims
    }

    /// The next victim.
    fn next(&self, list: &mut Ledger) -> Option<u32> {
        if self.is_oldest_too_old(list) {
            return Some(list.by_age.first()?.1);
        }
        let limit = self.allowed(list);
        let slack = (limit / 64).min(PIECE);
        let is_over =
            list.bytes() > limit - slack || list.eviction.order.len() > self.budget.entries;
        let Ledger {
            accounts, eviction, ..
        } = list;
        let candidate = |at: u32| self.candidate(&accounts[at as usize]);
        is_over.then(|| eviction.victim(candidate)).flatten()
    }

    /// Bytes that may be in memory: the budget, or an eighth of it above those that can't leave, if that is more.
    fn allowed(&self, list: &Ledger) -> usize {
        let limit = self.budget.limit();
        let kept = list.bytes_of(AccountState::Kept);
        limit.max(kept.saturating_add(limit / 8))
    }

    fn is_oldest_too_old(&self, list: &Ledger) -> bool {
        let oldest = list.by_age.first().zip(self.budget.max_age);
        oldest.is_some_and(|((came, _), age)| came.elapsed() > age)
    }

    fn note(&self, list: &Ledger) {
        let is_over = list.bytes() > self.allowed(list)
            || list.eviction.order.len() > self.budget.entries
            || self.is_oldest_too_old(list);
        self.is_over.store(is_over, Ordering::Release);
        self.has_watched
            .store(!list.watched.is_empty(), Ordering::Relaxed);
    }

    /// Bytes of free room in the budget; an eighth of the budget at least.
    pub(crate) fn room(&self) -> usize {
        let limit = self.budget.limit();
        limit
            .saturating_sub(lock(&self.list).bytes())
            .max(limit / 8)
    }

    /// Bytes of collective entries that are to leave: the excess over the allowed bytes, but no more than collective
    /// entries have above half of the budget.
    pub(crate) fn collective_excess(&self) -> usize {
        let list = lock(&self.list);
        let limit = self.budget.limit();
        let above_half = list
            .bytes_of(AccountState::Collective)
            .saturating_sub(limit / 2);
        above_half.min(list.bytes().saturating_sub(self.allowed(&list)))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Some entries whose values may have been read or let go since the last look, more than come at a time. They are
    /// looked at again unless they were replaced, though the program may hold a map of them.
    pub(crate) fn watched(&self) -> Vec<Listed> {
        if !self.has_watched.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut list = lock(&self.list);
        let mut there = Vec::new();
        for _ in 0..list.watched.len().min(WATCHED_LOOKS) {
            if let Some((app, watched)) = list.watched.pop_front()
                && let Some(entry) = watched.upgrade()
            {
                if list.find(&entry).is_some() {
                    list.watched.push_back((app, watched));
                }
                there.push((app, entry));
            }
        }
        self.note(&list);
        there
    }

    pub(crate) fn usage(&self) -> MemoryUse {
        let list = lock(&self.list);
        MemoryUse {
            bytes: list.bytes() + list.bytes_of(AccountState::Taken),
            entries: list.entries(),
            kept_bytes: list.bytes_of(AccountState::Kept),
            received_bytes: 0,
            limit: self.budget.limit(),
        }
    }

    /// Lists an account that may leave in the order of leaving.
    fn order(&self, list: &mut Ledger, at: u32) {
        let candidate = self.candidate(&list.accounts[at as usize]);
        list.eviction.list(at, candidate);
    }

    fn insert(
        &self,
        list: &mut Ledger,
        owner: Owner,
        entry: &Arc<Entry>,
        state: AccountState,
        came: Option<Instant>,
    ) {
        let at = list.insert(owner, entry, state, came);
        if state == AccountState::MayLeave {
            self.order(list, at);
        }
    }

    fn candidate(&self, account: &Account) -> Candidate {
        let of = |entry: &Arc<Entry>| Candidate {
            class: self.class(entry),
            density: self.cost(entry) as f64 / account.bytes().max(1) as f64,
            uses: Uses::of(&entry.uses),
        };
        account.entry.as_ref().map_or_else(Candidate::default, of)
    }

    /// The place of an entry in the budget's order of tags: that of its result that leaves last.
    fn class(&self, entry: &Entry) -> u8 {
        let first = &self.budget.first;
        let of = |named: &Named| {
            let place = first.iter().position(|tag| named.tags.contains(*tag));
            place.unwrap_or(first.len())
        };
        entry.results.iter().map(of).max().unwrap_or(0) as u8
    }
}

/// The key as a number for the eviction's history. A key is a digest: a part of it will do.
fn number(key: &Key) -> u64 {
    BuildKeyHasher::default().hash_one(key)
}

/// Nanoseconds of a look-up in the store.
const FIND: u64 = 20_000;
