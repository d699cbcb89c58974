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
mod order;
#[cfg(test)]
mod tests;
mod uses;

use std::sync::atomic::AtomicU64;

use super::budget::EvictionOrder;
use chances::{Chances, age};
use history::History;
use order::Order;
pub use uses::Uses;

/// The list of entries that may leave.
pub struct Eviction {
    by: EvictionOrder,
    tick: u64,
    order: Order,
    chances: Chances,
    history: History,
    /// The number that was looked at last.
    hand: usize,
}

#[derive(Clone, Copy)]
struct Tracked {
    /// The class in the highest byte, then the bits of the worth but for the last eight, or the tick of the last use. The
    /// bits of floats that are not negative sort like the floats.
    priority: u64,
    /// Its uses at the last look.
    uses: Uses,
    /// Its place in the heap.
    place: u32,
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
            order: Order::default(),
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
        let uses = candidate.uses;
        let tracked = Tracked {
            priority: self.priority(candidate),
            uses,
            place: 0,
            passed: age(uses, self.tick) as u8,
        };
        self.order.put(at, tracked);
    }

    /// Takes an entry off, if it is listed.
    pub fn unlist(&mut self, at: u32) {
        self.order.remove(at);
    }

    /// The entry that is to leave first; it stays listed. `candidate` is called for listed entries only.
    pub fn victim(&mut self, candidate: impl Fn(u32) -> Candidate) -> Option<u32> {
        if self.by == EvictionOrder::Worth {
            self.chances.keep_up(self.tick, self.order.len());
            for _ in 0..LOOKS {
                self.hand = (self.hand + 1) % self.order.numbers().max(1);
                self.look(self.hand as u32, &candidate);
            }
        }
        let mut tries = 0;
        loop {
            let at = self.order.first()?;
            tries += 1;
            let is_enough = self.by == EvictionOrder::Worth && tries > TRIES;
            if is_enough || !self.look(at, &candidate) {
                return self.order.first();
            }
        }
    }

    /// Learns from the uses of an entry since the last look, and computes its priority; says whether that is later than
    /// before.
    fn look(&mut self, at: u32, candidate: impl Fn(u32) -> Candidate) -> bool {
        let Some(mut listed) = self.order.get(at) else {
            return false;
        };
        let before = listed.priority;
        let candidate = candidate(at);
        if self.by == EvictionOrder::Worth {
            self.learn(&mut listed, candidate.uses);
        }
        listed.priority = self.priority(candidate);
        self.order.put(at, listed);
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

    fn priority(&self, candidate: Candidate) -> u64 {
        let priority = match self.by {
            EvictionOrder::FirstIn | EvictionOrder::LeastRecentlyUsed => candidate.uses.last(),
            EvictionOrder::Worth => {
                (self.chances.worth(candidate.uses, self.tick) * candidate.density).to_bits() >> 8
            }
        };
        u64::from(candidate.class) << 56 | priority
    }
}
