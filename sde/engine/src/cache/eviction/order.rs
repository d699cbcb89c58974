//! The listed entries in the order of their priorities: a binary heap in which each entry knows its place.

use super::Tracked;

/// Entries by number, and those that are listed as a heap of numbers. It takes four bytes an entry, where a tree takes
/// forty.
#[derive(Default)]
pub(super) struct Order {
    tracked: Vec<Tracked>,
    heap: Vec<u32>,
}

/// The place of an entry that is not listed.
const NOWHERE: u32 = u32::MAX;

impl Order {
    /// How many are listed.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The number above all that were ever listed.
    pub(super) fn numbers(&self) -> usize {
        self.tracked.len()
    }

    /// The listed entry of the lowest priority; of equal ones, that with the lowest number.
    pub(super) fn first(&self) -> Option<u32> {
        self.heap.first().copied()
    }

    pub(super) fn get(&self, number: u32) -> Option<Tracked> {
        let tracked = self.tracked.get(number as usize)?;
        (tracked.place != NOWHERE).then_some(*tracked)
    }

    /// Lists an entry, or moves it to another priority.
    pub(super) fn put(&mut self, number: u32, tracked: Tracked) {
        let place = match self.get(number) {
            Some(listed) => listed.place,
            None => {
                self.heap.push(number);
                (self.heap.len() - 1) as u32
            }
        };
        let least = number as usize + 1;
        if self.tracked.len() < least {
            let nothing = Tracked {
                place: NOWHERE,
                ..tracked
            };
            self.tracked.resize(least, nothing);
        }
        self.tracked[number as usize] = Tracked { place, ..tracked };
        self.settle(place as usize);
    }

    /// Takes an entry off, if it is listed.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(Tracked { place, .. }) = self.get(number) else {
            return;
        };
        self.tracked[number as usize].place = NOWHERE;
        self.heap.swap_remove(place as usize);
        if (place as usize) < self.heap.len() {
            self.tracked[self.heap[place as usize] as usize].place = place;
            self.settle(place as usize);
        }
    }

    /// Moves the entry at a place up or down until the order is right.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.is_before(place, (place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let first = children.reduce(|a, b| if self.is_before(b, a) { b } else { a });
            let Some(child) = first.filter(|child| self.is_before(*child, place)) else {
                return;
            };
            self.swap(place, child);
            place = child;
        }
    }

    fn is_before(&self, one: usize, other: usize) -> bool {
        let priority = |place: usize| {
            let number = self.heap[place];
            (self.tracked[number as usize].priority, number)
        };
        priority(one) < priority(other)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            self.tracked[self.heap[place] as usize].place = place as u32;
        }
    }
}
