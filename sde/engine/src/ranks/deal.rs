//! Points that are dealt out as ranks become free.
//!
//! Each rank begins with a share of the list. One that has none left to begin says so to the first rank, which has the
//! rank with most left give the last half of it. So a rank that takes long for one point loses those that it has not begun;
//! where all points cost the same, little is said.
//!
//! A rank must answer while it computes. So its own thread, the only one that may talk to other ranks, computes nothing
//! meanwhile: it hands on notes, and sleeps in between. What a rank has not begun is always a range of the list, of which its
//! threads take the first and others are given the last.
//!
//! The end is when all ranks have nothing left: then the first rank says so, and no note is on its way any more.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::collective::Ranks;
use crate::error::Error;
use crate::sync::{lock, unpoisoned};

/// What ranks say to one another: the first three to the rank that deals, the others to those that compute.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Note {
    /// There is nothing left to begin.
    Idle,
    /// What was asked for: half of what there was.
    Half(Range<usize>),
    /// A point has panicked.
    Stop,
    /// Give half of what there is.
    Split,
    /// Something to begin.
    Take(Range<usize>),
    /// Nothing more is begun anywhere.
    End,
}

/// So many bits of a note are a place in the list, and so many tell one list from the next: a note that is late is of
/// another, and says nothing.
const PLACE: u32 = 28;
const LIST: u32 = 5;

/// No longer list is dealt out so.
pub(super) const MOST: usize = (1 << PLACE) - 1;

impl Note {
    fn to_bits(&self, list: u64) -> u64 {
        let (kind, range) = match self {
            Self::Idle => (0, &(0..0)),
            Self::Half(range) => (1, range),
            Self::Stop => (2, &(0..0)),
            Self::Split => (3, &(0..0)),
            Self::Take(range) => (4, range),
            Self::End => (5, &(0..0)),
        };
        let list = list & ((1 << LIST) - 1);
        let places = (range.start as u64) << PLACE | range.end as u64;
        (kind << LIST | list) << (2 * PLACE) | places
    }

    /// `None` if it is no note, or of another list.
    fn from_bits(bits: u64, list: u64) -> Option<Self> {
        let low = |bits: u64, count: u32| bits & ((1 << count) - 1);
        let range = low(bits >> PLACE, PLACE) as usize..low(bits, PLACE) as usize;
        let rest = bits >> (2 * PLACE);
        let note = match rest >> LIST {
            0 => Self::Idle,
            1 => Self::Half(range),
            2 => Self::Stop,
            3 => Self::Split,
            4 => Self::Take(range),
            5 => Self::End,
            _ => return None,
        };
        (low(rest, LIST) == low(list, LIST)).then_some(note)
    }
}

/// What the first rank knows of all.
struct Dealer {
    /// How much each has at most that it has not begun.
    left: Vec<usize>,
    /// For whom a rank was asked for half of it.
    asked: Vec<Option<usize>>,
    idle: VecDeque<usize>,
}

impl Dealer {
    fn new(shares: &[Range<usize>]) -> Self {
        Self {
            left: shares.iter().map(Range::len).collect(),
            asked: vec![None; shares.len()],
            idle: VecDeque::new(),
        }
    }

    /// What is to be said to which ranks when one has said something.
    fn hear(&mut self, rank: usize, note: Note) -> Vec<(usize, Note)> {
        let size = self.left.len();
        let mut says = Vec::new();
        match (note, self.asked[rank]) {
            (Note::Idle, _) => {
                self.left[rank] = 0;
                self.idle.push_back(rank);
            }
            (Note::Half(range), Some(taker)) => {
                self.asked[rank] = None;
                self.left[rank] = range.len();
                match range.is_empty() {
                    true => self.idle.push_front(taker),
                    false => {
                        self.left[taker] = range.len();
                        says.push((taker, Note::Take(range)));
                    }
                }
            }
            (Note::Stop, _) => return (0..size).map(|rank| (rank, Note::End)).collect(),
            _ => {}
        }
        while let Some((giver, place)) = self.giver().zip(self.taker()) {
            self.asked[giver] = self.idle.remove(place);
            says.push((giver, Note::Split));
        }
        if self.idle.len() == size {
            says.extend(self.idle.drain(..).map(|rank| (rank, Note::End)));
        }
        says
    }

    /// The rank with most left, of those that are not asked already.
    fn giver(&self) -> Option<usize> {
        let has = |rank: &usize| self.left[*rank] > 0 && self.asked[*rank].is_none();
        let ranks = (0..self.left.len()).filter(has);
        ranks.max_by_key(|rank| self.left[*rank])
    }

    /// Which of the idle ranks is to get something: none that has been asked for what it had, since its answer would be
    /// taken for that of one that has something.
    fn taker(&self) -> Option<usize> {
        self.idle
            .iter()
            .position(|rank| self.asked[*rank].is_none())
    }
}

/// What a rank has of the list.
#[derive(Default)]
pub(super) struct Share {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What is not begun.
    left: Range<usize>,
    /// How many threads wait for more.
    waiting: usize,
    /// Nothing more is begun.
    ended: bool,
    /// A point has panicked.
    stopped: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.left.is_empty() && self.waiting > 0
    }
}

impl Share {
    /// The next place of the list to begin with; waits for what others give up. `None` at the end.
    pub(super) fn next(&self) -> Option<usize> {
        let mut state = lock(&self.state);
        state.waiting += 1;
        while state.left.is_empty() && !state.ended && !state.stopped {
            self.changed.notify_all();
            state = unpoisoned(self.changed.wait(state));
        }
        state.waiting -= 1;
        match state.ended || state.stopped {
            true => None,
            false => state.left.next(),
        }
    }

    /// How much is not begun.
    pub(super) fn left(&self) -> usize {
        self.look(|state| state.left.len())
    }

    fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&lock(&self.state))
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let changed = change(&mut lock(&self.state));
        self.changed.notify_all();
        changed
    }
}

/// Has nothing more begun when a point panics.
pub(super) struct StopOnPanic<'a>(pub(super) &'a Share);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.change(|state| state.stopped = true);
        }
    }
}

/// So long a rank sleeps at most before it looks whether another has said something.
const LONGEST: Duration = Duration::from_millis(1);
const SHORTEST: Duration = Duration::from_micros(20);

/// One rank, while its threads compute.
pub(super) struct Agent<'a> {
    ranks: &'a Ranks,
    share: &'a Share,
    /// Which list it is.
    list: u64,
    /// On the first rank.
    dealer: Option<Dealer>,
    /// What that says to itself.
    own: VecDeque<Note>,
    said_idle: bool,
    said_stop: bool,
}

impl<'a> Agent<'a> {
    /// All ranks come to this with the same shares.
    pub(super) fn new(ranks: &'a Ranks, share: &'a Share, shares: &[Range<usize>]) -> Self {
        share.change(|state| state.left = shares[ranks.rank()].clone());
        Self {
            ranks,
            share,
            list: ranks.meetings(),
            dealer: (ranks.rank() == 0).then(|| Dealer::new(shares)),
            own: VecDeque::new(),
            said_idle: false,
            said_stop: false,
        }
    }

    /// Goes on until nothing more is begun on any rank.
    pub(super) fn run(&mut self) -> Result<(), Error> {
        let ended = self.attend();
        self.share.change(|state| state.ended = true);
        ended
    }

    fn attend(&mut self) -> Result<(), Error> {
        let mut sleep = SHORTEST;
        loop {
            let (is_idle, is_stopped) = self.share.look(|state| (state.is_idle(), state.stopped));
            if is_stopped && !std::mem::replace(&mut self.said_stop, true) {
                self.say(0, Note::Stop)?;
            }
            if is_idle && !std::mem::replace(&mut self.said_idle, true) {
                self.say(0, Note::Idle)?;
            }
            let Some((rank, note)) = self.hear()? else {
                self.sleep(sleep);
                sleep = (2 * sleep).min(LONGEST);
                continue;
            };
            sleep = SHORTEST;
            match note {
                Note::Idle | Note::Half(_) | Note::Stop => {
                    let says = self.dealer.as_mut().map(|dealer| dealer.hear(rank, note));
                    for (rank, note) in says.into_iter().flatten() {
                        self.say(rank, note)?;
                    }
                }
                Note::Split => {
                    let half = self.share.change(|state| {
                        let middle = state.left.start + state.left.len() / 2;
                        let half = middle..state.left.end;
                        state.left.end = middle;
                        half
                    });
                    self.say(0, Note::Half(half))?;
                }
                Note::Take(range) => {
                    self.said_idle = false;
                    self.share.change(|state| state.left = range);
                }
                Note::End => return Ok(()),
            }
        }
    }

    fn say(&mut self, rank: usize, note: Note) -> Result<(), Error> {
        match rank == self.ranks.rank() {
            true => self.own.push_back(note),
            false => self.ranks.post(rank, note.to_bits(self.list))?,
        }
        Ok(())
    }

    /// What another rank has said, or this one to itself.
    fn hear(&mut self) -> Result<Option<(usize, Note)>, Error> {
        if let Some(note) = self.own.pop_front() {
            return Ok(Some((self.ranks.rank(), note)));
        }
        while let Some((rank, bits)) = self.ranks.poll()? {
            if let Some(note) = Note::from_bits(bits, self.list) {
                return Ok(Some((rank, note)));
            }
        }
        Ok(None)
    }

    /// Until there is something to say, or for so long.
    fn sleep(&self, longest: Duration) {
        let rests = |state: &mut State| {
            let says_stop = state.stopped && !self.said_stop;
            let says_idle = state.is_idle() && !self.said_idle;
            !says_stop && !says_idle
        };
        let state = lock(&self.share.state);
        drop(self.share.changed.wait_timeout_while(state, longest, rests));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_as_it_was_said() {
        for note in [
            Note::Idle,
            Note::Half(0..MOST),
            Note::Stop,
            Note::Split,
            Note::Take(MOST - 1..MOST),
            Note::End,
        ] {
            let bits = note.to_bits(u64::MAX);
            assert_eq!(Note::from_bits(bits, u64::MAX), Some(note));
            assert_eq!(Note::from_bits(bits, u64::MAX - 1), None);
        }
        assert_eq!(Note::from_bits(u64::MAX, u64::MAX), None);
    }

    /// Three ranks, of which one has all.
    #[test]
    fn who_is_idle_gets_half_of_what_another_has_until_nobody_has_any() {
        let mut dealer = Dealer::new(&[0..4, 4..4, 4..4]);
        assert_eq!(dealer.hear(1, Note::Idle), [(0, Note::Split)]);
        assert_eq!(dealer.hear(2, Note::Idle), []);
        let said = dealer.hear(0, Note::Half(2..4));
        assert_eq!(said, [(1, Note::Take(2..4)), (1, Note::Split)]);
        // It has begun one of the two meanwhile.
        let said = dealer.hear(1, Note::Half(3..4));
        assert_eq!(said, [(2, Note::Take(3..4))]);
        // What another has at most it may have begun.
        assert_eq!(dealer.hear(2, Note::Idle), [(0, Note::Split)]);
        assert_eq!(dealer.hear(0, Note::Half(2..2)), [(1, Note::Split)]);
        assert_eq!(dealer.hear(1, Note::Half(4..4)), []);
        assert_eq!(dealer.hear(1, Note::Idle), []);
        let ends = [2, 1, 0].map(|rank| (rank, Note::End));
        assert_eq!(dealer.hear(0, Note::Idle), ends);
    }

    /// Found by a sweep on four ranks, in which one was taken for empty by what it had answered before it got something.
    #[test]
    fn who_is_asked_gets_nothing_before_it_has_answered() {
        let mut dealer = Dealer::new(&[0..8, 8..16, 16..24]);
        assert_eq!(dealer.hear(2, Note::Idle), [(1, Note::Split)]);
        assert_eq!(dealer.hear(1, Note::Idle), []);
        let said = dealer.hear(1, Note::Half(16..16));
        assert_eq!(said, [(0, Note::Split)]);
        let said = dealer.hear(0, Note::Half(4..8));
        assert_eq!(said, [(2, Note::Take(4..8)), (2, Note::Split)]);
        let said = dealer.hear(2, Note::Half(6..8));
        assert_eq!(said, [(1, Note::Take(6..8))]);
    }

    #[test]
    fn a_panic_ends_it_for_all() {
        let mut dealer = Dealer::new(&[0..4, 4..8]);
        let ends = [0, 1].map(|rank| (rank, Note::End));
        assert_eq!(dealer.hear(1, Note::Stop), ends);
    }
}
