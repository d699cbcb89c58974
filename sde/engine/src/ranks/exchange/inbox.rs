//! Entries received from other ranks.
//!
//! Allocating memory costs more than moving the bytes of large values. So values are received where they stay: small
//! ones side by side, as they were sent, large ones in blocks of their own. An entry is decoded when a run asks for it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::outbox::{EntryKind, InputValue, OwnPart, ResultKind, ValuePlace};
use super::{Exchange, Offer, Offers, as_usize, runs};
use crate::bulk::{room_for_start, start_of_large};
use crate::checkpoint::{StoredEntry, StoredResult};
use crate::entry::{Record, RecordHead};
use crate::error::{ArchiveError, Error, ErrorKind};
use crate::result_map::{Codec, ErasedValue, Payload, Value, Wire};

/// Memory for the messages of one rank.
pub(super) struct Inbox {
    table: Vec<u8>,
    small: Block,
    large: Vec<Block>,
    entries: Vec<(Offer, Vec<Place>)>,
}

/// The place of a large value: its block, and its range there.
type Place = (usize, Range<usize>);

/// Memory for several messages.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    messages: Vec<usize>,
    /// The length of all messages together.
    length: usize,
    /// The offset of the first message.
    start: usize,
}

/// The size of a block that several large values share; a larger value has a block of its own.
const BLOCK: usize = 8 << 20;

impl Inbox {
    /// Room for the wanted entries of an offer.
    pub(super) fn new(of: &Exchange<'_>, told: Offers<'_>, wanted: &[u8]) -> Result<Self, Error> {
        let mut inbox = Self {
            table: of.ranks.zeroed(of.what, as_usize(told.table))?,
            small: Block::default(),
            large: Vec::new(),
            entries: Vec::new(),
        };
        let small = runs(&told.offers, wanted).into_iter();
        inbox.small.add(small.map(|run| run.len()));
        let offers = told.offers.into_owned().into_iter().zip(wanted);
        for (offer, _) in offers.filter(|(_, is_wanted)| **is_wanted == 1) {
            let values = offer.large.iter();
            let places = values.map(|pieces| inbox.add_large(pieces)).collect();
            inbox.entries.push((offer, places));
        }
        for block in inbox.large.iter_mut().chain([&mut inbox.small]) {
            let length = block.length.saturating_add(room_for_start(block.length));
            block.bytes = of.ranks.zeroed(of.what, length)?;
            block.start = start_of_large(&block.bytes);
        }
        Ok(inbox)
    }

    fn add_large(&mut self, pieces: &[u64]) -> Place {
        let pieces = pieces.iter().map(|piece| as_usize(*piece));
        let length = pieces.clone().fold(0, usize::saturating_add);
        let fits = |block: &Block| block.length.saturating_add(length) <= BLOCK;
        if !self.large.last().is_some_and(fits) {
            self.large.push(Block::default());
        }
        let number = self.large.len() - 1;
        (number, self.large[number].add(pieces))
    }

    /// The buffers that the messages are received into.
    pub(super) fn places(&mut self) -> Vec<&mut [u8]> {
        let mut places = vec![&mut self.table[..]];
        for block in [&mut self.small].into_iter().chain(&mut self.large) {
            let mut rest = &mut block.bytes[block.start..];
            for message in &block.messages {
                let (place, others) = rest.split_at_mut(*message);
                places.push(place);
                rest = others;
            }
        }
        places
    }

    /// The received entries.
    pub(super) fn entries(self, wire: &Arc<dyn Wire>) -> impl Iterator<Item = PackedEntry> {
        let mut end = self.small.start;
        let common = Arc::new(Common {
            table: self.table,
            kinds: OnceLock::new(),
            small: Arc::new(self.small.bytes),
            wire: Arc::clone(wire),
        });
        let large = self.large.into_iter();
        let large: Vec<_> = large
            .map(|block| (Arc::new(block.bytes), block.start))
            .collect();
        self.entries.into_iter().map(move |(offer, places)| {
            let start = end;
            end += as_usize(offer.small);
            let place = |(block, range): Place| {
                let (bytes, start) = &large[block];
                (Arc::clone(bytes), start + range.start..start + range.end)
            };
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
    /// Makes room for messages; gives their range.
    fn add(&mut self, messages: impl Iterator<Item = usize>) -> Range<usize> {
        let start = self.length;
        for message in messages {
            self.length = self.length.saturating_add(message);
            self.messages.push(message);
        }
        start..self.length
    }
}

/// An entry as received.
#[derive(Clone)]
pub(crate) struct PackedEntry {
    offer: Offer,
    common: Arc<Common>,
    small: Range<usize>,
    large: Vec<(Arc<Vec<u8>>, Range<usize>)>,
}

/// The data that all entries of one exchange share.
struct Common {
    table: Vec<u8>,
    kinds: OnceLock<Result<Value<Vec<EntryKind>>, ArchiveError>>,
    small: Arc<Vec<u8>>,
    wire: Arc<dyn Wire>,
}

impl PackedEntry {
    pub(crate) fn offer(&self) -> &Offer {
        &self.offer
    }

    pub(super) fn is_of(&self, app: &str) -> bool {
        self.head()
            .is_ok_and(|(_, kind, _)| *kind.provenance.app == *app)
    }

    /// The entry's small values, its kind, and its own part of the record.
    fn head(&self) -> Result<(&[u8], &EntryKind, OwnPart<'_>), ArchiveError> {
        let bytes = self.common.small.get(self.small.clone()).ok_or_else(cut)?;
        let (rest, length) = bytes.split_last_chunk().ok_or_else(cut)?;
        let values = rest
            .len()
            .checked_sub(as_usize(u32::from_le_bytes(*length).into()));
        let (values, head) = rest.split_at(values.ok_or_else(cut)?);
        let head: OwnPart<'_> = postcard::from_bytes(head).map_err(|_| cut())?;
        let (codec, common) = (Codec::of::<Vec<EntryKind>>(), &self.common);
        let all = common.kinds.get_or_init(|| {
            let table = common.wire.decode(&common.table, &codec)?;
            table.downcast().ok_or_else(cut)
        });
        let all = all.as_ref().map_err(Clone::clone)?;
        Ok((values, all.get(head.kind).ok_or_else(cut)?, head))
    }

    /// Decodes the entry's record; its values stay bytes.
    ///
    /// # Errors
    /// If the bytes are no entry.
    pub(crate) fn unpack(&self) -> Result<StoredEntry, Error> {
        self.read().map_err(|source| {
            let doing = "reading what another rank sent".to_owned();
            ErrorKind::Archive { doing, source }.into()
        })
    }

    fn read(&self) -> Result<StoredEntry, ArchiveError> {
        let (values, entry_kind, head) = self.head()?;
        let (mut next, mut large) = (self.small.start, self.large.iter());
        let mut results = Vec::with_capacity(entry_kind.results.len());
        for (kind, place) in entry_kind.results.iter().zip(head.values.iter()) {
            let place = match place {
                ValuePlace::None => None,
                ValuePlace::Here(length) => {
                    let end = next.checked_add(as_usize(*length));
                    let end = end.filter(|end| *end <= self.small.start + values.len());
                    let range = next..end.ok_or_else(cut)?;
                    next = range.end;
                    Some((Arc::clone(&self.common.small), range))
                }
                ValuePlace::Large => Some(large.next().cloned().ok_or_else(cut)?),
            };
            results.push(self.result(kind, place));
        }
        Ok(StoredEntry {
            record: self.record(entry_kind, head),
            results,
            others: Vec::new(),
            is_of_others: false,
            // The rank that computed the entry archives it.
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
            name: kind.name.to_string(),
            tags: kind.tags,
            payload,
        }
    }

    fn record(&self, kind: &EntryKind, own: OwnPart<'_>) -> Record {
        let input =
            |(name, value): (&Cow<'static, str>, InputValue<'_>)| value.summary(name.clone());
        let head = RecordHead {
            provenance: Arc::clone(&kind.provenance),
            key: self.offer.key,
            run: self.offer.run,
            calls: own.calls.into(),
            nondeterministic: self.offer.nondeterministic,
            anew: own.anew,
            made_at: own.made_at,
            took: own.took,
            thread: own.thread,
        };
        let inputs = kind.inputs.iter().zip(own.inputs).map(input);
        Record::new(head, inputs.collect::<Arc<_>>())
    }
}

fn cut() -> ArchiveError {
    ArchiveError::Damaged {
        why: "what another rank sent makes no sense; do all ranks run one program?".to_owned(),
    }
}

/// The bytes of a value, within a buffer that other values share.
struct ReceivedValue {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
    type_name: Cow<'static, str>,
    has_files: bool,
    wire: Arc<dyn Wire>,
}

impl Payload for ReceivedValue {
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        let bytes = self.bytes.get(self.range.clone()).ok_or_else(cut)?;
        self.wire.decode(bytes, codec)
    }

    fn may_be(&self, codec: &Codec) -> bool {
        self.type_name == codec.type_name()
    }

    fn stored_bytes(&self) -> u64 {
        self.range.len() as u64
    }

    fn has_files(&self) -> bool {
        self.has_files
    }
}

#[cfg(test)]
mod tests {
    use super::super::outbox::Outbox;
    use super::*;
    use crate::cache::tests::entry;
    use crate::ranks::collective::Ranks;
    use crate::ranks::group::OneProcess;
    use crate::result_map::Json;

    fn sent() -> PackedEntry {
        let (entry, wire): (_, Arc<dyn Wire>) = (entry(600), Arc::new(Json));
        let mut outbox = Outbox::new(&wire);
        outbox.add(&entry, |_| false, |_| false).unwrap();
        let packed = outbox.close().unwrap();
        let small = packed.messages(&[1])[1].to_vec();
        PackedEntry {
            offer: packed.offers[0].clone(),
            small: 0..small.len(),
            large: Vec::new(),
            common: Arc::new(Common {
                table: packed.table,
                kinds: OnceLock::new(),
                small: Arc::new(small),
                wire,
            }),
        }
    }

    fn with(change: impl FnOnce(&mut PackedEntry, &mut Vec<u8>, &mut Vec<u8>)) -> PackedEntry {
        let mut entry = sent();
        let (mut small, mut table) = (entry.common.small.to_vec(), entry.common.table.clone());
        change(&mut entry, &mut small, &mut table);
        entry.common = Arc::new(Common {
            table,
            kinds: OnceLock::new(),
            small: Arc::new(small),
            wire: Arc::clone(&entry.common.wire),
        });
        entry
    }

    /// Bytes from a peer are untrusted.
    #[test]
    fn what_is_no_entry_is_an_error() {
        let length = sent().common.small.len();
        assert!(sent().unpack().is_ok());
        for cut in 0..length {
            let bad = [
                with(|_, small, _| small.truncate(cut)),
                with(|entry, _, _| entry.small = cut..length - 5),
                with(|entry, _, _| entry.small = 0..cut),
            ];
            assert!(bad.iter().all(|bad| bad.unpack().is_err()), "{cut}");
            // No byte causes a panic.
            for byte in [0, 1, 0x7f, 0xff] {
                let _ = with(|_, small, _| small[cut] = byte).unpack();
            }
        }
        assert!(with(|_, _, table| table.clear()).unpack().is_err());
        assert!(
            with(|_, _, table| *table = b"[]".to_vec())
                .unpack()
                .is_err()
        );
    }

    /// No memory is allocated for impossible lengths.
    #[test]
    fn lengths_that_can_not_be_are_errors() {
        let ranks = Ranks::of_test(OneProcess);
        let exchange = Exchange {
            ranks: &ranks,
            what: "results",
            wire: Arc::new(Json),
        };
        let told = |table: u64, small: u64, large: &[u64]| {
            let offer = Offer {
                small,
                large: vec![large.to_vec()],
                ..sent().offer
            };
            Offers {
                offers: vec![offer.clone(), offer].into(),
                table,
                is_last: true,
            }
        };
        let inbox = |told| Inbox::new(&exchange, told, &[1, 1]);
        assert_eq!(inbox(told(1, 2, &[3, 4])).unwrap().places().len(), 6);
        for told in [
            told(u64::MAX, 1, &[1]),
            told(1, u64::MAX, &[1]),
            told(1, 1, &[u64::MAX, 1]),
        ] {
            assert!(inbox(told).is_err());
        }
    }
}
