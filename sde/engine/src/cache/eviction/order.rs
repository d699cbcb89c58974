//! The listed entries in the order of their priorities: a binary heap in which each entry knows its place.

use super::uses::Uses;

/// Entries by number, and those that are listed as a heap of numbers. It takes four bytes an entry, where a tree takes
/// forty.
#[derive(Debug, Default)]
pub struct Order {
    tracked: Vec<Tracked>,
    heap: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tracked {
    pub(super) priority: u64,
    /// Its uses at the last look.
    pub(super) uses: Uses,
    /// Its place in the heap.
    place: u32,
}

const NOT_LISTED: Tracked = Tracked {
    priority: 0,
    uses: Uses(0),
    place: u32::MAX,
};

impl Order {
    /// How many are listed.
    pub(crate) fn len(&self) -> usize {
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
        (tracked.place != NOT_LISTED.place).then_some(*tracked)
    }

    /// Lists an entry, or moves it to another priority.
    pub(super) fn put(&mut self, number: u32, priority: u64, uses: Uses) {
        let place = match self.get(number) {
            Some(listed) => listed.place as usize,
            None => {
                self.heap.push(number);
                self.heap.len() - 1
            }
        };
        let numbers = self.tracked.len().max(number as usize + 1);
        self.tracked.resize(numbers, NOT_LISTED);
        let tracked = &mut self.tracked[number as usize];
        (tracked.priority, tracked.uses) = (priority, uses);
        self.settle(number, place);
    }

    /// Takes an entry off, if it is listed.
    pub fn remove(&mut self, number: u32) {
        if let Some(listed) = self.get(number) {
            let place = listed.place as usize;
            self.tracked[number as usize] = NOT_LISTED;
            self.heap.swap_remove(place);
            if let Some(moved) = self.heap.get(place) {
                self.settle(*moved, place);
            }
        }
    }

    /// Puts an entry at a place, or above or below it where the order is right.
    fn settle(&mut self, number: u32, mut place: usize) {
        let key = |order: &Self, number: u32| (order.tracked[number as usize].priority, number);
        let own = key(self, number);
        while place > 0 {
            let parent = self.heap[(place - 1) / 2];
            if key(self, parent) <= own {
                break;
            }
            self.set(parent, place);
            place = (place - 1) / 2;
        }
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let first = children.min_by_key(|child| key(self, self.heap[*child]));
            let Some(child) = first.filter(|child| key(self, self.heap[*child]) < own) else {
                break;
            };
            self.set(self.heap[child], place);
            place = child;
        }
        self.set(number, place);
    }

    fn set(&mut self, number: u32, place: usize) {
        self.heap[place] = number;
        self.tracked[number as usize].place = place as u32;
    }
}
