//! Giving every rank what one of them has.
//!
//! Keys first: each rank tells which entries it has to offer, and all tell which of them they
//! lack. Then the lowest rank that has an entry which another lacks sends it, once. Where ranks
//! have different results for one key, which only non-deterministic apps give, that of
//! the lowest rank is the one that counts, everywhere.

mod packed;
mod received;
mod stream;

use std::collections::{BTreeMap, HashSet};

use crate::cache::Record;
use crate::error::Error;
use crate::event::RunId;
use crate::key::Key;
use crate::ranks::collective::{Body, CollectiveOp, Header, Ranks, parts};

pub(crate) use packed::{PackedEntry, pack, unpack};
pub(crate) use received::{Received, is_complete};
use stream::Stream;

/// An entry that a rank has.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

/// What came of an exchange: the entries that this rank lacked, each as it was packed, and those which it lacks and
/// nobody sent, since they are too large or can't be turned into bytes.
pub(crate) type Sent = (Vec<(Key, PackedEntry)>, Vec<Offer>);

/// An entry that may be sent. All ranks have them in the same order.
pub(crate) struct ToSend {
    pub(crate) key: Key,
    /// The rank that has it to send.
    pub(crate) owner: usize,
    /// Whether some rank lacks it.
    pub(crate) is_sent: bool,
    /// Whether this one does.
    pub(crate) is_wanted: bool,
}

/// What all ranks together send in a turn, in bytes, and what each of many sends at least.
const TURN: usize = 8 << 20;
const PART: usize = 64 << 10;

impl Exchange<'_> {
    /// Offers what this rank has, and gets what it lacks.
    ///
    /// `lacks` says whether this rank lacks an entry; `pack` appends one, with its number, to what is sent,
    /// and says whether it did.
    pub(crate) fn run(
        &self,
        offers: Vec<Offer>,
        lacks: impl Fn(&Offer) -> bool,
        pack: impl FnMut(usize, &Key, &mut Vec<u8>) -> bool,
    ) -> Result<Sent, Error> {
        let offered = self.offered(&offers)?;
        if offered.is_empty() {
            return Ok(Sent::default());
        }
        let list = self.to_send(&offered, &offers, lacks)?;
        let (mut came, mut lacked) = (HashSet::new(), Vec::new());
        self.send(&list, pack, |at, entry| {
            came.insert(at);
            lacked.extend(entry.map(|entry| (list[at].key, entry)));
        })?;
        let offers = offered.into_iter().map(|(_, offer)| offer).enumerate();
        let left = offers.filter(|(at, _)| list[*at].is_wanted && !came.contains(at));
        Ok((lacked, left.map(|(_, offer)| offer).collect()))
    }

    /// Sends, in turns, what this rank has that another lacks. `done` is given the place of each entry that any
    /// rank has sent, with the entry if this rank lacks it.
    pub(crate) fn send(
        &self,
        list: &[ToSend],
        mut pack: impl FnMut(usize, &Key, &mut Vec<u8>) -> bool,
        mut done: impl FnMut(usize, Option<PackedEntry>),
    ) -> Result<(), Error> {
        let (ranks, own, size) = (self.ranks, self.ranks.rank(), self.ranks.size());
        let is_mine = |at: &usize| list[*at].owner == own && list[*at].is_sent;
        let mut rest = (0..list.len()).filter(is_mine).peekable();
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
                if !pack(at, &list[at].key, &mut mine) {
                    mine.truncate(before);
                }
            }
            let turn = sent..mine.len().min(sent + part);
            sent = turn.end;
            let body = Body::Bytes {
                length: turn.len(),
                are_last: sent == mine.len() && rest.peek().is_none(),
            };
            let header = Header::keyless(CollectiveOp::Exchange, self.what);
            let met = ranks.meet(header.with_body(body))?;
            let counts: Vec<_> = met.iter().map(Header::bytes).collect();
            ranks.reserve(self.what, &mut all, &counts)?;
            ranks.gather_into(self.what, &mine[turn], &counts, &mut all)?;
            let mut of_ranks = streams.iter_mut().zip(parts(&all, &counts));
            let bad = of_ranks.position(|(stream, of_rank)| {
                let wants = |at: usize| list.get(at).is_some_and(|entry| entry.is_wanted);
                !stream.take(of_rank, wants, &mut done)
            });
            if let Some(rank) = bad {
                return Err(ranks.garbled(rank, self.what));
            }
            let sends_no_more =
                |header: &Header| matches!(header.body, Body::Bytes { are_last: true, .. });
            if met.iter().all(sends_no_more) {
                break;
            }
        }
        match streams.iter().position(|stream| !stream.is_whole()) {
            None => Ok(()),
            Some(rank) => Err(ranks.garbled(rank, self.what)),
        }
    }

    /// What anybody offers, in the order of keys, with the lowest rank that does.
    fn offered(&self, offers: &Vec<Offer>) -> Result<Vec<(usize, Offer)>, Error> {
        let header = Header::keyless(CollectiveOp::Exchange, self.what);
        let all = self.ranks.gather_all(header, offers)?;
        let mut first: BTreeMap<Key, (usize, Offer)> = BTreeMap::new();
        for (rank, of_rank) in all.into_iter().enumerate() {
            for offer in of_rank {
                first.entry(offer.key).or_insert((rank, offer));
            }
        }
        Ok(first.into_values().collect())
    }

    /// Which of them any rank lacks: each rank tells it by a bit for each.
    fn to_send(
        &self,
        offered: &[(usize, Offer)],
        offers: &[Offer],
        lacks: impl Fn(&Offer) -> bool,
    ) -> Result<Vec<ToSend>, Error> {
        let own = self.ranks.rank();
        let mine: BTreeMap<_, _> = offers.iter().map(|offer| (offer.key, offer)).collect();
        let wants = |(owner, offer): &(usize, Offer)| match mine.get(&offer.key) {
            _ if *owner == own => false,
            // The lowest rank's counts.
            Some(mine) => offer.nondeterministic && mine.run != offer.run,
            None => lacks(offer),
        };
        let wanted: Vec<bool> = offered.iter().map(wants).collect();
        let bits = wanted.chunks(8).map(|eight| {
            let bits = eight.iter().enumerate();
            bits.fold(0, |byte, (bit, wants)| byte | u8::from(*wants) << bit)
        });
        let bits: Vec<u8> = bits.collect();
        let counts = vec![bits.len(); self.ranks.size()];
        let all = self.ranks.gather_bytes(self.what, &bits, &counts)?;
        let mut any = vec![0_u8; bits.len()];
        for of_rank in all.chunks_exact(bits.len()) {
            let both = any.iter_mut().zip(of_rank);
            both.for_each(|(any, one)| *any |= one);
        }
        let offered = offered.iter().zip(wanted).enumerate();
        let list = offered.map(|(at, ((owner, offer), is_wanted))| ToSend {
            key: offer.key,
            owner: *owner,
            is_sent: any[at / 8] >> (at % 8) & 1 == 1,
            is_wanted,
        });
        Ok(list.collect())
    }
}

impl Offer {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            key: record.key,
            run: record.run,
            nondeterministic: record.nondeterministic,
        }
    }
}
