//! What is found in a segment.

use std::ops::Range;

use sde::key::Digest;
use sde::{Journal, Key, Mark, Record, Tags};

use crate::format::about::{About, Capacity};
use crate::format::class::Class;
use crate::format::precedence::Precedence;
use crate::read::error::Damage;
use crate::read::frame::CHECKED_WHEN_FOUND;
use crate::read::payload::Payload;

/// One thing in a segment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Item {
    /// The results of one run, or its intermediates.
    Entry(Box<Entry>),
    /// A state of a run that had not finished.
    Scratch(Scratch),
    /// That an entry must not be used, or may be used again.
    Mark {
        /// Where the frame begins.
        at: u64,
        /// What it says.
        mark: Mark,
    },
    /// Who writes the segment.
    About(About),
    /// Which entries were used since such a frame was last written.
    Uses {
        /// Where the frame begins.
        at: u64,
        /// The entries.
        uses: Vec<EntryUses>,
    },
    /// What an output file holds.
    Content(Content),
    /// What a process has done so far. Of those of one process the latest counts.
    Journal(Box<SavedJournal>),
    /// What entries have in common, or a frame of a kind that this says nothing more of.
    Other {
        /// Where the frame begins.
        at: u64,
    },
    /// Something that can't be read.
    Damage(Damage),
}

impl Item {
    /// Where it begins in its file, if that is not the file as a whole.
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

/// How an entry was used, as far as one frame tells. All frames together tell all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryUses {
    /// The first 8 bytes of its key.
    pub prefix: u64,
    /// How often it was given out, as far as this frame tells: 4,294,967,295 at most, also if it was more often.
    pub count: u64,
    /// When last, in nanoseconds since 1970.
    pub last: u64,
}

/// The frame of an entry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// Where the frame is, in bytes of the file.
    pub place: Range<u64>,
    /// Whether its values are results or intermediates.
    pub class: Class,
    /// When it was saved, in nanoseconds since 1970.
    pub saved_at: u64,
    /// How it was made.
    pub record: Record,
    /// All its results; those that were not saved here have no payload.
    pub results: Vec<Saved>,
}

impl Entry {
    /// Its precedence among the computations of its key, as far as this frame tells: the highest counts.
    #[must_use]
    pub fn precedence(&self) -> Precedence {
        let results = self.results.iter();
        let results = results.map(|one| (one.tags, one.payload.is_some()));
        let made = (self.record.run, self.record.made_at);
        Precedence::of(made, self.saved_at, results)
    }

    /// The values that give it its precedence, and were not checked with the frame: those that the engine checks when it
    /// looks for an entry.
    pub(super) fn unchecked(&self) -> Vec<Payload> {
        let archived = self.results.iter().filter(|one| one.tags.is_archived());
        let payloads = archived.filter_map(|one| one.payload.as_ref());
        let is_unchecked = |one: &&Payload| !one.is_checked() && one.length() <= CHECKED_WHEN_FOUND;
        payloads.filter(is_unchecked).cloned().collect()
    }

    /// Reads its values of up to so many bytes, and takes note of those that are damaged. Gives whether a file is not
    /// there any more: then what it held has been put elsewhere.
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

    /// Takes what this one lacks, or has damaged, from another frame of the same computation.
    pub fn fill(&mut self, other: Self) {
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
pub struct Saved {
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Tags,
    /// Where its bytes are; `None` if they are in another frame, or were not saved.
    pub payload: Option<Payload>,
    /// What is wrong with them, if they were [checked](Entry::check).
    pub damage: Option<Damage>,
    /// The digests of what its output files hold: each is a [`Content`] somewhere in the store.
    pub contents: Vec<Digest>,
}

/// The frame of a scratch state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Scratch {
    /// Where the frame is, in bytes of the file.
    pub place: Range<u64>,
    /// When it was saved, in nanoseconds since 1970.
    pub saved_at: u64,
    /// The run.
    pub key: Key,
    /// The app.
    pub app: String,
    /// Its state.
    pub payload: Payload,
}

/// What an output file holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Content {
    /// Where the frame is, in bytes of the file.
    pub place: Range<u64>,
    /// When it was saved, in nanoseconds since 1970.
    pub saved_at: u64,
    /// The plain BLAKE3 digest of the bytes.
    pub digest: Digest,
    /// The bytes, as they were in the file.
    pub payload: Payload,
}

/// What a process has done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SavedJournal {
    /// Where the frame begins.
    pub at: u64,
    /// When it was saved, in nanoseconds since 1970.
    pub saved_at: u64,
    /// Who that is.
    pub about: About,
    /// What it has done.
    pub journal: Journal,
    /// How much room it allowed the store, if it did so.
    pub capacity: Option<Capacity>,
}
