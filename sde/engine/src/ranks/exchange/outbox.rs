//! Encodes entries for other ranks.
//!
//! The data that thousands of entries share is sent once, in a table: the app, its code and settings, the machine, the
//! names of inputs and results. An entry is its values one after another, followed by its own part of the record. Large
//! values are separate messages, sent without a copy.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{Offer, Sent, runs};
use crate::entry::{Entry, Provenance};
use crate::error::ArchiveError;
use crate::inputs::ValueSummary;
use crate::key::{Digest, Key, Scalar};
use crate::result_map::{Codec, Content, ErasedValue, Named, Tags, Wire, WireBuffer};

/// The data that several entries share.
#[derive(Serialize, Deserialize)]
pub(super) struct EntryKind {
    pub(super) provenance: Arc<Provenance>,
    /// The names of the inputs.
    pub(super) inputs: Vec<Cow<'static, str>>,
    pub(super) results: Vec<ResultKind>,
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct ResultKind {
    pub(super) name: Cow<'static, str>,
    pub(super) tags: Tags,
    pub(super) type_name: Cow<'static, str>,
    pub(super) has_files: bool,
}

/// The data of one entry that neither its kind nor its [`Offer`] has.
#[derive(Serialize, Deserialize)]
pub(super) struct OwnPart<'a> {
    /// The index of its kind in the table.
    pub(super) kind: usize,
    pub(super) anew: bool,
    pub(super) made_at: SystemTime,
    pub(super) took: Duration,
    pub(super) thread: u32,
    pub(super) inputs: Vec<InputValue<'a>>,
    pub(super) calls: Cow<'a, [(Arc<str>, Key)]>,
    pub(super) values: Cow<'a, [ValuePlace]>,
}

/// An input without its name.
#[derive(Serialize, Deserialize)]
pub(super) enum InputValue<'a> {
    Scalar(Cow<'a, Scalar>),
    /// With its fields, if it is a structure, each with its name.
    Summary(Cow<'a, str>, Digest, Vec<(Cow<'a, str>, Self)>),
}

impl<'a> InputValue<'a> {
    fn of(input: &'a ValueSummary) -> Self {
        match &input.scalar {
            Some(scalar) => Self::Scalar(Cow::Borrowed(scalar)),
            None => {
                let fields = input.fields.iter();
                let fields = fields.map(|field| (Cow::Borrowed(&*field.name), Self::of(field)));
                let short = Cow::Borrowed(&*input.short);
                Self::Summary(short, input.digest, fields.collect())
            }
        }
    }

    pub(super) fn summary(self, name: Cow<'static, str>) -> ValueSummary {
        match self {
            Self::Scalar(scalar) => scalar.summary(name),
            Self::Summary(short, digest, fields) => {
                let mut summary = ValueSummary::new(name, short, digest);
                let fields = fields.into_iter();
                let fields = fields.map(|(name, field)| field.summary(name.into_owned().into()));
                summary.fields = fields.collect();
                summary
            }
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum ValuePlace {
    /// The value is not sent.
    None,
    /// The length of the value, which follows those before it.
    Here(u64),
    /// The value is the next of the large ones.
    Large,
}

/// The entries of one rank, encoded for the others.
pub(crate) struct Outbox<'e> {
    wire: Arc<dyn Wire>,
    pub(super) offers: Vec<Offer>,
    to: WireBuffer<'e>,
    /// The pieces of each large value.
    large: Vec<Vec<Cow<'e, [u8]>>>,
    kinds: Vec<EntryKind>,
    /// The kinds, encoded at the end.
    pub(super) table: Vec<u8>,
}

impl<'e> Outbox<'e> {
    pub(super) fn new(wire: &Arc<dyn Wire>) -> Self {
        Self {
            wire: Arc::clone(wire),
            offers: Vec::new(),
            to: WireBuffer::default(),
            large: Vec::new(),
            kinds: Vec::new(),
            table: Vec::new(),
        }
    }

    /// The number of bytes besides large values.
    pub(super) fn len(&mut self) -> usize {
        self.to.bytes().len()
    }

    /// Adds an entry. Values that can't be sent (tagged `no_cache`, without a codec, or excluded by `stays`) are only
    /// named. An entry that is too large, or has a value that can't be encoded, is offered without any value.
    pub(crate) fn add(
        &mut self,
        entry: &'e Entry,
        stays: impl Fn(&Named) -> bool,
        is_too_large: impl Fn(u64) -> bool,
    ) -> Result<(), ArchiveError> {
        let before = (self.len(), self.large.len());
        let values = self.values(entry, &stays);
        let written = values.and_then(|values| self.head(entry, &values).map(|()| values));
        let lengths =
            |pieces: &Vec<Cow<'_, [u8]>>| pieces.iter().map(|piece| piece.len() as u64).collect();
        let mut offer = Offer {
            key: entry.record.key,
            run: entry.record.run,
            nondeterministic: entry.record.nondeterministic,
            sent: written
                .as_ref()
                .map_or(Sent::Nothing, |values| sent(entry, values, &stays)),
            small: (self.len() - before.0) as u64,
            large: self.large[before.1..].iter().map(lengths).collect(),
        };
        if written.is_err() || is_too_large(offer.bytes()) {
            self.to.take_pieces(before.0);
            self.large.truncate(before.1);
            (offer.sent, offer.small, offer.large) = (Sent::Nothing, 0, Vec::new());
        }
        self.offers.push(offer);
        written.map(drop)
    }

    fn values(
        &mut self,
        entry: &'e Entry,
        stays: &impl Fn(&Named) -> bool,
    ) -> Result<Vec<ValuePlace>, ArchiveError> {
        let mut places = Vec::with_capacity(entry.results.len());
        for named in entry.results.iter() {
            let value = match &named.content {
                Content::Held(value) => Some(value),
                Content::Stored(stored) => stored.get().ok(),
                Content::Weak(_) | Content::Gone(_) => None,
            };
            let is_sent = named.tags.is_cached() && !stays(named);
            let codec = named.codec.filter(|_| is_sent);
            let Some((value, codec)) = value.zip(codec) else {
                places.push(ValuePlace::None);
                continue;
            };
            let start = self.len();
            self.wire.encode(value, &codec, &mut self.to)?;
            places.push(match self.to.has_lent() {
                true => {
                    self.large.push(self.to.take_pieces(start));
                    ValuePlace::Large
                }
                false => ValuePlace::Here((self.len() - start) as u64),
            });
        }
        Ok(places)
    }

    /// Appends the entry's own part of the record, and its length.
    fn head(&mut self, entry: &Entry, values: &[ValuePlace]) -> Result<(), ArchiveError> {
        let start = self.len();
        let inputs = entry.full_record().inputs;
        let record = &entry.record;
        let head = OwnPart {
            kind: self.kind(entry, &inputs),
            anew: record.anew,
            made_at: record.made_at,
            took: record.took,
            thread: record.thread,
            inputs: inputs.iter().map(InputValue::of).collect(),
            calls: Cow::Borrowed(&record.calls),
            values: Cow::Borrowed(values),
        };
        let written = postcard::to_extend(&head, std::mem::take(self.to.bytes()));
        *self.to.bytes() = written.map_err(|error| ArchiveError::Other(error.to_string()))?;
        let length = (self.len() - start) as u32;
        self.to.append(&length.to_le_bytes());
        Ok(())
    }

    /// The index of the entry's kind in the table.
    fn kind(&mut self, entry: &Entry, inputs: &[ValueSummary]) -> usize {
        /// The number of kinds to compare with: apps whose runs call one another take turns.
        const LATEST: usize = 8;
        let (kind, count) = (EntryKind::of(entry, inputs), self.kinds.len());
        let mut latest = self.kinds.iter().enumerate().rev().take(LATEST);
        let found = latest.find(|(_, known)| {
            let is_one = Arc::ptr_eq(&known.provenance, &kind.provenance);
            (is_one || known.provenance == kind.provenance)
                && (&known.inputs, &known.results) == (&kind.inputs, &kind.results)
        });
        found.map(|(place, _)| place).unwrap_or_else(|| {
            self.kinds.push(kind);
            count
        })
    }

    /// Ends the encoding.
    pub(super) fn close(mut self) -> Result<Self, ArchiveError> {
        let mut table = WireBuffer::default();
        let kinds = ErasedValue::new(std::mem::take(&mut self.kinds));
        if !self.offers.is_empty() {
            self.wire
                .encode(&kinds, &Codec::of::<Vec<EntryKind>>(), &mut table)?;
        }
        self.table = table.into_bytes();
        Ok(self)
    }

    /// The messages to a rank that wants these of the entries.
    pub(super) fn messages(&self, wanted: &[u8]) -> Vec<&[u8]> {
        let small = runs(&self.offers, wanted).into_iter();
        let mut messages = vec![&self.table[..]];
        messages.extend(small.map(|run| &self.to.as_bytes()[run]));
        let mut rest = &self.large[..];
        for (offer, is_wanted) in self.offers.iter().zip(wanted) {
            let (own, others) = rest.split_at(offer.large.len());
            let own = own.iter().filter(|_| *is_wanted == 1).flatten();
            messages.extend(own.map(|piece| &**piece));
            rest = others;
        }
        messages
    }
}

impl EntryKind {
    fn of(entry: &Entry, inputs: &[ValueSummary]) -> Self {
        let result = |named: &Named| ResultKind {
            name: named.name.clone(),
            tags: named.tags,
            type_name: named.codec.map_or("", |codec| codec.type_name()).into(),
            has_files: named.has_files(),
        };
        Self {
            provenance: Arc::clone(&entry.record.provenance),
            inputs: inputs.iter().map(|input| input.name.clone()).collect(),
            results: entry.results.iter().map(result).collect(),
        }
    }
}

/// Which part of an entry with these values is sent.
fn sent(entry: &Entry, values: &[ValuePlace], stays: impl Fn(&Named) -> bool) -> Sent {
    let is_sent = |place: &ValuePlace| !matches!(place, ValuePlace::None);
    let results = entry.results.iter().zip(values);
    let lacking = results.filter(|(named, place)| !is_sent(place) && named.tags.is_needed());
    let mut is_whole = values.iter().any(is_sent);
    for (named, _) in lacking {
        if stays(named) {
            return Sent::Chosen;
        }
        is_whole = false;
    }
    if is_whole { Sent::Whole } else { Sent::Part }
}
