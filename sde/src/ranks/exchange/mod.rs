//! Giving every rank what one of them has.
//!
//! Keys first: each rank tells which entries it has to offer, and all tell which of them they
//! lack. Then the lowest rank that has an entry which somebody lacks sends it, once. Where ranks
//! have different results for one key, which only non-deterministic apps give, that of
//! the lowest rank is the one that counts, everywhere.

mod packed;
mod received;
mod stream;

pub(crate) use packed::{pack, unpack};
pub(crate) use received::{Received, ReceivedEntry, ReceivedResult};

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::cache::Entry;
use crate::error::{Error, ErrorKind};
use crate::event::RunId;
use crate::key::Key;
use crate::ranks::collective::{Body, CollectiveOp, Header, Ranks, parts};

use stream::Stream;

/// An entry that a rank has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) key: Key,
    pub(crate) run: RunId,
    pub(crate) nondeterministic: bool,
}

/// An exchange among these ranks.
pub(crate) struct Exchange<'a> {
    pub(crate) ranks: &'a Ranks,
    /// What is exchanged, for messages.
    pub(crate) what: &'a str,
}

/// What came of an exchange.
pub(crate) struct Sent {
    /// The entries that this rank lacked, each as it was packed.
    pub(crate) lacked: Vec<Arc<Vec<u8>>>,
    /// What this rank lacks and nobody sent, since it is too large or can't be turned into
    /// bytes.
    pub(crate) left: Vec<Left>,
}

/// An entry that was not sent.
pub(crate) struct Left {
    pub(crate) key: Key,
    pub(crate) run: RunId,
}

const OFFER: usize = 32 + 16 + 1;

/// What all ranks together send in a turn, in bytes, and what each of many sends at least.
const TURN: usize = 8 << 20;
const PART: usize = 64 << 10;

/// One key, as all ranks know it after the keys were exchanged.
struct Known {
    owner: usize,
    offer: Offer,
}

impl Exchange<'_> {
    /// Offers what this rank has, and gets what it lacks.
    ///
    /// `lacks` says whether this rank lacks an entry; `pack` appends one to what is sent, and says
    /// whether it did.
    pub(crate) fn run(
        &self,
        offers: &[Offer],
        lacks: impl Fn(&Offer) -> bool,
        pack: impl FnMut(&Key, &mut Vec<u8>) -> bool,
    ) -> Result<Sent, Error> {
        let known = self.keys(offers)?;
        let mut sent = Sent {
            lacked: Vec::new(),
            left: Vec::new(),
        };
        if known.is_empty() {
            return Ok(sent);
        }
        let wanted = self.wanted(&known, offers, lacks)?;
        let mut came = HashSet::new();
        self.send(&known, &wanted, pack, |at, kept| {
            came.insert(at);
            sent.lacked.extend(kept.map(Arc::new));
        })?;
        let is_left = |at: &usize| wanted.by_me(*at) && !came.contains(at);
        let left = (0..known.len()).filter(is_left).map(|at| Left {
            key: known[at].offer.key,
            run: known[at].offer.run,
        });
        sent.left.extend(left);
        Ok(sent)
    }

    /// Sends, in turns, what this rank has that somebody lacks. `done` is given the place of each entry that any
    /// rank has sent, with the entry if this rank lacks it.
    fn send(
        &self,
        known: &[Known],
        wanted: &Wanted,
        mut pack: impl FnMut(&Key, &mut Vec<u8>) -> bool,
        mut done: impl FnMut(usize, Option<Vec<u8>>),
    ) -> Result<(), Error> {
        let (own, size) = (self.ranks.rank(), self.ranks.size());
        let is_mine = |at: &usize| known[*at].owner == own && wanted.by_any(*at);
        let mut rest = (0..known.len()).filter(is_mine).peekable();
        let part = (TURN / size).max(PART);
        let (mut mine, mut sent) = (Vec::new(), 0);
        let mut all = Vec::new();
        let mut streams: Vec<Stream> = (0..size).map(|_| Stream::default()).collect();
        loop {
            while mine.len() - sent < part
                && let Some(at) = rest.next()
            {
                mine.drain(..sent);
                sent = 0;
                let before = mine.len();
                Stream::begin(at, &mut mine);
                if !pack(&known[at].offer.key, &mut mine) {
                    mine.truncate(before);
                }
            }
            let turn = sent..mine.len().min(sent + part);
            sent = turn.end;
            let is_last = sent == mine.len() && rest.peek().is_none();
            let met = self.meet(turn.len(), is_last)?;
            let counts: Vec<_> = met.iter().map(Header::bytes).collect();
            let ranks = self.ranks;
            ranks.make_room(self.what, &mut all, &counts)?;
            ranks.gather_into(self.what, &mine[turn], &counts, &mut all)?;
            for (stream, of_rank) in streams.iter_mut().zip(parts(&all, &counts)) {
                let wants = |at| at < known.len() && wanted.by_me(at);
                if !stream.take(of_rank, wants, &mut done) {
                    return Err(self.garbled());
                }
            }
            let sends_no_more =
                |header: &Header| matches!(header.body, Body::Bytes { are_last: true, .. });
            if met.iter().all(sends_no_more) {
                break;
            }
        }
        match streams.iter().all(Stream::is_whole) {
            true => Ok(()),
            false => Err(self.garbled()),
        }
    }

    /// What each rank is about to send, and whether that is all.
    fn meet(&self, length: usize, are_last: bool) -> Result<Vec<Header>, Error> {
        let length = length as u64;
        let header = Header::keyless(CollectiveOp::Exchange, self.what);
        self.ranks
            .meet(&header.with_body(Body::Bytes { length, are_last }))
    }

    fn garbled(&self) -> Error {
        let message = format!(
            "{} arrived garbled; do all ranks run one program?",
            self.what
        );
        let rank = self.ranks.in_program(self.ranks.rank());
        ErrorKind::OnRank { rank, message }.into()
    }

    /// All keys that anybody offers, in order, and whose they are.
    fn keys(&self, offers: &[Offer]) -> Result<Vec<Known>, Error> {
        let mine: Vec<u8> = offers.iter().flat_map(Offer::to_bytes).collect();
        let header = Header::keyless(CollectiveOp::Exchange, self.what);
        let all = self.ranks.gather(header, Ok(mine))?;
        let mut known: BTreeMap<Key, Known> = BTreeMap::new();
        for (rank, of_rank) in all.by_rank().enumerate() {
            for offer in of_rank.chunks(OFFER) {
                let offer = Offer::from_bytes(offer).ok_or_else(|| self.garbled())?;
                let first = Known { owner: rank, offer };
                known.entry(first.offer.key).or_insert(first);
            }
        }
        Ok(known.into_values().collect())
    }

    /// Which of the keys somebody lacks.
    fn wanted(
        &self,
        known: &[Known],
        offers: &[Offer],
        lacks: impl Fn(&Offer) -> bool,
    ) -> Result<Wanted, Error> {
        let own = self.ranks.rank();
        let offered: BTreeMap<_, _> = offers.iter().map(|offer| (offer.key, offer)).collect();
        let mut mine = vec![0_u8; known.len().div_ceil(8)];
        for (at, known) in known.iter().enumerate() {
            let wants = match offered.get(&known.offer.key) {
                _ if known.owner == own => false,
                // The lowest rank's counts.
                Some(offer) => known.offer.nondeterministic && offer.run != known.offer.run,
                None => lacks(&known.offer),
            };
            mine[at / 8] |= u8::from(wants) << (at % 8);
        }
        let counts = vec![mine.len(); self.ranks.size()];
        let all = self.ranks.gather_bytes(self.what, &mine, &counts)?;
        let mut any = vec![0_u8; mine.len()];
        for of_rank in all.chunks(mine.len().max(1)) {
            any.iter_mut()
                .zip(of_rank)
                .for_each(|(any, one)| *any |= one);
        }
        Ok(Wanted { any, mine })
    }
}

/// For each key a bit.
struct Wanted {
    any: Vec<u8>,
    mine: Vec<u8>,
}

impl Wanted {
    fn by_any(&self, at: usize) -> bool {
        self.any[at / 8] >> (at % 8) & 1 == 1
    }

    fn by_me(&self, at: usize) -> bool {
        self.mine[at / 8] >> (at % 8) & 1 == 1
    }
}

impl Offer {
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            key: entry.record.key,
            run: entry.record.run,
            nondeterministic: entry.record.nondeterministic,
        }
    }

    fn to_bytes(&self) -> [u8; OFFER] {
        let mut bytes = [0; OFFER];
        bytes[..32].copy_from_slice(self.key.as_bytes());
        bytes[32..40].copy_from_slice(&self.run.process.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.run.number.to_le_bytes());
        bytes[48] = u8::from(self.nondeterministic);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; OFFER] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..].first_chunk().copied().map(u64::from_le_bytes);
        Some(Self {
            key: Key::from_bytes(*bytes.first_chunk()?),
            run: RunId {
                process: number(32)?,
                number: number(40)?,
            },
            nondeterministic: bytes[48] == 1,
        })
    }
}
