//! The entries that a budget counts, and which of them leave.
//!
//! Entries are listed where the map is changed, with its guard held, so that the sum is that of what the map has. Who takes a
//! victim drops what the map has, or says why it stays.
//!
//! Lock order: a shard of a map, then a list. Nothing is dropped with either held: destructors may use the cache.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::budget::{EvictionOrder, MemoryBudget};
use super::entry::Entry;
use super::eviction::{Candidate, Eviction, Uses};
use super::ledger::{Account, AccountState, Ledger, Owner};
use crate::app::TypeIndex;
use crate::key::{BuildKeyHasher, Key};
use crate::result_map::Named;
use crate::sync::lock;

/// The entries of all apps that share a budget.
pub(crate) struct Memory {
    pub(crate) budget: MemoryBudget,
    /// That of the list's order, for hits.
    tick: AtomicU64,
    is_over: AtomicBool,
    /// Whether something may have been read from a store that counts with the length of its encoding.
    has_unread: AtomicBool,
    list: Mutex<Ledger>,
    /// What reading from the store takes, as far as was seen.
    nanos_per_kib: AtomicUsize,
    /// Whether a warning said that too much can't leave.
    pub(crate) has_warned: AtomicBool,
}

/// How much is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Bytes of values and records that count.
    pub bytes: usize,
    /// Entries, also those of which only the record is left, or that the program holds too, and failures that are remembered.
    pub entries: usize,
    /// Of [`bytes`](Self::bytes) those that can't leave: they are to be saved, and no store has them.
    pub kept_bytes: usize,
    /// Bytes besides, of entries whose values the program was found to hold too when it was their turn to leave.
    pub in_use_bytes: usize,
    /// Bytes besides, of what other ranks sent and nobody has asked for yet.
    pub received_bytes: usize,
    /// The budget.
    pub limit: usize,
}

/// An entry, and the app in whose cache it is.
pub(crate) struct Listed {
    pub(crate) app: TypeIndex,
    pub(crate) entry: Arc<Entry>,
}

/// What has to go goes in pieces of so many bytes: a store that it is saved to first makes a copy.
const PIECE: usize = 16 << 20;

/// So much of what came from a store is looked at each time.
const UNREAD_LOOKS: usize = 4;

/// What is in use is looked at so often in vain each time that something comes, or as many bytes of it as came, but no more
/// than so often.
const LOOKS_IN_VAIN: usize = 2;
const MOST_LOOKS: usize = 256;

impl Memory {
    /// `None` if the budget limits nothing.
    pub(crate) fn new(budget: MemoryBudget) -> Option<Arc<Self>> {
        budget.is_limited().then(|| {
            let list = Ledger::new(Eviction::new(budget.order, budget.limit() / 64));
            Arc::new(Self {
                budget,
                tick: AtomicU64::new(1),
                is_over: AtomicBool::new(false),
                has_unread: AtomicBool::new(false),
                list: Mutex::new(list),
                nanos_per_kib: AtomicUsize::new(1 << 10),
                has_warned: AtomicBool::new(false),
            })
        })
    }

    /// Takes note of a use, unless what came first leaves first.
    #[inline]
    pub(crate) fn used(&self, entry: &Entry) {
        if self.budget.order != EvictionOrder::FirstIn {
            Uses::note(&entry.uses, self.tick.load(Ordering::Relaxed));
        }
    }

    /// Takes note of what reading has taken.
    pub(super) fn note_read_time(&self, (took, bytes): (Duration, usize)) {
        let now = usize::try_from(took.as_nanos()).unwrap_or(usize::MAX) / (bytes / 1024 + 1);
        let before = self.nanos_per_kib.load(Ordering::Relaxed);
        let average = before - before / 8 + now / 8;
        self.nanos_per_kib.store(average, Ordering::Relaxed);
    }

    /// What having an entry again takes, in nanoseconds.
    pub(crate) fn cost(&self, entry: &Entry) -> u64 {
        if !entry.is_read_back() {
            return entry.own_nanos.saturating_add(entry.dependencies_nanos());
        }
        let kib = entry.known_memory() / 1024 + 1;
        let nanos_per_kib = self.nanos_per_kib.load(Ordering::Relaxed) as u64;
        FIND.saturating_add(nanos_per_kib.saturating_mul(kib as u64))
    }

    /// Lists what the map has now for a key in place of what it had. Called with the guard of that held. Gives what is to be
    /// dropped when it is free again.
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
        let removed = before.and_then(|entry| list.remove(entry));
        let had = before.filter(|entry| entry.holds_values());
        match (had, after) {
            (None, Some(entry)) => {
                list.eviction.came(number(&entry.record.key), &entry.uses);
                self.tick.store(list.eviction.tick(), Ordering::Relaxed);
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
            let came = self.budget.max_age.map(|_| Instant::now());
            let is_same = |account: &Account| {
                had.is_some_and(|had| had.record.run == entry.record.run)
                    .then_some(account.came)
            };
            let came = removed.as_ref().and_then(is_same).unwrap_or(came);
            let is_only_a_record = !entry.holds_values() && !entry.is_saved();
            let keeps_records = !self.budget.forgets_records && entry.is_ever_saved();
            let state = match owner {
                _ if is_only_a_record && keeps_records => AccountState::Kept,
                Owner::Ranks => AccountState::Collective,
                Owner::App(_) => AccountState::MayLeave,
            };
            self.insert(&mut list, owner, entry, state, came);
            if let Owner::App(app) = owner
                && entry.may_be_read()
            {
                list.unread.push_back((app, Arc::downgrade(entry)));
            }
        }
        let came = after.filter(|_| had.is_none());
        self.look_again(&mut list, came.map_or(0, |entry| entry.known_bytes()));
        self.note(&list);
        removed.and_then(|account| account.entry)
    }

    /// Lists an entry that was a victim and stays, or whose cost has changed. Called with the guard of the map held, which
    /// has it.
    pub(super) fn count_again(&self, owner: Owner, entry: &Arc<Entry>, why: Stays) {
        let mut list = lock(&self.list);
        let before = list.remove(entry);
        let state = match (owner, why) {
            (_, Stays::Kept) => AccountState::Kept,
            (Owner::Ranks, _) => AccountState::Collective,
            (_, Stays::ForNow) => AccountState::MayLeave,
            (_, Stays::InUse) => AccountState::InUse,
        };
        let came = before.as_ref().and_then(|account| account.came);
        self.insert(&mut list, owner, entry, state, came);
        self.note(&list);
        drop(list);
        drop(before);
    }

    /// Counts an entry that was saved with what it takes now; says whether it stays since nothing else had it.
    pub(super) fn keeps_saved(&self, entry: &Arc<Entry>) -> bool {
        let mut list = lock(&self.list);
        list.measure_record(entry) == Some(AccountState::Kept)
    }

    /// A piece of what has to leave.
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
                victims.push(Listed { app, entry });
            }
        }
        self.note(&list);
        victims
    }

    /// Which has to leave next.
    fn next(&self, list: &mut Ledger) -> Option<u32> {
        if self.is_oldest_too_old(list) {
            return Some(list.by_age.first()?.1);
        }
        let limit = self.allowed(list);
        let slack = (limit / 64).min(PIECE);
        let is_over = list.bytes > limit - slack || list.eviction.count() > self.budget.entries;
        let Ledger {
            accounts, eviction, ..
        } = list;
        let candidate = |at: u32| self.candidate(&accounts[at as usize]);
        is_over.then(|| eviction.victim(candidate)).flatten()
    }

    /// How much may be there: the budget, and where more than that can't leave, an eighth besides.
    fn allowed(&self, list: &Ledger) -> usize {
        let limit = self.budget.limit();
        limit.max(list.kept_bytes.saturating_add(limit / 8))
    }

    fn is_oldest_too_old(&self, list: &Ledger) -> bool {
        let oldest = list.by_age.first().zip(self.budget.max_age);
        oldest.is_some_and(|((came, _), age)| came.elapsed() > age)
    }

    fn note(&self, list: &Ledger) {
        let is_over = list.bytes > self.allowed(list)
            || list.eviction.count() > self.budget.entries
            || self.is_oldest_too_old(list);
        self.is_over.store(is_over, Ordering::Release);
        self.has_unread
            .store(!list.unread.is_empty(), Ordering::Relaxed);
    }

    /// How many bytes there is room for besides what is counted: at least an eighth of the budget.
    pub(crate) fn room(&self) -> usize {
        let limit = self.budget.limit();
        limit.saturating_sub(lock(&self.list).bytes).max(limit / 8)
    }

    /// How many bytes of what ranks made together are to leave: what is too much, but no more than what is above the half
    /// of the budget.
    pub(crate) fn collective_excess(&self) -> usize {
        let list = lock(&self.list);
        let limit = self.budget.limit();
        let above_half = list.collective_bytes.saturating_sub(limit / 2);
        above_half.min(list.bytes.saturating_sub(self.allowed(&list)))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Takes some of what came from a store and may have been read since it was looked at last, more than comes at a time. What
    /// was not is to be given back.
    pub(crate) fn take_unread(&self) -> Vec<Listed> {
        if !self.has_unread.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut list = lock(&self.list);
        let some = list.unread.len().min(UNREAD_LOOKS);
        let taken: Vec<_> = list.unread.drain(..some).collect();
        self.note(&list);
        drop(list);
        let there = |(app, entry): (TypeIndex, Weak<Entry>)| {
            let entry = entry.upgrade()?;
            Some(Listed { app, entry })
        };
        taken.into_iter().filter_map(there).collect()
    }

    pub(crate) fn give_back_unread(&self, unread: &Listed) {
        let mut list = lock(&self.list);
        let entry = Arc::downgrade(&unread.entry);
        list.unread.push_back((unread.app, entry));
        self.note(&list);
    }

    pub(crate) fn in_use(&self) -> MemoryUse {
        let list = lock(&self.list);
        MemoryUse {
            bytes: list.bytes + list.taken_bytes,
            entries: list.entries,
            kept_bytes: list.kept_bytes,
            in_use_bytes: list.in_use_bytes,
            received_bytes: 0,
            limit: self.budget.limit(),
        }
    }

    /// What is not in use any more may leave again. What was set aside since the last look is looked at first: a caller lets
    /// go what came last before anything else. Then the others in turn, at least as much as has come, if that is not very
    /// many. What stays for want of a store is given its turn again.
    fn look_again(&self, list: &mut Ledger, came: usize) {
        if let Some(at) = list.kept.next() {
            self.may_leave_again(list, at);
        }
        for at in std::mem::take(&mut list.set_aside) {
            self.is_still_in_use(list, at);
        }
        let (mut in_vain, mut bytes) = (0, 0_usize);
        for _ in 0..MOST_LOOKS.min(list.in_use.len()) {
            if in_vain >= LOOKS_IN_VAIN && bytes >= came {
                break;
            }
            if let Some(at) = list.in_use.next() {
                bytes = bytes.saturating_add(list.accounts[at as usize].bytes());
                in_vain += usize::from(self.is_still_in_use(list, at));
            }
        }
    }

    /// Looks at what was in use; what is free may leave again.
    fn is_still_in_use(&self, list: &mut Ledger, at: u32) -> bool {
        let keeps = |entry: &Entry| self.budget.only_saved && !entry.is_saved();
        let leaves = |entry: &Entry, named: &Named| !keeps(entry) || !named.is_ever_saved();
        let is_in_use = list.is_in_use(at, leaves);
        if is_in_use == Some(false) {
            self.may_leave_again(list, at);
        }
        is_in_use == Some(true)
    }

    fn may_leave_again(&self, list: &mut Ledger, at: u32) {
        let candidate = self.candidate(&list.accounts[at as usize]);
        list.set_state(at, AccountState::MayLeave);
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
            let candidate = self.candidate(&list.accounts[at as usize]);
            list.eviction.list(at, candidate);
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

    /// Where the results of an entry stand in the order of tags.
    fn class(&self, entry: &Entry) -> u8 {
        let first = &self.budget.first;
        let of = |named: &Named| {
            let tags = named.tags.unwrap_or_default();
            first
                .iter()
                .position(|tag| tags.contains(*tag))
                .unwrap_or(first.len())
        };
        let last = entry.results.results().iter().map(of).max();
        last.unwrap_or(0) as u8
    }
}

/// Why a victim stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stays {
    /// It costs more than was known.
    ForNow,
    /// Nothing has it but memory.
    Kept,
    /// The program holds it too.
    InUse,
}

/// A key is a digest: a part of it will do.
fn number(key: &Key) -> u64 {
    BuildKeyHasher::default().hash_one(key)
}

/// What looking in the store takes, in nanoseconds.
const FIND: u64 = 20_000;
