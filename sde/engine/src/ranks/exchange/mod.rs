//! Giving every rank what one of them has.
//!
//! Keys first: each rank tells which entries it has to offer, and how large they are, and asks the others for those that it
//! lacks. Then it gets these, each once, from the lowest rank that has it, in memory that it keeps. Where ranks
//! have different results for one key, which only non-deterministic apps give, that of
//! the lowest rank is the one that counts, everywhere.

mod inbox;
mod outbox;
mod received;

use std::collections::{HashMap, hash_map};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

use crate::cache::Entry;
use crate::error::{Error, ErrorKind};
use crate::event::RunId;
use crate::key::Key;
use crate::ranks::collective::{CollectiveOp, Header, Ranks};
use crate::result_map::Wire;

use inbox::Inbox;
pub(crate) use inbox::PackedEntry;
pub(crate) use outbox::Outbox;
use outbox::Packed;
pub(crate) use received::{Received, is_complete};

/// What is known of keys that come from other ranks: they are digests, and spread well.
type KeyMap<V> = HashMap<Key, V, RandomState>;

/// An entry that a rank has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) key: Key,
    pub(crate) run: RunId,
    pub(crate) nondeterministic: bool,
    /// `None` if it stays where it is.
    sizes: Option<Sizes>,
}

/// What an entry has to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sizes {
    /// How many bytes, besides large values.
    small: u64,
    /// How many of these, the last ones, are what is its own of the record.
    head: u64,
    /// Where in the table is what it has in common with others.
    provenance: u64,
    /// Whether it has all that a run needs.
    is_whole: bool,
    /// Whether a value that a run needs stays where it is, since nobody is to get it.
    is_left: bool,
    /// The pieces of each large value.
    large: Vec<Vec<u64>>,
}

/// What a rank tells of what it offers in one go.
#[derive(Serialize, Deserialize)]
struct Told {
    offers: Vec<Offer>,
    /// How many bytes the table has.
    table: u64,
    /// Whether it has no more to offer.
    is_last: bool,
}

/// An exchange among these ranks.
pub(crate) struct Exchange<'a> {
    pub(crate) ranks: &'a Ranks,
    /// What is exchanged, for messages.
    pub(crate) what: &'a str,
    pub(crate) wire: Arc<dyn Wire>,
}

/// What came of an exchange.
#[derive(Default)]
pub(crate) struct Exchanged {
    pub(crate) came: Vec<PackedEntry>,
    /// What this rank lacks and nobody sent, or not all of it.
    pub(crate) left: Vec<Offer>,
}

/// What all ranks together pack in one go, in bytes, and what each of many packs at least.
const BATCH: usize = 8 << 20;
const PART: usize = 64 << 10;

impl Exchange<'_> {
    /// Offers entries, which `pack` adds to what is sent, and gets those that this rank `wants` of what is offered, by the
    /// rank that offers it.
    pub(crate) fn run<'e>(
        &self,
        entries: &'e [Arc<Entry>],
        mut pack: impl FnMut(&'e Entry, &mut Outbox<'e>),
        wants: impl Fn(usize, &Offer) -> bool,
    ) -> Result<Exchanged, Error> {
        let own = self.ranks.rank();
        let part = (BATCH / self.ranks.size()).max(PART);
        let random = entries.iter().filter(|entry| entry.record.nondeterministic);
        let mut lowest: KeyMap<usize> = random.map(|entry| (entry.record.key, own)).collect();
        let (mut rest, mut exchanged) = (entries.iter(), Exchanged::default());
        loop {
            let mut outbox = Outbox::new(&self.wire);
            while outbox.len() < part
                && let Some(entry) = rest.next()
            {
                pack(entry, &mut outbox);
            }
            let packed = outbox.close().map_err(|source| {
                let doing = format!("sending {} to other ranks", self.what);
                Error::from(ErrorKind::Archive { doing, source })
            });
            let told = packed.as_ref().map(|packed| Told {
                offers: packed.offers.clone(),
                table: packed.table.len() as u64,
                is_last: rest.as_slice().is_empty(),
            });
            let header = Header::keyless(CollectiveOp::Exchange, self.what);
            let all = self
                .ranks
                .gather_all_or(header, told.as_ref().map_err(|error| Error::clone(error)))?;
            let is_last = all.iter().all(|told| told.is_last);
            let mut wanted = Vec::with_capacity(all.len());
            for (rank, told) in all.iter().enumerate() {
                let offers = told.offers.iter();
                let wants = |offer: &Offer| counts(&mut lowest, rank, offer) && wants(rank, offer);
                let mut of_rank: Vec<bool> = offers.map(wants).collect();
                for (offer, is_wanted) in told.offers.iter().zip(&mut of_rank) {
                    let sizes = offer.sizes.as_ref();
                    if *is_wanted && sizes.is_none_or(|sizes| sizes.is_left) {
                        exchanged.left.push(offer.clone());
                    }
                    *is_wanted &= sizes.is_some();
                }
                wanted.push(of_rank);
            }
            if all.iter().any(|told| !told.offers.is_empty()) {
                let asked = self.ask(&wanted)?;
                exchanged
                    .came
                    .extend(self.send(&packed?, &asked, all, wanted)?);
            }
            if is_last {
                return Ok(exchanged);
            }
        }
    }

    /// Asks each rank for what this one wants of it; gives what each wants of this one.
    fn ask(&self, wanted: &[Vec<bool>]) -> Result<Vec<Vec<bool>>, Error> {
        let own = self.ranks.rank();
        let bits: Vec<Vec<u8>> = wanted.iter().map(|wanted| to_bits(wanted)).collect();
        let others = |rank: &usize| *rank != own;
        let send = (0..bits.len()).filter(|rank| !bits[*rank].is_empty() && others(rank));
        let send: Vec<_> = send.map(|rank| (rank, &bits[rank][..])).collect();
        let mut asked = vec![vec![0; bits[own].len()]; bits.len()];
        asked[own].clone_from(&bits[own]);
        let places = asked.iter_mut().map(|bits| &mut bits[..]).enumerate();
        let receive = places.filter(|(rank, place)| !place.is_empty() && others(rank));
        self.ranks
            .exchange_bytes(self.what, &send, &mut receive.collect::<Vec<_>>())?;
        let of_rank = |bits: &Vec<u8>| from_bits(bits, wanted[own].len());
        Ok(asked.iter().map(of_rank).collect())
    }

    /// Sends what others have asked for, and receives what this rank wants.
    fn send(
        &self,
        packed: &Packed<'_>,
        asked: &[Vec<bool>],
        all: Vec<Told>,
        wanted: Vec<Vec<bool>>,
    ) -> Result<Vec<PackedEntry>, Error> {
        let is_any = |wanted: &[bool]| wanted.contains(&true);
        let to = asked.iter().enumerate().filter(|(_, asked)| is_any(asked));
        let messages = |(rank, asked): (usize, &Vec<bool>)| {
            let messages = packed.messages(asked).into_iter();
            messages.map(move |message| (rank, message))
        };
        let send: Vec<_> = to.flat_map(messages).collect();
        let of_ranks = all.into_iter().zip(wanted).enumerate();
        let mut inboxes = Vec::new();
        for (rank, (told, wanted)) in of_ranks.filter(|(_, (_, wanted))| is_any(wanted)) {
            inboxes.push((rank, Inbox::new(self, told, &wanted)?));
        }
        let places = inboxes.iter_mut().flat_map(|(rank, inbox)| {
            let places = inbox.places().into_iter();
            places.map(|place| (*rank, place))
        });
        let mut receive: Vec<_> = places.collect();
        self.ranks.exchange_bytes(self.what, &send, &mut receive)?;
        let entries = inboxes.into_iter();
        Ok(entries
            .flat_map(|(_, inbox)| inbox.entries(&self.wire))
            .collect())
    }
}

/// Whether an offer counts: the first of its key, as ranks come in their order; of one that is not deterministic that of
/// the lowest rank, whenever it comes.
fn counts(lowest: &mut KeyMap<usize>, rank: usize, offer: &Offer) -> bool {
    match lowest.entry(offer.key) {
        hash_map::Entry::Vacant(place) => drop(place.insert(rank)),
        hash_map::Entry::Occupied(mut known) => {
            if !offer.nondeterministic || *known.get() < rank {
                return false;
            }
            known.insert(rank);
        }
    }
    true
}

/// Where the small bytes lie of those entries that are wanted, among all of a rank: what lies side by side is one message.
fn runs(offers: &[Offer], wanted: &[bool]) -> Vec<Range<usize>> {
    let (mut runs, mut end) = (Vec::<Range<usize>>::new(), 0_usize);
    for (offer, is_wanted) in offers.iter().zip(wanted) {
        let start = end;
        end = end.saturating_add(offer.small());
        match runs.last_mut().filter(|run| run.end == start) {
            _ if !*is_wanted || start == end => {}
            Some(run) => run.end = end,
            None => runs.push(start..end),
        }
    }
    runs
}

impl Offer {
    fn small(&self) -> usize {
        self.sizes.as_ref().map_or(0, |sizes| as_usize(sizes.small))
    }
}

impl Sizes {
    /// How much is sent.
    fn bytes(&self) -> u64 {
        let large = self.large.iter().flatten();
        large.fold(self.small, |sum, piece| sum.saturating_add(*piece))
    }
}

/// A length that another rank has told. One that can't be is no memory that can be had.
fn as_usize(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

fn to_bits(wanted: &[bool]) -> Vec<u8> {
    let byte = |eight: &[bool]| {
        let bits = eight.iter().enumerate();
        bits.fold(0, |byte, (bit, wants)| byte | u8::from(*wants) << bit)
    };
    wanted.chunks(8).map(byte).collect()
}

fn from_bits(bits: &[u8], count: usize) -> Vec<bool> {
    (0..count)
        .map(|at| bits[at / 8] >> (at % 8) & 1 == 1)
        .collect()
}
