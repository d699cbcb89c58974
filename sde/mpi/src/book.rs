//! A rank's knowledge of the other ranks in a group.

use std::collections::{BTreeMap, VecDeque};

use sde::ranks::Note;

/// The rounds of a group, counted on each rank from 1, and the notices about them.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// The number of rounds that this rank has entered.
    entered: u64,
    closed: bool,
    /// The rank whose absence broke the group: from here on MPI's own count of operations differs between ranks.
    broken: Option<usize>,
    /// The ranks that have left, each with the number of rounds it had entered.
    left: BTreeMap<usize, u64>,
    /// The ranks that said they were there, each with its round.
    here: BTreeMap<usize, u64>,
    /// The notes that other ranks have posted to this one.
    posted: VecDeque<(usize, Note)>,
}

impl Book {
    /// Begins a round; gives its number.
    pub(crate) fn enter(&mut self) -> u64 {
        self.entered += 1;
        self.entered
    }

    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    /// Closes the book. Returns whether it was open.
    pub(crate) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.closed, true)
    }

    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn broken(&self) -> Option<usize> {
        self.broken
    }

    /// Records that a rank has left. Returns whether that is new.
    pub(crate) fn has_left(&mut self, rank: usize, rounds: u64) -> bool {
        self.left.insert(rank, rounds).is_none()
    }

    pub(crate) fn is_here(&mut self, rank: usize, round: u64) {
        let known = self.here.entry(rank).or_default();
        *known = round.max(*known);
    }

    pub(crate) fn has_posted(&mut self, rank: usize, note: Note) {
        self.posted.push_back((rank, note));
    }

    /// The next posted note; if there is none and a rank has left, that rank.
    pub(crate) fn take_posted(&mut self) -> Result<Option<(usize, Note)>, usize> {
        match (self.posted.pop_front(), self.left.keys().next()) {
            (None, Some(rank)) => Err(*rank),
            (posted, _) => Ok(posted),
        }
    }

    /// A rank that has left before this round. It breaks the group.
    pub(crate) fn fails(&mut self, round: u64) -> Option<usize> {
        let mut left = self.left.iter();
        let rank = left.find(|(_, rounds)| **rounds < round).map(|(r, _)| *r);
        self.broken = self.broken.or(rank);
        rank
    }

    /// Whether no message of this group can be under way to this rank: `true` if all others have left after as many
    /// rounds, `None` if not known.
    pub(crate) fn is_quiet(&self, size: usize) -> Option<bool> {
        if self.broken.is_some() || self.left.values().any(|rounds| *rounds != self.entered) {
            return Some(false);
        }
        (self.left.len() + 1 == size).then_some(true)
    }

    /// The ranks that have not said that they are in a round.
    pub(crate) fn late(&self, round: u64, me: usize, size: usize) -> Vec<usize> {
        let here = |rank: &usize| self.here.get(rank).is_some_and(|known| *known >= round);
        let others = (0..size).filter(|rank| *rank != me);
        others.filter(|rank| !here(rank)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_left_after_a_round_does_not_fail_it() {
        let mut book = Book::default();
        let first = book.enter();
        assert!(book.has_left(2, first));
        assert!(!book.has_left(2, first), "told twice");
        assert_eq!(book.fails(first), None);
        assert_eq!(book.broken(), None);
        let second = book.enter();
        assert_eq!(book.fails(second), Some(2));
        assert_eq!(book.broken(), Some(2));
    }

    #[test]
    fn a_group_is_quiet_when_all_have_left_after_as_many_rounds() {
        let mut book = Book::default();
        let first = book.enter();
        assert_eq!((book.is_quiet(1), book.is_quiet(3)), (Some(true), None));
        book.has_left(2, first);
        assert_eq!(book.is_quiet(3), None);
        book.has_left(0, first);
        assert_eq!(book.is_quiet(3), Some(true));
        let mut book = Book::default();
        book.has_left(2, 1);
        assert_eq!(book.is_quiet(3), Some(false));
    }

    #[test]
    fn late_is_who_was_not_heard_of_in_this_round_or_a_later_one() {
        let mut book = Book::default();
        book.is_here(0, 2);
        book.is_here(0, 1);
        book.is_here(3, 1);
        assert_eq!(book.late(2, 1, 4), [2, 3]);
        assert_eq!(book.late(1, 1, 4), [2]);
    }
}
