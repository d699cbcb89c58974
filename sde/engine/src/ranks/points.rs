//! Points that are dealt out one by one to sets of ranks.
//!
//! The first rank of a set that has no point asks the first rank of all, and tells its set what it was given: that one deals, and
//! computes points on another thread. A set that computes answers nobody, so it has no point that it has not begun.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::collective::Ranks;
use super::deal::{DealMessage, LONGEST, SHORTEST};
use crate::error::Error;
use crate::sync::lock;

/// What the first rank of all has of a list.
pub(super) struct Points(Mutex<State>);

struct State {
    /// What is not begun.
    remaining: std::vec::IntoIter<usize>,
    /// Which ranks have taken points.
    takers: BTreeSet<usize>,
    done: usize,
    /// How many sets of other ranks begin nothing more, and know it.
    ended: usize,
    /// Why the others can't be heard any more.
    lost: Option<Error>,
}

impl Points {
    /// Of these items, in this order.
    pub(super) fn new(items: Vec<usize>) -> Self {
        Self(Mutex::new(State {
            remaining: items.into_iter(),
            takers: BTreeSet::new(),
            done: 0,
            ended: 0,
            lost: None,
        }))
    }

    /// The next one for a rank that has computed what it had.
    pub(super) fn next(&self, rank: usize) -> Option<usize> {
        let mut state = lock(&self.0);
        if !state.takers.insert(rank) {
            state.done += 1;
        }
        state.remaining.next()
    }

    /// Nothing more is begun.
    pub(super) fn stop(&self) {
        lock(&self.0).remaining = Vec::new().into_iter();
    }

    /// How many are computed.
    pub(super) fn done(&self) -> usize {
        lock(&self.0).done
    }

    /// Whether so many sets of other ranks have come to the end, or will not.
    pub(super) fn have_ended(&self, sets: usize) -> bool {
        let state = lock(&self.0);
        state.ended >= sets || state.lost.is_some()
    }

    pub(super) fn lost(&self) -> Option<Error> {
        lock(&self.0).lost.clone()
    }

    /// Answers what other ranks have asked. Whether they have asked anything.
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
        while let Some((rank, note)) = ranks.poll()? {
            match DealMessage::from_note(&note, list) {
                Some(DealMessage::Idle) => {
                    let says = match self.next(rank) {
                        Some(item) => DealMessage::Take(item..item + 1),
                        None => DealMessage::End,
                    };
                    let ended = says == DealMessage::End;
                    ranks.post(rank, says.to_note(list))?;
                    lock(&self.0).ended += usize::from(ended);
                }
                Some(DealMessage::Stop) => {
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
        let Some((_, note)) = ranks.poll()? else {
            std::thread::sleep(sleep);
            sleep = (2 * sleep).min(LONGEST);
            continue;
        };
        match DealMessage::from_note(&note, list) {
            Some(DealMessage::Take(items)) => return Ok(Some(items.start)),
            Some(DealMessage::End) => return Ok(None),
            _ => {}
        }
    }
}

/// Tells the first rank that this one asks for nothing more, and has failed.
pub(super) fn stop_all(ranks: &Ranks, list: u64) {
    // Who has left is known to have.
    let _ = ranks.post(0, DealMessage::Stop.to_note(list));
}
