//! The items in a segment.

use std::ops::Range;

use sde::archiver::{Journal, Mark};
use sde::key::Digest;
use sde::record::Record;
use sde::{Key, Tags};

use crate::format::about::{About, Capacity};
use crate::format::class::Class;
use crate::format::precedence::Precedence;
use crate::read::error::{Damage, ReadError};
use crate::read::frame::{CHECKED_WHEN_FOUND, EntryFrame};
use crate::read::payload::StoredValue;

/// An item in a segment: a frame, or damage.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Item {
    /// The results of one run, or its intermediates.
    Entry(Box<Entry>),
    /// A state of a run that had not finished.
    Scratch(SavedState),
    /// An entry was invalidated, or that was revoked.
    #[non_exhaustive]
    Mark {
        /// Where the frame begins.
        at: u64,
        /// The mark.
        mark: Mark,
    },
    /// The segment's writer.
    About(About),
    /// The entries used since such a frame was last written.
    #[non_exhaustive]
    Uses {
        /// Where the frame begins.
        at: u64,
        /// The entries.
        uses: Vec<EntryUses>,
    },
    /// The content of an output file.
    Content(Content),
    /// A process's journal, of which the latest counts.
    Journal(Box<SavedJournal>),
    /// A provenance, or a frame of an unknown kind.
    #[non_exhaustive]
    Other {
        /// Where the frame begins.
        at: u64,
    },
    /// Bytes that can't be read.
    Damage(Damage),
}

impl Item {
    /// The offset of the item in its file; `None` if it concerns the whole file.
    #[must_use]
    pub fn at(&self) -> Option<u64> {
        match self {
            Self::Entry(entry) => Some(entry.place.start),
            Self::Scratch(scratch) => Some(scratch.place.start),
            Self::Content(content) => Some(content.place.start),
            Self::Damage(damage) => Some(damage.place.start),
            Self::Journal(saved) => Some(saved.at),
            Self::Mark { at, .. } | Self::Uses { at, .. } | Self::Other { at } => Some(*at),
            Self::About(_) => None,
        }
    }
}

/// The uses of an entry that one frame records; those of all frames add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryUses {
    /// The first 8 bytes of its key.
    pub prefix: u64,
    /// The number of times that the entry was given out: at most 4,294,967,295 in one frame.
    pub count: u64,
    /// The last use, in nanoseconds since 1970.
    pub last: u64,
}

/// The frame of an entry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The bytes of the frame in its file.
    pub place: Range<u64>,
    /// Whether its values are results or intermediates.
    pub class: Class,
    /// When it was saved, in nanoseconds since 1970.
    pub saved_at: u64,
    /// The record of how the entry was made.
    pub record: Record,
    /// All its results; those that were not saved here have no payload.
    pub results: Vec<NamedValue>,
}

impl Entry {
    pub(crate) fn of(entry: &EntryFrame<'_>) -> Result<Self, ReadError> {
        let values = entry.values()?;
        let results = entry.provenance.results.iter().zip(values).enumerate();
        let results = results.map(|(number, (kind, payload))| NamedValue {
            contents: entry.body.contents_of(number).to_vec(),
            payload,
            damage: None,
            name: kind.name.to_string(),
            tags: kind.tags,
        });
        Ok(Self {
            results: results.collect(),
            place: entry.frame.at..entry.frame.payload().end,
            class: entry.frame.header.class(),
            saved_at: entry.frame.header.saved_at,
            record: entry.record(),
        })
    }

    /// The entry's precedence among the computations of its key, by this frame alone: the highest counts.
    #[must_use]
    pub fn precedence(&self) -> Precedence {
        let results = self.results.iter();
        let results = results.map(|one| (one.tags, one.payload.is_some()));
        let made = (self.record.run, self.record.made_at);
        Precedence::of(made, self.saved_at, results)
    }

    /// The values that decide its precedence and were not checked with the frame: those that the engine checks on a
    /// look-up.
    pub(super) fn unchecked(&self) -> Vec<StoredValue> {
        let archived = self.results.iter().filter(|one| one.tags.is_archived());
        let payloads = archived.filter_map(|one| one.payload.as_ref());
        let is_unchecked =
            |one: &&StoredValue| !one.is_checked() && one.length() <= CHECKED_WHEN_FOUND;
        payloads.filter(is_unchecked).cloned().collect()
    }

    /// Reads its values of up to `limit` bytes, and notes damage. Gives whether a file was gone: then its frames
    /// have been moved.
    pub fn check(&mut self, limit: u64) -> bool {
        let mut is_gone = false;
        for saved in &mut self.results {
            let Some(payload) = saved.payload.as_ref().filter(|one| one.length() <= limit) else {
                continue;
            };
            saved.damage = payload.check(|_| ()).unwrap_or_else(|error| {
                is_gone |= error.is_not_found();
                let why = error.to_string();
                Some(Damage::new(payload.path(), payload.place(), why))
            });
        }
        is_gone
    }

    /// Takes values that are missing or damaged here, and inputs that are missing, from another frame of the computation.
    pub fn fill(&mut self, other: Self) {
        if self.record.inputs.is_empty() {
            self.record.inputs = other.record.inputs;
        }
        for theirs in other.results {
            let own = self.results.iter_mut().find(|own| own.name == theirs.name);
            if let Some(own) = own
                && (own.payload.is_none() || own.damage.is_some())
                && (theirs.payload.is_some() && theirs.damage.is_none())
            {
                *own = theirs;
            }
        }
    }
}

/// One result of an entry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NamedValue {
    /// The result's name.
    pub name: String,
    /// The result's tags.
    pub tags: Tags,
    /// The value; `None` if it is in another frame, or was not saved.
    pub payload: Option<StoredValue>,
    /// The value's damage, found by [`check`](Entry::check).
    pub damage: Option<Damage>,
    /// The digests of its output files: each is a [`Content`] somewhere in the store.
    pub contents: Vec<Digest>,
}

/// The frame of a scratch state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SavedState {
    /// The bytes of the frame in its file.
    pub place: Range<u64>,
    /// When it was saved, in nanoseconds since 1970.
    pub saved_at: u64,
    /// The run's key.
    pub key: Key,
    /// The app's name.
    pub app: String,
    /// The state.
    pub payload: StoredValue,
}

/// The content of an output file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Content {
    /// The bytes of the frame in its file.
    pub place: Range<u64>,
    /// When it was saved, in nanoseconds since 1970.
    pub saved_at: u64,
    /// The plain BLAKE3 digest of the bytes.
    pub digest: Digest,
    /// The bytes of the output file.
    pub payload: StoredValue,
}

/// A process's journal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SavedJournal {
    /// Where the frame begins.
    pub at: u64,
    /// When it was saved, in nanoseconds since 1970.
    pub saved_at: u64,
    /// The process, its program and machine.
    pub about: About,
    /// What the process has done.
    pub journal: Journal,
    /// The limit that it set for the store, if any.
    pub capacity: Option<Capacity>,
}
