//! Entries as they come from other ranks.
//!
//! New memory is what an exchange of large values costs most, more than moving the bytes. So what comes is received where it
//! stays: small values side by side, as they were sent, large ones in blocks of their own. An entry is
//! read when a run asks for it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::outbox::{Head, InputValue, Provenance, ResultKind, ValuePlace};
use super::received::ReceivedValue;
use super::{Exchange, Offer, Told, as_usize, runs};
use crate::cache::Record;
use crate::checkpoint::{StoredEntry, StoredResult};
use crate::error::{ArchiveError, Error, ErrorKind};
use crate::inputs::ValueSummary;
use crate::result_map::{Codec, Value, Wire};

/// Memory for what one rank sends.
pub(super) struct Inbox {
    table: Vec<u8>,
    small: Block,
    large: Vec<Block>,
    /// The entries, each with the blocks in which its large values lie, and where there.
    entries: Vec<(Offer, Vec<(usize, Range<usize>)>)>,
}

/// Memory for several messages.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    messages: Vec<usize>,
    /// How many bytes all have.
    length: usize,
}

/// Large values share memory of this size, if they are not larger: some large pages.
const BLOCK: usize = 8 << 20;

impl Inbox {
    /// For those of the entries that are wanted.
    pub(super) fn new(of: &Exchange<'_>, told: Told, wanted: &[bool]) -> Result<Self, Error> {
        let mut inbox = Self {
            table: of.ranks.zeroed(of.what, as_usize(told.table))?,
            small: Block::default(),
            large: Vec::new(),
            entries: Vec::new(),
        };
        let small = runs(&told.offers, wanted).into_iter();
        inbox.small.add(small.map(|run| run.len()));
        let offers = told.offers.into_iter().zip(wanted);
        for (offer, _) in offers.filter(|(_, is_wanted)| **is_wanted) {
            let values = offer.sizes.iter().flat_map(|sizes| &sizes.large);
            let places = values.map(|pieces| inbox.add_large(pieces)).collect();
            inbox.entries.push((offer, places));
        }
        for block in inbox.large.iter_mut().chain([&mut inbox.small]) {
            block.bytes = of.ranks.zeroed(of.what, block.length)?;
        }
        Ok(inbox)
    }

    fn add_large(&mut self, pieces: &[u64]) -> (usize, Range<usize>) {
        let pieces = pieces.iter().map(|piece| as_usize(*piece));
        let length = pieces.clone().fold(0, usize::saturating_add);
        let fits = |block: &Block| block.length.saturating_add(length) <= BLOCK;
        if !self.large.last().is_some_and(fits) {
            self.large.push(Block::default());
        }
        let number = self.large.len() - 1;
        (number, self.large[number].add(pieces))
    }

    /// Where the messages are received.
    pub(super) fn places(&mut self) -> Vec<&mut [u8]> {
        let mut places = vec![&mut self.table[..]];
        for block in [&mut self.small].into_iter().chain(&mut self.large) {
            let mut rest = &mut block.bytes[..];
            for message in &block.messages {
                let (place, others) = rest.split_at_mut(*message);
                places.push(place);
                rest = others;
            }
        }
        places
    }

    /// What has come.
    pub(super) fn entries(self, wire: &Arc<dyn Wire>) -> impl Iterator<Item = PackedEntry> {
        let common = Arc::new(Common {
            table: self.table,
            provenances: OnceLock::new(),
            small: Arc::new(self.small.bytes),
            wire: Arc::clone(wire),
        });
        let large = self.large.into_iter().map(|block| Arc::new(block.bytes));
        let large: Vec<_> = large.collect();
        let mut end = 0;
        self.entries.into_iter().map(move |(offer, places)| {
            let start = end;
            end += offer.small();
            let place = |(block, range): (usize, Range<usize>)| (Arc::clone(&large[block]), range);
            PackedEntry {
                offer,
                common: Arc::clone(&common),
                small: start..end,
                large: places.into_iter().map(place).collect(),
            }
        })
    }
}

impl Block {
    /// Makes room for messages; says where.
    fn add(&mut self, messages: impl Iterator<Item = usize>) -> Range<usize> {
        let start = self.length;
        for message in messages {
            self.length = self.length.saturating_add(message);
            self.messages.push(message);
        }
        start..self.length
    }
}

/// An entry as it came.
#[derive(Clone)]
pub(crate) struct PackedEntry {
    offer: Offer,
    common: Arc<Common>,
    small: Range<usize>,
    large: Vec<(Arc<Vec<u8>>, Range<usize>)>,
}

/// What came with an entry.
struct Common {
    table: Vec<u8>,
    provenances: OnceLock<Result<Value<Vec<Provenance>>, ArchiveError>>,
    small: Arc<Vec<u8>>,
    wire: Arc<dyn Wire>,
}

impl PackedEntry {
    pub(crate) fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Whether it has all that a run needs.
    pub(super) fn is_whole(&self) -> bool {
        self.offer
            .sizes
            .as_ref()
            .is_some_and(|sizes| sizes.is_whole)
    }

    pub(super) fn is_of(&self, app: &str) -> bool {
        let provenance = self.provenance();
        provenance.is_ok_and(|provenance| *provenance.record.app == *app)
    }

    fn provenance(&self) -> Result<&Provenance, ArchiveError> {
        let all = self
            .common
            .provenances
            .get_or_init(|| self.common.read_table());
        let place = self
            .offer
            .sizes
            .as_ref()
            .map(|sizes| as_usize(sizes.provenance));
        let all = all.as_ref().map_err(Clone::clone)?;
        place.and_then(|place| all.get(place)).ok_or_else(cut)
    }

    /// Reads it; its values stay bytes.
    ///
    /// # Errors
    /// If it is no entry.
    pub(crate) fn unpack(&self) -> Result<StoredEntry, Error> {
        self.read().map_err(|source| {
            let doing = "reading what another rank sent".to_owned();
            ErrorKind::Archive { doing, source }.into()
        })
    }

    fn read(&self) -> Result<StoredEntry, ArchiveError> {
        let provenance = self.provenance()?;
        let bytes = self.common.small.get(self.small.clone()).ok_or_else(cut)?;
        let head = self
            .offer
            .sizes
            .as_ref()
            .map_or(0, |sizes| as_usize(sizes.head));
        let values = bytes.len().checked_sub(head).ok_or_else(cut)?;
        let head: Head<'_> = postcard::from_bytes(&bytes[values..]).map_err(|_| cut())?;
        let (mut next, mut large) = (self.small.start, self.large.iter());
        let mut results = Vec::with_capacity(provenance.results.len());
        for (kind, place) in provenance.results.iter().zip(&head.values) {
            let place = match place {
                ValuePlace::None => None,
                ValuePlace::Here(length) => {
                    let end = next.checked_add(as_usize(*length));
                    let end = end.filter(|end| *end <= self.small.start + values);
                    let range = next..end.ok_or_else(cut)?;
                    next = range.end;
                    Some((Arc::clone(&self.common.small), range))
                }
                ValuePlace::Large => Some(large.next().cloned().ok_or_else(cut)?),
            };
            results.push(self.result(kind, place));
        }
        Ok(StoredEntry {
            record: Arc::new(self.record(&provenance.record, head)),
            results,
            // The rank that computed it archives it.
            archived: true,
        })
    }

    fn result(
        &self,
        kind: &ResultKind,
        place: Option<(Arc<Vec<u8>>, Range<usize>)>,
    ) -> StoredResult {
        let payload = place.map(|(bytes, range)| {
            Arc::new(ReceivedValue {
                bytes,
                range,
                type_name: kind.type_name.clone(),
                has_files: kind.has_files,
                wire: Arc::clone(&self.common.wire),
            }) as _
        });
        StoredResult {
            name: kind.name.clone(),
            tags: kind.tags,
            payload,
        }
    }

    fn record(&self, common: &Record, head: Head<'_>) -> Record {
        let names = common.inputs.iter().map(|input| input.name.clone());
        let input = |(name, value): (String, InputValue<'_>)| match value {
            InputValue::Scalar(scalar) => scalar.summary(&name),
            InputValue::Summary(short, digest) => ValueSummary {
                name,
                short: short.into_owned(),
                digest,
                scalar: None,
            },
        };
        Record {
            key: self.offer.key,
            run: self.offer.run,
            inputs: names.zip(head.inputs).map(input).collect(),
            calls: head.calls.into_owned(),
            made_at: head.made_at,
            took: head.took,
            thread: head.thread,
            ..common.clone()
        }
    }
}

impl Common {
    fn read_table(&self) -> Result<Value<Vec<Provenance>>, ArchiveError> {
        let table = self.wire.decode(&self.table, &Codec::of::<Vec<Provenance>>())?;
        table.downcast().ok_or_else(cut)
    }
}

fn cut() -> ArchiveError {
    ArchiveError::Damaged {
        why: "what another rank sent makes no sense; do all ranks run one program?".to_owned(),
    }
}
