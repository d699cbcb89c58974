//! Giving every rank what one of them has.
//!
//! Keys first: each rank tells which entries it has to offer, and all tell which of them they
//! lack. Then the lowest rank that has an entry which somebody lacks sends it, once. Where ranks
//! have different results for one key, which only non-deterministic apps give, that of
//! the lowest rank is the one that counts, everywhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::Entry;
use crate::error::{Error, ErrorKind};
use crate::event::RunId;
use crate::key::Key;
use crate::process_group::{Act, Notice, Ranks};

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
    /// What all ranks sent, one entry after another.
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Where the entries begin that this rank lacked.
    pub(crate) lacked: Vec<(Key, usize)>,
    /// What stayed where it is although somebody lacks it, since it is too large or can't be
    /// turned into bytes.
    pub(crate) left: Vec<Left>,
}

/// An entry that was not sent.
pub(crate) struct Left {
    pub(crate) key: Key,
    pub(crate) run: RunId,
}

const OFFER: usize = 32 + 16 + 1;

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
        mut pack: impl FnMut(&Key, &mut Vec<u8>) -> bool,
    ) -> Result<Sent, Error> {
        let ranks = self.ranks;
        let known = self.keys(offers)?;
        let wanted = self.wanted(&known, offers, lacks)?;
        let mut mine = Vec::new();
        for (at, known) in known.iter().enumerate() {
            if known.owner != ranks.rank() || !wanted.by_any(at) {
                continue;
            }
            let before = mine.len();
            mine.extend((at as u64).to_le_bytes());
            if !pack(&known.offer.key, &mut mine) {
                mine.truncate(before);
            }
        }
        let met = self.meet(mine.len())?;
        let counts: Vec<_> = met.iter().map(|notice| notice.length as usize).collect();
        let bytes = Arc::new(ranks.gather_bytes(self.what, &mine, &counts)?);
        drop(mine);
        let lacked = entries(&bytes)
            .map(|(at, place)| match known.get(at) {
                Some(known) => Ok((at, known.offer.key, place)),
                None => Err(self.garbled()),
            })
            .collect::<Result<Vec<_>, _>>();
        // A length that leads astray ends the iteration early; all ranks see the same bytes.
        let sent = lacked?;
        let is_left = |at: usize| wanted.by_any(at) && !sent.iter().any(|(sent, ..)| *sent == at);
        let left = known.iter().enumerate().filter(|(at, _)| is_left(*at));
        let left = left.map(|(_, known)| Left {
            key: known.offer.key,
            run: known.offer.run,
        });
        let left = left.collect();
        let lacked = sent.into_iter().filter(|(at, ..)| wanted.by_me(*at));
        Ok(Sent {
            lacked: lacked.map(|(_, key, place)| (key, place)).collect(),
            bytes,
            left,
        })
    }

    fn meet(&self, length: usize) -> Result<Vec<Notice>, Error> {
        let mut notice = Notice::new(Act::Exchange, Key::from_bytes([0; 32]), self.what);
        notice.length = length as u64;
        self.ranks.meet(&notice)
    }

    fn garbled(&self) -> Error {
        let message = format!(
            "{} arrived garbled; do all ranks run one program?",
            self.what
        );
        let rank = self.ranks.rank();
        ErrorKind::OnRank { rank, message }.into()
    }

    /// All keys that anybody offers, in order, and whose they are.
    fn keys(&self, offers: &[Offer]) -> Result<Vec<Known>, Error> {
        let mine: Vec<u8> = offers.iter().flat_map(Offer::to_bytes).collect();
        let met = self.meet(mine.len())?;
        let counts: Vec<_> = met.iter().map(|notice| notice.length as usize).collect();
        let all = self.ranks.gather_bytes(self.what, &mine, &counts)?;
        let mut known: BTreeMap<Key, Known> = BTreeMap::new();
        let mut rest = &all[..];
        for (rank, count) in counts.iter().enumerate() {
            let (of_rank, others) = rest.split_at(*count);
            rest = others;
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

/// The entries in what was sent: which key, and where its bytes begin.
fn entries(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let number = |at: usize| {
            let bytes = bytes.get(at..at.checked_add(8)?)?;
            usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
        };
        let (key, length) = (number(at)?, number(at + 8)?);
        let place = at + 8;
        // The length, that of the head, and what they count.
        at = place.checked_add(16)?.checked_add(length)?;
        Some((key, place))
    })
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
