//! What a rank knows of the others in a group.

use std::collections::{BTreeMap, VecDeque};

use sde::Note;

/// The rounds of a group, counted on each rank from 1, and what notices said about them.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// How many rounds this rank has entered.
    entered: u64,
    /// This rank will enter no more.
    closed: bool,
    /// The rank that a round failed for, for good: MPI's own count of operations differs from
    /// here on.
    broken: Option<usize>,
    /// Who has left, after how many rounds.
    left: BTreeMap<usize, u64>,
    /// Who has said that he was there, in which round.
    here: BTreeMap<usize, u64>,
    /// What others have posted to this rank.
    posted: VecDeque<(usize, Note)>,
}

impl Book {
    /// The number of the round that begins.
    pub(crate) fn enter(&mut self) -> u64 {
        self.entered += 1;
        self.entered
    }

    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    /// Whether this is new.
    pub(crate) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.closed, true)
    }

    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn broken(&self) -> Option<usize> {
        self.broken
    }

    /// Whether this is new.
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

    /// The next of what was posted; without one, who has left.
    pub(crate) fn take_posted(&mut self) -> Result<Option<(usize, Note)>, usize> {
        match (self.posted.pop_front(), self.left.keys().next()) {
            (None, Some(rank)) => Err(*rank),
            (posted, _) => Ok(posted),
        }
    }

    /// A rank that will not come to a round, and so breaks the group.
    pub(crate) fn fails(&mut self, round: u64) -> Option<usize> {
        let mut left = self.left.iter();
        let rank = left.find(|(_, rounds)| **rounds < round).map(|(r, _)| *r);
        self.broken = self.broken.or(rank);
        rank
    }

    /// Whether no message of this group is under way to this rank, if that is known: all others have left after as many rounds.
    pub(crate) fn is_quiet(&self, size: usize) -> Option<bool> {
        if self.broken.is_some() || self.left.values().any(|rounds| *rounds != self.entered) {
            return Some(false);
        }
        (self.left.len() + 1 == size).then_some(true)
    }

    /// Who has not said that he is in a round.
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
