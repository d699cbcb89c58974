//! Exchanges of entries between all ranks.
//!
//! Keys go first: each rank tells which entries it offers, and their sizes, and asks the other ranks for those that it
//! lacks. Each wanted entry is sent once, by the lowest rank that has it, into memory that the receiver keeps. Only
//! non-deterministic apps give different results for one key; of those the lowest rank's result counts everywhere.

mod inbox;
mod outbox;
mod received;

use std::borrow::Cow;
use std::collections::{HashMap, hash_map};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::error::Error;
use crate::event::RunId;
use crate::key::Key;
use crate::ranks::collective::{Collective, CollectiveOp, Header, Ranks, not_sent};
use crate::result_map::Wire;

use inbox::Inbox;
pub(crate) use inbox::PackedEntry;
use outbox::Outbox;
pub(crate) use received::{Received, is_complete};

/// A map by key. Keys are digests, so their bits are spread well already.
type KeyMap<V> = HashMap<Key, V, RandomState>;

/// The offer of an entry by a rank that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) key: Key,
    pub(crate) run: RunId,
    pub(crate) nondeterministic: bool,
    sent: Sent,
    /// The number of bytes sent, besides large values.
    small: u64,
    /// The lengths of the pieces of each large value.
    large: Vec<Vec<u64>>,
}

/// The part of an entry that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Sent {
    /// Nothing: the entry stays on its rank.
    Nothing,
    /// A part: a value that runs need stays on its rank, since the transfer excludes it.
    Chosen,
    /// All values that this rank has, which are not all that a run needs.
    Part,
    /// All values that a run needs.
    Whole,
}

/// One rank's offers of one round.
#[derive(Serialize, Deserialize)]
struct Offers<'a> {
    offers: Cow<'a, [Offer]>,
    /// The length of the table in bytes.
    table: u64,
    /// Whether the rank has no more to offer.
    is_last: bool,
}

/// For each of a rank's offers 1 if it is wanted, else 0: as ranks tell one another.
type Wanted = Vec<u8>;

/// An exchange among these ranks.
pub(crate) struct Exchange<'a> {
    pub(crate) ranks: &'a Ranks,
    /// The name of the entries, for messages.
    pub(crate) what: &'a str,
    pub(crate) wire: Arc<dyn Wire>,
}

/// The outcome of an exchange on one rank.
#[derive(Default)]
pub(crate) struct Exchanged {
    pub(crate) came: Vec<PackedEntry>,
    /// Wanted offers of which no value was sent, or not all.
    pub(crate) stayed: Vec<Offer>,
}

/// The bytes that all ranks together pack in one round, and the least that one of many ranks packs.
const BATCH: usize = 8 << 20;
const LEAST: usize = 64 << 10;

impl Exchange<'_> {
    /// Offers these entries, encoded by `pack`, and gets the offers that this rank `wants`, by the rank that offers
    /// them.
    pub(crate) fn run<'e>(
        &self,
        entries: &'e [Arc<Entry>],
        mut pack: impl FnMut(&'e Entry, &mut Outbox<'e>),
        wants: impl Fn(usize, &Offer) -> bool,
    ) -> Result<Exchanged, Error> {
        let random = entries.iter().filter(|entry| entry.record.nondeterministic);
        let own = self.ranks.rank();
        let mut lowest: KeyMap<usize> = random.map(|entry| (entry.record.key, own)).collect();
        let (mut rest, mut exchanged) = (entries.iter(), Exchanged::default());
        loop {
            let packed = self.packed(&mut rest, &mut pack);
            let told = packed.as_ref().map(|packed| Offers {
                offers: Cow::Borrowed(&packed.offers),
                table: packed.table.len() as u64,
                is_last: rest.as_slice().is_empty(),
            });
            let header = Header::keyless(CollectiveOp::Exchange, self.what);
            let all = self.ranks.gather_all(header, told.map_err(Error::clone))?;
            let packed = packed.as_ref().map_err(Error::clone)?;
            let others = all.iter().enumerate().filter(|(rank, _)| *rank != own);
            lowest.reserve(others.map(|(_, told)| told.offers.len()).sum());
            let mut wanted: Vec<Wanted> = Vec::with_capacity(all.len());
            for (rank, told) in all.iter().enumerate() {
                let wants = |offer: &Offer| {
                    let counts = rank == own || counts(&mut lowest, rank, offer);
                    let wants = counts && wants(rank, offer);
                    if wants && matches!(offer.sent, Sent::Nothing | Sent::Chosen) {
                        exchanged.stayed.push(offer.clone());
                    }
                    u8::from(wants && offer.sent != Sent::Nothing)
                };
                wanted.push(told.offers.iter().map(wants).collect());
            }
            let is_last = all.iter().all(|told| told.is_last);
            if all.iter().any(|told| !told.offers.is_empty()) {
                // The offers that each rank wants of this one.
                let mut asked = vec![vec![0; wanted[own].len()]; all.len()];
                self.ranks
                    .exchange_with_all(self.what, &wanted, &mut asked)?;
                let came = self.send(packed, &asked, all, wanted)?;
                exchanged.came.extend(came);
            }
            if is_last {
                return Ok(exchanged);
            }
        }
    }

    /// Packs the entries of one round.
    fn packed<'e>(
        &self,
        entries: &mut std::slice::Iter<'e, Arc<Entry>>,
        pack: &mut impl FnMut(&'e Entry, &mut Outbox<'e>),
    ) -> Result<Outbox<'e>, Error> {
        let most = (BATCH / self.ranks.size()).max(LEAST);
        let mut outbox = Outbox::new(&self.wire);
        while outbox.len() < most
            && let Some(entry) = entries.next()
        {
            pack(entry, &mut outbox);
        }
        let packed = outbox.close();
        packed.map_err(|source| not_sent(self.what, source))
    }

    /// Sends the entries that others asked for, and receives those that this rank wants.
    fn send(
        &self,
        packed: &Outbox<'_>,
        asked: &[Wanted],
        all: Vec<Offers<'_>>,
        wanted: Vec<Wanted>,
    ) -> Result<Vec<PackedEntry>, Error> {
        let is_any = |wanted: &Wanted| wanted.contains(&1);
        let to = asked.iter().enumerate().filter(|(_, asked)| is_any(asked));
        let messages = |(rank, asked): (usize, &Wanted)| {
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
        self.ranks.exchange(self.what, &send, &mut receive)?;
        let entries = inboxes.into_iter();
        Ok(entries
            .flat_map(|(_, inbox)| inbox.entries(&self.wire))
            .collect())
    }
}

/// Whether an offer counts: the first of its key, in the order of ranks. Of a key that is not deterministic, the lowest
/// rank's offer counts, even if it comes in a later round.
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

/// The ranges of the wanted entries within a rank's small bytes; adjacent entries are one message.
fn runs(offers: &[Offer], wanted: &[u8]) -> Vec<Range<usize>> {
    let (mut runs, mut end) = (Vec::<Range<usize>>::new(), 0_usize);
    for (offer, is_wanted) in offers.iter().zip(wanted) {
        let start = end;
        end = end.saturating_add(as_usize(offer.small));
        match runs.last_mut().filter(|run| run.end == start) {
            _ if *is_wanted != 1 || start == end => {}
            Some(run) => run.end = end,
            None => runs.push(start..end),
        }
    }
    runs
}

impl Offer {
    fn bytes(&self) -> u64 {
        let large = self.large.iter().flatten();
        large.fold(self.small, |sum, piece| sum.saturating_add(*piece))
    }
}

/// Converts a length from another rank. An impossible one becomes a length that no memory can hold.
fn as_usize(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
