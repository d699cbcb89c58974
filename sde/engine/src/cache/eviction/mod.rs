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

mod chances;
mod order;
#[cfg(test)]
mod tests;
mod uses;

use std::sync::atomic::{AtomicU64, Ordering};

use super::budget::EvictionOrder;
use chances::{Chances, LEFT};
pub use order::Order;
pub use uses::Uses;

/// The list of entries that may leave.
#[derive(Debug)]
pub struct Eviction {
    by: EvictionOrder,
    /// The number of values that came: the time with which uses are noted.
    pub tick: u64,
    /// The entries that are listed.
    pub order: Order,
    chances: Chances,
    /// Keys of entries that left, each in the one slot that it may have, and the words of their uses.
    history: Vec<[u64; 2]>,
    /// The number that was looked at last.
    hand: usize,
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
    /// An empty list. Its history of entries that left takes at most `history_bytes`, and little until it is used.
    pub fn new(by: EvictionOrder, history_bytes: usize) -> Self {
        Self {
            by,
            tick: 1,
            order: Order::default(),
            chances: Chances::default(),
            history: vec![[0; 2]; (history_bytes / 16).clamp(1 << 10, 1 << 21)],
            hand: 0,
        }
    }

    /// Notes that a value came. If it had left before, its earlier uses are restored to the word of its entry. `key` is
    /// a number that is the same for equal values and seldom for others.
    pub fn came(&mut self, key: u64, word: &AtomicU64) {
        self.tick += 1;
        let slot = self.slot(key);
        if slot[0] == key {
            let uses = Uses(std::mem::take(slot)[1]);
            word.store(uses.0, Ordering::Relaxed);
            let age = self.tick - uses.last();
            self.chances.reached(uses, age, 1.0, -LEFT);
        }
        Uses::note(word, self.tick);
    }

    /// Notes that a value has left, with its uses.
    pub fn left(&mut self, key: u64, uses: Uses) {
        if self.by == EvictionOrder::Worth {
            let age = self.tick - uses.last();
            self.chances.reached(uses, age, 0.0, LEFT);
            *self.slot(key) = [key, uses.0];
        }
    }

    fn slot(&mut self, key: u64) -> &mut [u64; 2] {
        let at = key % self.history.len() as u64;
        &mut self.history[at as usize]
    }

    /// Lists an entry, or computes its priority again; gives that.
    pub fn list(&mut self, at: u32, candidate: Candidate) -> u64 {
        let worth = self.chances.worth(candidate.uses, self.tick) * candidate.density;
        let priority = match self.by {
            EvictionOrder::FirstIn | EvictionOrder::LeastRecentlyUsed => candidate.uses.last(),
            // The bits of floats that are not negative sort like the floats.
            EvictionOrder::Worth => worth.to_bits() >> 8,
        };
        let priority = u64::from(candidate.class) << 56 | priority;
        self.order.put(at, priority, candidate.uses);
        priority
    }

    /// The entry that is to leave first; it stays listed. `candidate` is called for listed entries only.
    pub fn victim(&mut self, candidate: impl Fn(u32) -> Candidate) -> Option<u32> {
        let by_worth = self.by == EvictionOrder::Worth;
        if by_worth {
            self.chances.keep_up(self.tick, self.order.len());
            for _ in 0..LOOKS {
                self.hand = (self.hand + 1) % self.order.numbers().max(1);
                self.look(self.hand as u32, &candidate);
            }
        }
        let mut tries = 0;
        while self.look(self.order.first()?, &candidate) && (tries < TRIES || !by_worth) {
            tries += 1;
        }
        self.order.first()
    }

    /// Learns from the uses of an entry since the last look, and computes its priority again; says whether it is later
    /// than before.
    fn look(&mut self, at: u32, candidate: impl Fn(u32) -> Candidate) -> bool {
        let Some(before) = self.order.get(at) else {
            return false;
        };
        let now = candidate(at);
        let age = now.uses.last().saturating_sub(before.uses.last());
        if age > 0 {
            self.chances.reached(before.uses, age, 1.0, 0.0);
        }
        self.list(at, now) > before.priority
    }
}
