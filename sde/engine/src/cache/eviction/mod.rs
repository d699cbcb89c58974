//! The order in which entries leave.
//!
//! A list of the entries that may leave, in the order of leaving, by numbers that the user of the list gives. It knows
//! no lock and no clock: its user holds a lock, and time is counted in values that came. A hit only writes to a word of
//! its own entry ([`Uses`]). The list learns of hits later: when an entry would be the next to leave, and, for a few
//! entries in turn, at each victim.
//!
//! [`EvictionOrder::Worth`] ranks entries by what keeping them saves for each byte and tick: the cost of getting them
//! back, times the chance that they are asked for soon ([`chances`]). `benches/memory` compares it with other policies;
//! `0026-what-leaves-first.md` has what was tried.

mod ages;
mod chances;
mod history;
#[cfg(test)]
mod tests;
mod uses;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use super::budget::EvictionOrder;
use chances::{Chances, age};
use history::History;
pub use uses::Uses;

/// The list of entries that may leave.
pub struct Eviction {
    by: EvictionOrder,
    tick: u64,
    /// By number.
    listed: Vec<Option<Tracked>>,
    order: BTreeSet<(Priority, u32)>,
    chances: Chances,
    history: History,
    /// The number that was looked at last.
    hand: usize,
}

/// The class, then the bits of the worth or the tick of the last use. The bits of floats that are not negative sort
/// like the floats.
type Priority = (u8, u64);

#[derive(Clone, Copy)]
struct Tracked {
    priority: Priority,
    /// Its uses at the last look.
    uses: Uses,
    /// The step of age up to which it was counted as not asked for.
    passed: u8,
}

/// The facts about an entry that the list asks its user for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate {
    /// Lower classes leave first, whatever the other facts.
    pub class: u8,
    /// The cost of getting the entry back, for each byte; in any unit, but not below zero.
    pub density: f64,
    /// Its uses.
    pub uses: Uses,
}

/// How many entries are looked at in turn at each victim, so that entries no longer used grow old.
const LOOKS: usize = 4;

/// How many entries in a row may turn out to be worth more than was known; the next victim leaves even so.
const TRIES: usize = 32;

impl Eviction {
    /// An empty list. Its history of entries that left takes at most `history_bytes`.
    pub fn new(by: EvictionOrder, history_bytes: usize) -> Self {
        Self {
            by,
            tick: 1,
            listed: Vec::new(),
            order: BTreeSet::new(),
            chances: Chances::new(),
            history: History::new(history_bytes),
            hand: 0,
        }
    }

    /// The number of values that came: the time with which uses are noted.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// How many are listed.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// Notes that a value came. If it had left before, its earlier uses are restored to the word of its entry. `key` is
    /// a number that is the same for equal values and seldom for others.
    pub fn came(&mut self, key: u64, word: &AtomicU64) {
        self.tick += 1;
        if let Some(uses) = self.history.take(key) {
            uses.write(word);
            self.chances.came_back(uses, self.tick);
        }
        Uses::note(word, self.tick);
    }

    /// Notes that a value has left, with its uses.
    pub fn left(&mut self, key: u64, uses: Uses) {
        if self.by == EvictionOrder::Worth {
            self.chances.left(uses, self.tick);
            self.history.put(key, uses);
        }
    }

    /// Lists an entry, or computes its priority again.
    pub fn list(&mut self, at: u32, candidate: Candidate) {
        self.unlist(at);
        let priority = self.priority(candidate);
        let uses = candidate.uses;
        if self.listed.len() <= at as usize {
            self.listed.resize(at as usize + 1, None);
        }
        self.listed[at as usize] = Some(Tracked {
            priority,
            uses,
            passed: age(uses, self.tick) as u8,
        });
        self.order.insert((priority, at));
    }

    /// Takes an entry off, if it is listed.
    pub fn unlist(&mut self, at: u32) {
        let listed = self.listed.get_mut(at as usize).and_then(Option::take);
        if let Some(listed) = listed {
            self.order.remove(&(listed.priority, at));
        }
    }

    /// The entry that is to leave first; it stays listed. `candidate` is called for listed entries only.
    pub fn victim(&mut self, candidate: impl Fn(u32) -> Candidate) -> Option<u32> {
        if self.by == EvictionOrder::Worth {
            self.chances.keep_up(self.tick, self.order.len());
            for _ in 0..LOOKS {
                self.hand = (self.hand + 1) % self.listed.len().max(1);
                if self.listed.get(self.hand).is_some_and(Option::is_some) {
                    self.look(self.hand as u32, &candidate);
                }
            }
        }
        let mut tries = 0;
        loop {
            let (_, at) = *self.order.first()?;
            tries += 1;
            let is_enough = self.by == EvictionOrder::Worth && tries > TRIES;
            if is_enough || !self.look(at, &candidate) {
                return self.order.first().map(|(_, at)| *at);
            }
        }
    }

    /// Learns from the uses of an entry since the last look, and computes its priority; says whether that is later than
    /// before.
    fn look(&mut self, at: u32, candidate: impl Fn(u32) -> Candidate) -> bool {
        let Some(mut listed) = self.listed[at as usize] else {
            return false;
        };
        let before = listed.priority;
        let candidate = candidate(at);
        if self.by == EvictionOrder::Worth {
            self.learn(&mut listed, candidate.uses);
        }
        listed.priority = self.priority(candidate);
        self.listed[at as usize] = Some(listed);
        if listed.priority != before {
            self.order.remove(&(before, at));
            self.order.insert((listed.priority, at));
        }
        listed.priority > before
    }

    fn learn(&mut self, listed: &mut Tracked, now: Uses) {
        let before = std::mem::replace(&mut listed.uses, now);
        if now.last() > before.last() {
            let times = now.since(before).max(1);
            let age = (now.last() - before.last()) / times;
            self.chances.asked(before, listed.passed, age, 1.0);
            self.chances.asked(now, 0, age, (times - 1) as f64);
            listed.passed = 0;
        }
        let until = age(now, self.tick) as u8;
        self.chances.passed(now, listed.passed, until, 1.0);
        listed.passed = until;
    }

    fn priority(&self, candidate: Candidate) -> Priority {
        let priority = match self.by {
            EvictionOrder::FirstIn | EvictionOrder::LeastRecentlyUsed => candidate.uses.last(),
            EvictionOrder::Worth => {
                (self.chances.worth(candidate.uses, self.tick) * candidate.density).to_bits()
            }
        };
        (candidate.class, priority)
    }
}
