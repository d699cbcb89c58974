//! Points that are dealt out as ranks become free.
//!
//! Each rank begins with a share of the list. A rank that has begun all of its share tells the first rank, which has
//! the rank with the largest remainder give up the last half of it. So a rank with a slow point loses points that it
//! has not begun; where all points cost the same, few messages are sent.
//!
//! A rank must answer while it computes. So its own thread, the only one that may talk to other ranks, computes nothing
//! meanwhile: it passes notes and sleeps. The points that a rank has not begun are always a range of the list: its
//! threads take from the front, other ranks from the back.
//!
//! When no rank has points left to begin, the first rank announces the end, even if points are still being computed.
//! Threads that wait for points are then free to work within these.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::collective::Ranks;
use super::group::Note;
use crate::error::Error;
use crate::sync::{lock, wait, wait_timeout};

/// Notes between ranks: the first three go to the dealing rank, the others to those that compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum DealMessage {
    /// This rank has no point left to begin.
    Idle,
    /// The range that a rank gives up, after a `Split`.
    Half(Range<usize>),
    /// A point has panicked.
    Stop,
    /// Give up half of the points that are not begun.
    Split,
    /// A range of points to compute.
    Take(Range<usize>),
    /// No rank begins another point.
    End,
}

impl DealMessage {
    /// The note names its list, since a rank may say `Idle` just after the first rank has said `End`.
    pub(super) fn to_note(&self, list: u64) -> Note {
        let mut note = Note::default();
        // The message always fits.
        let _ = postcard::to_slice(&(list as u32, self), &mut note);
        note
    }

    /// `None` if the note can't be read or is about another list.
    pub(super) fn from_note(note: &Note, list: u64) -> Option<Self> {
        let (about, says): (u32, Self) = postcard::from_bytes(note).ok()?;
        (list as u32 == about).then_some(says)
    }
}

/// The next message about a list to this rank, if one has arrived.
pub(super) fn heard(ranks: &Ranks, list: u64) -> Result<Option<(usize, DealMessage)>, Error> {
    while let Some((rank, note)) = ranks.poll()? {
        if let Some(said) = DealMessage::from_note(&note, list) {
            return Ok(Some((rank, said)));
        }
    }
    Ok(None)
}

/// Longer lists are not dealt out, since their ranges would not fit in a note.
pub(super) const MOST: usize = u32::MAX as usize;

/// The first rank's view of all ranks.
struct Dealer {
    /// For each rank, an upper bound of the points it has not begun.
    remaining: Vec<usize>,
    /// For each rank that was asked to give up half, the rank that is to get it.
    asked: Vec<Option<usize>>,
    idle: VecDeque<usize>,
}

impl Dealer {
    fn new(remaining: Vec<usize>) -> Self {
        Self {
            asked: vec![None; remaining.len()],
            remaining,
            idle: VecDeque::new(),
        }
    }

    /// Handles a message from a rank; gives the messages to send, each with its rank.
    fn hear(&mut self, rank: usize, said: DealMessage) -> Vec<(usize, DealMessage)> {
        let mut says = Vec::new();
        match (said, self.asked[rank]) {
            (DealMessage::Idle, _) => {
                self.remaining[rank] = 0;
                self.idle.push_back(rank);
            }
            (DealMessage::Half(range), Some(taker)) => {
                self.asked[rank] = None;
                self.remaining[rank] = range.len();
                match range.is_empty() {
                    true => self.idle.push_front(taker),
                    false => {
                        self.remaining[taker] = range.len();
                        says.push((taker, DealMessage::Take(range)));
                    }
                }
            }
            (DealMessage::Stop, _) => return self.end(),
            _ => {}
        }
        while let Some((giver, place)) = self.giver().zip(self.taker()) {
            self.asked[giver] = self.idle.remove(place);
            says.push((giver, DealMessage::Split));
        }
        let nothing_remains = self.remaining.iter().all(|count| *count == 0);
        if nothing_remains && self.asked.iter().all(Option::is_none) {
            self.end()
        } else {
            says
        }
    }

    fn end(&self) -> Vec<(usize, DealMessage)> {
        (0..self.remaining.len())
            .map(|rank| (rank, DealMessage::End))
            .collect()
    }

    /// Of the ranks that are not asked already, the one with most points left.
    fn giver(&self) -> Option<usize> {
        let has = |rank: &usize| self.remaining[*rank] > 0 && self.asked[*rank].is_none();
        let ranks = (0..self.remaining.len()).filter(has);
        ranks.max_by_key(|rank| self.remaining[*rank])
    }

    /// Which idle rank gets points next. A rank with a `Split` under way is skipped: its answer would be taken for that
    /// of a rank that has points.
    fn taker(&self) -> Option<usize> {
        self.idle
            .iter()
            .position(|rank| self.asked[*rank].is_none())
    }
}

/// One rank's share of the list, as its threads use it.
#[derive(Default)]
pub(super) struct Share {
    state: Mutex<ShareState>,
    changed: Condvar,
}

#[derive(Default)]
struct ShareState {
    /// The points that are not begun.
    remaining: Range<usize>,
    /// The number of threads that wait for points.
    waiting: usize,
    /// No rank begins another point.
    ended: bool,
    /// A point has panicked.
    stopped: bool,
    said_idle: bool,
    said_stop: bool,
}

impl ShareState {
    /// What the first rank is to be told, once.
    fn news(&mut self) -> Option<DealMessage> {
        let is_idle = self.remaining.is_empty() && self.waiting > 0;
        if self.stopped && !std::mem::replace(&mut self.said_stop, true) {
            Some(DealMessage::Stop)
        } else if is_idle && !std::mem::replace(&mut self.said_idle, true) {
            Some(DealMessage::Idle)
        } else {
            None
        }
    }
}

impl Share {
    /// The next point to compute; waits for points that other ranks give up. `None` at the end.
    pub(super) fn next(&self) -> Option<usize> {
        let mut state = lock(&self.state);
        state.waiting += 1;
        if state.remaining.is_empty() {
            // Notifies once, before the loop: within it two waiting threads would wake each other for ever.
            self.changed.notify_all();
        }
        while state.remaining.is_empty() && !state.ended && !state.stopped {
            state = wait(&self.changed, state);
        }
        state.waiting -= 1;
        if state.ended || state.stopped {
            None
        } else {
            state.remaining.next()
        }
    }

    /// Stops the list: a point has panicked.
    pub(super) fn stop(&self) {
        self.change(|state| state.stopped = true);
    }

    /// The number of points that are not begun.
    pub(super) fn remaining(&self) -> usize {
        lock(&self.state).remaining.len()
    }

    fn change<R>(&self, change: impl FnOnce(&mut ShareState) -> R) -> R {
        let changed = change(&mut lock(&self.state));
        self.changed.notify_all();
        changed
    }
}

/// The longest sleep of a rank between looks for notes.
pub(super) const LONGEST: Duration = Duration::from_millis(1);
pub(super) const SHORTEST: Duration = Duration::from_micros(20);

/// The thread of one rank that passes notes while the others compute.
pub(super) struct Agent<'a> {
    ranks: &'a Ranks,
    share: &'a Share,
    /// The list's number, which its notes carry.
    list: u64,
    /// Only on the first rank.
    dealer: Option<Dealer>,
}

impl<'a> Agent<'a> {
    /// All ranks call this with the same shares, which are one after the other in the list.
    pub(super) fn new(ranks: &'a Ranks, share: &'a Share, shares: &[Vec<usize>]) -> Self {
        let lengths: Vec<usize> = shares.iter().map(Vec::len).collect();
        let start = lengths[..ranks.rank()].iter().sum();
        share.change(|state| state.remaining = start..start + lengths[ranks.rank()]);
        Self {
            ranks,
            share,
            list: ranks.meetings(),
            dealer: (ranks.rank() == 0).then(|| Dealer::new(lengths)),
        }
    }

    /// Passes notes until no rank begins another point.
    pub(super) fn run(&mut self) -> Result<(), Error> {
        let ended = self.attend();
        self.share.change(|state| state.ended = true);
        ended
    }

    fn attend(&mut self) -> Result<(), Error> {
        let mut sleep = SHORTEST;
        loop {
            let Some((rank, said)) = heard(self.ranks, self.list)? else {
                let mut state = lock(&self.share.state);
                let mut news = state.news();
                if news.is_none() {
                    state = wait_timeout(&self.share.changed, state, sleep).0;
                    news = state.news();
                }
                drop(state);
                news.map_or(Ok(()), |news| self.say(0, news))?;
                sleep = (2 * sleep).min(LONGEST);
                continue;
            };
            sleep = SHORTEST;
            match said {
                DealMessage::Idle | DealMessage::Half(_) | DealMessage::Stop => {
                    let says = self.dealer.as_mut().map(|dealer| dealer.hear(rank, said));
                    for (rank, says) in says.into_iter().flatten() {
                        self.say(rank, says)?;
                    }
                }
                DealMessage::Split => {
                    let half = self.share.change(|state| {
                        let middle = state.remaining.start + state.remaining.len() / 2;
                        let half = middle..state.remaining.end;
                        state.remaining.end = middle;
                        half
                    });
                    self.say(0, DealMessage::Half(half))?;
                }
                DealMessage::Take(range) => {
                    self.share.change(|state| {
                        state.said_idle = false;
                        state.remaining = range;
                    });
                }
                DealMessage::End => return Ok(()),
            }
        }
    }

    fn say(&self, rank: usize, says: DealMessage) -> Result<(), Error> {
        self.ranks.post(rank, says.to_note(self.list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_as_it_was_said() {
        let longest = || MOST - 1..MOST;
        let list = u64::from(u32::MAX);
        for says in [
            DealMessage::Idle,
            DealMessage::Half(longest()),
            DealMessage::Take(longest()),
        ] {
            let note = says.to_note(list);
            assert_eq!(DealMessage::from_note(&note, list), Some(says));
            assert_eq!(DealMessage::from_note(&note, list - 256), None);
        }
        assert_eq!(DealMessage::from_note(&[255; 16], 255), None);
    }

    /// Found by a sweep on four ranks: a rank's old answer to `Split` made the dealer take it for empty after it had
    /// got points.
    #[test]
    fn who_is_asked_gets_nothing_before_it_has_answered() {
        let mut dealer = Dealer::new(vec![8; 3]);
        assert_eq!(dealer.hear(2, DealMessage::Idle), [(1, DealMessage::Split)]);
        assert_eq!(dealer.hear(1, DealMessage::Idle), []);
        let said = dealer.hear(1, DealMessage::Half(16..16));
        assert_eq!(said, [(0, DealMessage::Split)]);
        let said = dealer.hear(0, DealMessage::Half(4..8));
        assert_eq!(
            said,
            [(2, DealMessage::Take(4..8)), (2, DealMessage::Split)]
        );
        let said = dealer.hear(2, DealMessage::Half(6..8));
        assert_eq!(said, [(1, DealMessage::Take(6..8))]);
    }
}
