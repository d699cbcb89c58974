//! The entries that a budget counts, and which of them leave.
//!
//! Entries are listed where the map is changed, with its guard held, so that the sum is that of what the map has. Who takes a
//! victim drops what the map has, or says why it stays.
//!
//! Lock order: a shard of a map, then a list. Nothing is dropped with either held: destructors may use the cache.

use std::collections::{BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::budget::{EvictionOrder, MemoryBudget};
use super::entry::{Entry, NOWHERE};
use super::eviction::{Eviction, Facts, Uses};
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
    list: Mutex<List>,
    /// What reading from the store takes, as far as was seen.
    nanos_per_kib: AtomicUsize,
    /// Whether it was told that too much can't leave.
    pub(crate) told: AtomicBool,
}

/// How much is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// How many bytes count: of what the program holds too those that may be looked at yet.
    pub bytes: usize,
    /// How many entries have these.
    pub entries: usize,
    /// How many bytes of those can't leave, since no store has them.
    pub kept_bytes: usize,
    /// How many bytes besides the program was found to hold too, when nothing else was left to leave.
    pub in_use_bytes: usize,
    /// The budget.
    pub limit: usize,
}

struct List {
    /// By [`Entry::place`].
    places: Vec<Place>,
    free: Vec<u32>,
    /// What may leave.
    eviction: Eviction,
    /// What is in use, to be looked at again in turn.
    in_use: VecDeque<u32>,
    /// The same by when it came, if that matters.
    by_age: BTreeSet<(Instant, u32)>,
    /// All but what is in use or taken.
    bytes: usize,
    taken_bytes: usize,
    together_bytes: usize,
    entries: usize,
    kept_bytes: usize,
    in_use_bytes: usize,
}

struct Place {
    /// `None` if the place is free.
    entry: Option<Arc<Entry>>,
    of: Of,
    bytes: usize,
    state: State,
    came: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    MayLeave,
    /// Nothing has it but memory.
    Kept,
    InUse,
    /// A victim, of which it is not decided yet.
    Taken,
    /// It leaves with those of other ranks.
    Together,
}

/// Whose an entry is.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    App(TypeIndex),
    /// Of the ranks of a process set, who have it leave together.
    Ranks,
}

/// What is to leave.
pub(crate) struct Victim {
    pub(crate) app: TypeIndex,
    pub(crate) entry: Arc<Entry>,
}

/// What has to go goes in pieces of so many bytes: a store that it is saved to first makes a copy.
const PIECE: usize = 16 << 20;

/// What is looked at in vain of what is in use each time that something comes.
const LOOKED_AT: usize = 2;

impl Memory {
    /// `None` if the budget limits nothing.
    pub(crate) fn new(budget: MemoryBudget) -> Option<Arc<Self>> {
        budget.is_limited().then(|| {
            let list = List::new(Eviction::new(budget.order, budget.limit() / 64));
            Arc::new(Self {
                budget,
                tick: AtomicU64::new(1),
                is_over: AtomicBool::new(false),
                list: Mutex::new(list),
                nanos_per_kib: AtomicUsize::new(1 << 10),
                told: AtomicBool::new(false),
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
    pub(super) fn read(&self, (took, bytes): (Duration, usize)) {
        let now = usize::try_from(took.as_nanos()).unwrap_or(usize::MAX) / (bytes / 1024 + 1);
        let before = self.nanos_per_kib.load(Ordering::Relaxed);
        let average = before - before / 8 + now / 8;
        self.nanos_per_kib.store(average, Ordering::Relaxed);
    }

    /// What having an entry again takes, in nanoseconds.
    pub(crate) fn cost(&self, entry: &Entry) -> u64 {
        if !entry.is_saved() {
            return entry.own_nanos.saturating_add(entry.beneath());
        }
        let kib = entry.known_memory() / 1024 + 1;
        FIND + kib as u64 * self.nanos_per_kib.load(Ordering::Relaxed) as u64
    }

    /// Lists what the map has now for a key in place of what it had. Called with the guard of that held. Gives what is to be
    /// dropped when it is free again.
    pub(super) fn change(
        &self,
        of: Of,
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
            let came = removed.as_ref().map_or(came, |place| place.came);
            let is_only_a_record = !entry.holds_values() && !entry.is_saved();
            let state = match of {
                _ if is_only_a_record && !self.budget.forgets_records => State::Kept,
                Of::Ranks => State::Together,
                Of::App(_) => State::MayLeave,
            };
            self.insert(&mut list, of, entry, state, came);
        }
        self.look_at_what_is_in_use(&mut list);
        self.note(&list);
        removed.and_then(|place| place.entry)
    }

    /// Lists an entry that was a victim and stays, or whose cost has changed. Called with the guard of the map held, which
    /// has it.
    pub(super) fn count_again(&self, of: Of, entry: &Arc<Entry>, why: Stays) {
        let mut list = lock(&self.list);
        let before = list.remove(entry);
        let state = match (of, why) {
            (_, Stays::Kept) => State::Kept,
            (Of::Ranks, _) => State::Together,
            (_, Stays::ForNow) => State::MayLeave,
            (_, Stays::InUse) => State::InUse,
        };
        let came = before.as_ref().and_then(|place| place.came);
        self.insert(&mut list, of, entry, state, came);
        self.note(&list);
        drop(list);
        drop(before);
    }

    /// A piece of what has to leave.
    pub(crate) fn take(&self) -> Vec<Victim> {
        let mut list = lock(&self.list);
        let mut victims = Vec::new();
        let mut bytes = 0_usize;
        while bytes < PIECE
            && let Some(at) = self.next(&mut list)
        {
            bytes = bytes.saturating_add(list.places[at as usize].bytes);
            list.set_state(at, State::Taken);
            let Place { of, entry, .. } = &list.places[at as usize];
            if let (Of::App(app), Some(entry)) = (*of, entry.clone()) {
                victims.push(Victim { app, entry });
            }
        }
        self.note(&list);
        victims
    }

    /// Which has to leave next.
    fn next(&self, list: &mut List) -> Option<u32> {
        if self.is_oldest_too_old(list) {
            return Some(list.by_age.first()?.1);
        }
        let limit = self.allowed(list);
        let slack = (limit / 64).min(PIECE);
        let is_over = list.bytes > limit - slack || list.eviction.count() > self.budget.entries;
        let List {
            places, eviction, ..
        } = list;
        let facts = |at: u32| self.facts(&places[at as usize]);
        is_over.then(|| eviction.victim(facts)).flatten()
    }

    /// How much may be there: the budget, and where more than that can't leave, an eighth besides.
    fn allowed(&self, list: &List) -> usize {
        let limit = self.budget.limit();
        limit.max(list.kept_bytes.saturating_add(limit / 8))
    }

    fn is_oldest_too_old(&self, list: &List) -> bool {
        let oldest = list.by_age.first().zip(self.budget.max_age);
        oldest.is_some_and(|((came, _), age)| came.elapsed() > age)
    }

    fn note(&self, list: &List) {
        let is_over = list.bytes > self.allowed(list)
            || list.eviction.count() > self.budget.entries
            || self.is_oldest_too_old(list);
        self.is_over.store(is_over, Ordering::Release);
    }

    /// How many bytes of what ranks made together are to leave: what is too much, but no more than what is above the half
    /// of the budget.
    pub(crate) fn too_much_together(&self) -> usize {
        let list = lock(&self.list);
        let limit = self.budget.limit();
        let above_half = list.together_bytes.saturating_sub(limit / 2);
        above_half.min(list.bytes.saturating_sub(self.allowed(&list)))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn in_use(&self) -> MemoryUse {
        let list = lock(&self.list);
        MemoryUse {
            bytes: list.bytes + list.taken_bytes,
            entries: list.entries,
            kept_bytes: list.kept_bytes,
            in_use_bytes: list.in_use_bytes,
            limit: self.budget.limit(),
        }
    }

    /// What is not in use any more may leave again. Some are looked at each time that something comes, and as many more as are
    /// found free.
    fn look_at_what_is_in_use(&self, list: &mut List) {
        let mut looks = LOOKED_AT;
        while looks > 0
            && let Some(at) = list.in_use.pop_front()
        {
            let place = &list.places[at as usize];
            match &place.entry {
                Some(entry) if place.state == State::InUse => {
                    if entry.is_in_use() {
                        list.in_use.push_back(at);
                        looks -= 1;
                    } else {
                        let facts = self.facts(place);
                        list.set_state(at, State::MayLeave);
                        list.eviction.list(at, facts);
                    }
                }
                _ => {}
            }
        }
    }

    fn insert(
        &self,
        list: &mut List,
        of: Of,
        entry: &Arc<Entry>,
        state: State,
        came: Option<Instant>,
    ) {
        let at = list.insert(of, entry, state, came);
        if state == State::MayLeave {
            let facts = self.facts(&list.places[at as usize]);
            list.eviction.list(at, facts);
        }
    }

    fn facts(&self, place: &Place) -> Facts {
        let of = |entry: &Arc<Entry>| Facts {
            class: self.class(entry),
            density: self.cost(entry) as f64 / place.bytes.max(1) as f64,
            uses: Uses::of(&entry.uses),
        };
        place.entry.as_ref().map_or_else(Facts::default, of)
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

impl List {
    fn new(eviction: Eviction) -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            eviction,
            in_use: VecDeque::new(),
            by_age: BTreeSet::new(),
            bytes: 0,
            taken_bytes: 0,
            together_bytes: 0,
            entries: 0,
            kept_bytes: 0,
            in_use_bytes: 0,
        }
    }

    /// What may leave is to be given its turn yet.
    fn insert(&mut self, of: Of, entry: &Arc<Entry>, state: State, came: Option<Instant>) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                entry: None,
                of,
                bytes: 0,
                state: State::Kept,
                came,
            });
            (self.places.len() - 1) as u32
        });
        entry.place.store(at, Ordering::Relaxed);
        self.places[at as usize] = Place {
            entry: Some(Arc::clone(entry)),
            of,
            bytes: entry.known_memory(),
            state,
            came,
        };
        self.entries += 1;
        self.count(at, true);
        at
    }

    /// Takes an entry off, if it is here.
    fn remove(&mut self, entry: &Arc<Entry>) -> Option<Place> {
        let at = entry.place.load(Ordering::Relaxed);
        let is_here = |place: &Place| {
            place
                .entry
                .as_ref()
                .is_some_and(|here| Arc::ptr_eq(here, entry))
        };
        let is_here = self.places.get(at as usize).is_some_and(is_here);
        is_here.then(|| self.free_place(at)).flatten()
    }

    fn free_place(&mut self, at: u32) -> Option<Place> {
        self.count(at, false);
        self.entries -= 1;
        self.free.push(at);
        let place = &mut self.places[at as usize];
        let free = Place {
            entry: None,
            state: State::Kept,
            came: None,
            ..*place
        };
        let place = std::mem::replace(place, free);
        place
            .entry
            .as_ref()?
            .place
            .store(NOWHERE, Ordering::Relaxed);
        Some(place)
    }

    fn set_state(&mut self, at: u32, state: State) {
        self.count(at, false);
        self.places[at as usize].state = state;
        self.count(at, true);
    }

    /// Adds a place to the sums that its state has it in, or takes it off.
    fn count(&mut self, at: u32, is_there: bool) {
        let Place {
            bytes, state, came, ..
        } = self.places[at as usize];
        let add = |sum: &mut usize| match is_there {
            true => *sum += bytes,
            false => *sum -= bytes,
        };
        match state {
            State::MayLeave => {
                add(&mut self.bytes);
                if !is_there {
                    self.eviction.unlist(at);
                }
                if let Some(came) = came {
                    match is_there {
                        true => self.by_age.insert((came, at)),
                        false => self.by_age.remove(&(came, at)),
                    };
                }
            }
            State::Taken => add(&mut self.taken_bytes),
            State::Together => {
                add(&mut self.bytes);
                add(&mut self.together_bytes);
            }
            State::Kept => {
                add(&mut self.bytes);
                add(&mut self.kept_bytes);
            }
            State::InUse => {
                add(&mut self.in_use_bytes);
                if is_there {
                    self.in_use.push_back(at);
                }
            }
        }
    }
}

/// A key is a digest: a part of it will do.
fn number(key: &Key) -> u64 {
    BuildKeyHasher::default().hash_one(key)
}

/// What looking in the store takes, in nanoseconds.
const FIND: u64 = 20_000;
