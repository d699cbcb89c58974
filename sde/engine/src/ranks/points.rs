//! Points dealt out one by one to sets of ranks.
//!
//! The first rank of a set without a point asks the first rank of all, and tells its set the answer. That rank deals,
//! and computes points on another thread. A computing set answers no one, so it never holds a point that it has not
//! begun.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::collective::Ranks;
use super::deal::{DealMessage, LONGEST, SHORTEST, heard};
use crate::error::Error;
use crate::sync::lock;

/// The points of a list, on the rank that deals.
pub(super) struct Points(Mutex<State>);

struct State {
    /// The points that are not begun.
    remaining: std::vec::IntoIter<usize>,
    /// The ranks that have taken points.
    takers: BTreeSet<usize>,
    done: usize,
    /// The number of other sets that have been told the end or have failed.
    ended: usize,
    /// The error after which other ranks can't be heard.
    lost: Option<Error>,
}

impl Points {
    /// Deals out these items, in this order.
    pub(super) fn new(items: Vec<usize>) -> Self {
        Self(Mutex::new(State {
            remaining: items.into_iter(),
            takers: BTreeSet::new(),
            done: 0,
            ended: 0,
            lost: None,
        }))
    }

    /// The next point for a rank, which has computed the one it had.
    pub(super) fn next(&self, rank: usize) -> Option<usize> {
        let mut state = lock(&self.0);
        if !state.takers.insert(rank) {
            state.done += 1;
        }
        state.remaining.next()
    }

    /// Deals out no more points.
    pub(super) fn stop(&self) {
        lock(&self.0).remaining = Vec::new().into_iter();
    }

    /// The number of computed points.
    pub(super) fn done(&self) -> usize {
        lock(&self.0).done
    }

    /// Whether this many other sets have been told the end or have failed, or other ranks can no longer be heard.
    pub(super) fn have_ended(&self, sets: usize) -> bool {
        let state = lock(&self.0);
        state.ended >= sets || state.lost.is_some()
    }

    pub(super) fn lost(&self) -> Option<Error> {
        lock(&self.0).lost.clone()
    }

    /// Answers the notes of other ranks. Returns whether there were any.
    pub(super) fn answer(&self, ranks: &Ranks, list: u64) -> bool {
        self.try_answer(ranks, list).unwrap_or_else(|error| {
            self.stop();
            lock(&self.0).lost.get_or_insert(error);
            false
        })
    }

    fn try_answer(&self, ranks: &Ranks, list: u64) -> Result<bool, Error> {
        if self.lost().is_some() {
            return Ok(false);
        }
        let mut has_asked = false;
        while let Some((rank, said)) = heard(ranks, list)? {
            match said {
                DealMessage::Idle => {
                    let says = match self.next(rank) {
                        Some(item) => DealMessage::Take(item..item + 1),
                        None => DealMessage::End,
                    };
                    let ended = says == DealMessage::End;
                    ranks.post(rank, says.to_note(list))?;
                    lock(&self.0).ended += usize::from(ended);
                }
                DealMessage::Stop => {
                    self.stop();
                    lock(&self.0).ended += 1;
                }
                _ => {}
            }
            has_asked = true;
        }
        Ok(has_asked)
    }
}

/// Asks the first rank for the next point.
pub(super) fn next_point(ranks: &Ranks, list: u64) -> Result<Option<usize>, Error> {
    ranks.post(0, DealMessage::Idle.to_note(list))?;
    let mut sleep = SHORTEST;
    loop {
        match heard(ranks, list)? {
            Some((_, DealMessage::Take(items))) => return Ok(Some(items.start)),
            Some((_, DealMessage::End)) => return Ok(None),
            Some(_) => {}
            None => {
                std::thread::sleep(sleep);
                sleep = (2 * sleep).min(LONGEST);
            }
        }
    }
}

/// Tells the first rank that this one has failed and asks for nothing more.
pub(super) fn stop_all(ranks: &Ranks, list: u64) {
    // A rank that has left is noticed elsewhere.
    let _ = ranks.post(0, DealMessage::Stop.to_note(list));
}
