//! Points dealt out one by one to sets of ranks.
//!
//! The first rank of a set without a point asks the first rank of all, and tells its set the answer. That rank deals,
//! and computes points on another thread. A computing set answers no one, so it never holds a point that it has not
//! begun.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use super::collective::Ranks;
use super::deal::{DealMessage, LONGEST, SHORTEST, heard};
use crate::error::Error;
use crate::machine;
use crate::sync::lock;

/// The points of a list, on the rank that deals.
pub(super) struct Points(Mutex<State>);

struct State {
    /// The points that are not begun.
    remaining: std::vec::IntoIter<usize>,
    /// The ranks that have taken points, and when each took its last.
    takers: BTreeMap<usize, (SystemTime, Instant)>,
    /// The points computed since it was asked, each with when it was begun and what it took.
    costs: Vec<(SystemTime, Duration)>,
    /// When there is too little time left to begin another.
    closes: Option<Instant>,
    /// The points that were not begun for want of time.
    left: Vec<usize>,
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
            takers: BTreeMap::new(),
            costs: Vec::new(),
            closes: None,
            left: Vec::new(),
            done: 0,
            ended: 0,
            lost: None,
        }))
    }

    /// The next point for a rank, which has computed the one it had.
    pub(super) fn next(&self, rank: usize) -> Option<usize> {
        let mut state = lock(&self.0);
        let now = Instant::now();
        if let Some((began, at)) = state.takers.insert(rank, (machine::now(), now)) {
            state.done += 1;
            state.costs.push((began, now.saturating_duration_since(at)));
        }
        if state.closes.is_some_and(|closes| now >= closes) {
            let State {
                remaining, left, ..
            } = &mut *state;
            left.extend(remaining);
        }
        state.remaining.next()
    }

    /// The points computed since this was asked, each with its number among all, when it was begun, and what it took.
    pub(super) fn take_costs(&self) -> Vec<(u64, SystemTime, Duration)> {
        let mut state = lock(&self.0);
        let first = (state.done - state.costs.len()) as u64;
        let costs = std::mem::take(&mut state.costs).into_iter();
        let numbered = (first..).zip(costs);
        numbered
            .map(|(number, (began, took))| (number, began, took))
            .collect()
    }

    /// Deals out nothing from then on.
    pub(super) fn close_at(&self, closes: Option<Instant>) {
        lock(&self.0).closes = closes;
    }

    /// The points that were not begun for want of time.
    pub(super) fn take_left(&self) -> Vec<usize> {
        std::mem::take(&mut lock(&self.0).left)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left() {
        let points = Points::new(vec![5, 6, 7, 8]);
        assert_eq!(points.next(1), Some(5));
        points.close_at(Instant::now().checked_add(Duration::from_secs(3600)));
        assert_eq!(points.next(1), Some(6));
        points.close_at(Some(Instant::now()));
        assert_eq!((points.next(2), points.next(1)), (None, None));
        assert_eq!(points.take_left(), [7, 8]);
        assert_eq!((points.done(), points.take_costs().len()), (2, 2));
    }
}
