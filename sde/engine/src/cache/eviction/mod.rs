//! In what order entries leave.
//!
//! A list of what may leave, by numbers that its user gives, in the order in which it is to leave. It knows no lock and no
//! clock: it is used with a lock held, time is counted in values that came, and all that a hit does is to write to a word of its
//! own entry ([`Uses`]). The list finds out about hits later: when an entry would be the next to leave, and at each victim of a
//! few entries in turn.
//!
//! [`EvictionOrder::Worth`] asks what keeping an entry saves for each byte and tick: what having it again costs, times how likely
//! it is asked for soon ([`chances`]). `benches/memory` has it beside other policies, `0026-what-leaves-first.md` what was tried.

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

/// The list of what may leave.
pub struct Eviction {
    by: EvictionOrder,
    tick: u64,
    /// By number.
    listed: Vec<Option<Tracked>>,
    order: BTreeSet<(Priority, u32)>,
    chances: Chances,
    history: History,
    /// The next to be looked at.
    hand: usize,
}

/// By the class, then by what it is worth or when it was used. Of numbers that are not negative the bits have the same order.
type Priority = (u8, u64);

#[derive(Clone, Copy)]
struct Tracked {
    priority: Priority,
    /// What was known of its uses when it was looked at last.
    uses: Uses,
    /// Until what age it was counted as not asked for.
    passed: u8,
}

/// What is known of an entry outside of the list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate {
    /// Lower ones leave first, whatever the rest says.
    pub class: u8,
    /// What having it again costs, for each byte; in any unit, but not below zero.
    pub density: f64,
    /// Its uses.
    pub uses: Uses,
}

/// At each victim so many entries are looked at in turn, so that what was used and is not any more grows old.
const LOOKS: usize = 4;

/// So many may turn out to be worth more than was known before one has to leave.
const TRIES: usize = 32;

impl Eviction {
    /// An empty list. What it knows of what has left takes so many bytes at most.
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

    /// How many values came. What is used is noted with this.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// How many are listed.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// A value came since it was asked for. What was known of its uses before it left goes to the word of its entry. Keys are
    /// numbers that are the same for the same values, and seldom for others.
    pub fn came(&mut self, key: u64, word: &AtomicU64) {
        self.tick += 1;
        if let Some(uses) = self.history.take(key) {
            uses.write(word);
            self.chances.came_back(uses, self.tick);
        }
        Uses::note(word, self.tick);
    }

    /// A value is gone that had come.
    pub fn left(&mut self, key: u64, uses: Uses) {
        if self.by == EvictionOrder::Worth {
            self.chances.left(uses, self.tick);
            self.history.put(key, uses);
        }
    }

    /// Lists an entry, or gives it its priority anew.
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

    /// Who is the first to leave; it stays listed. `candidate` is asked about listed ones.
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

    /// Finds out what became of an entry since it was looked at, and gives it its priority; says whether that is later than it was.
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
