//! The entries that a budget counts, and which of them leave.
//!
//! Entries are listed where the map is changed, with its guard held, so that the sum is that of what the map has. Who takes a
//! victim drops what the map has, or says why it stays.
//!
//! Lock order: a shard of a map, then a list. Nothing is dropped with either held: destructors may use the cache.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::budget::{EvictionOrder, MemoryBudget};
use super::entry::{Entry, NOWHERE};
use crate::app::TypeIndex;
use crate::result_map::Named;
use crate::sync::lock;

/// The entries of all apps that share a budget.
pub(crate) struct Memory {
    pub(crate) budget: MemoryBudget,
    /// One later with each entry that comes.
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

#[derive(Default)]
struct List {
    /// By [`Entry::place`].
    places: Vec<Place>,
    free: Vec<u32>,
    /// What may leave, the first first: by the order of tags, then by the order of the budget.
    order: BTreeSet<(Score, u32)>,
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
    /// The worth of what left last: what comes is worth more, so that what is there grows old.
    left: f64,
}

type Score = (u8, u64);

struct Place {
    /// `None` if the place is free.
    entry: Option<Arc<Entry>>,
    of: Of,
    bytes: usize,
    /// When it was used last, as far as the state knows.
    used: u64,
    state: State,
    came: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum State {
    MayLeave(Score),
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
            Arc::new(Self {
                budget,
                tick: AtomicU64::new(1),
                is_over: AtomicBool::new(false),
                list: Mutex::default(),
                nanos_per_kib: AtomicUsize::new(1 << 10),
                told: AtomicBool::new(false),
            })
        })
    }

    /// Takes note of a use. Written only if something has come since the last: threads that hit one entry again and again
    /// must not write to the same place.
    #[inline]
    pub(crate) fn used(&self, entry: &Entry) {
        let now = self.tick.load(Ordering::Relaxed);
        if entry.uses.load(Ordering::Relaxed) != now {
            entry.uses.store(now, Ordering::Relaxed);
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
        if let Some(entry) = after {
            let now = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
            if entry.uses.load(Ordering::Relaxed) == 0 {
                entry.uses.store(now, Ordering::Relaxed);
            }
            let came = self.budget.max_age.map(|_| Instant::now());
            let came = removed.as_ref().map_or(came, |place| place.came);
            let is_only_a_record = !entry.holds_values() && !entry.is_saved();
            let state = match of {
                _ if is_only_a_record && !self.budget.forgets_records => State::Kept,
                Of::Ranks => State::Together,
                Of::App(_) => State::MayLeave(self.score(&list, entry)),
            };
            list.insert(of, entry, state, came);
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
            (_, Stays::ForNow) => State::MayLeave(self.score(&list, entry)),
            (_, Stays::InUse) => State::InUse,
        };
        let came = before.as_ref().and_then(|place| place.came);
        list.insert(of, entry, state, came);
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
        while list.bytes > limit - slack || list.order.len() > self.budget.entries {
            let (score, at) = list.order.first().copied()?;
            let place = &list.places[at as usize];
            let entry = Arc::clone(place.entry.as_ref()?);
            if place.used == entry.last_use() {
                list.left = f64::from_bits(score.1).max(list.left);
                return Some(at);
            }
            let now = State::MayLeave(self.score(list, &entry));
            list.places[at as usize].used = entry.last_use();
            list.set_state(at, now);
        }
        None
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
            || list.order.len() > self.budget.entries
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
                        let score = self.score(list, entry);
                        list.set_state(at, State::MayLeave(score));
                    }
                }
                _ => {}
            }
        }
    }

    fn score(&self, list: &List, entry: &Entry) -> Score {
        let uses = entry.uses.load(Ordering::Relaxed);
        let score = match self.budget.order {
            EvictionOrder::FirstIn | EvictionOrder::LeastRecentlyUsed => uses,
            EvictionOrder::Worth => {
                let worth = self.cost(entry) as f64 / entry.known_memory().max(1) as f64;
                (list.left + worth).to_bits()
            }
        };
        (self.class(entry), score)
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
    fn insert(&mut self, of: Of, entry: &Arc<Entry>, state: State, came: Option<Instant>) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                entry: None,
                of,
                bytes: 0,
                used: 0,
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
            used: entry.last_use(),
            state,
            came,
        };
        self.entries += 1;
        self.count(at, true);
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
            State::MayLeave(score) => {
                add(&mut self.bytes);
                change(&mut self.order, (score, at), is_there);
                if let Some(came) = came {
                    change(&mut self.by_age, (came, at), is_there);
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

fn change<T: Ord>(set: &mut BTreeSet<T>, one: T, is_there: bool) {
    match is_there {
        true => set.insert(one),
        false => set.remove(&one),
    };
}

/// What looking in the store takes, in nanoseconds.
const FIND: u64 = 20_000;
