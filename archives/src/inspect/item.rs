//! What is found in a segment.

use std::ops::Range;

use sde::key::Digest;
use sde::{Journal, Key, Mark, Record, Tags};

use super::payload::Payload;
use crate::format::class::Class;
use crate::format::precedence::Precedence;

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
    About(AboutWriter),
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
    Journal {
        /// When it was saved, in nanoseconds since 1970.
        saved_at: u64,
        /// Who that is.
        about: AboutWriter,
        /// What it has done.
        journal: Journal,
    },
    /// What entries have in common, or a frame of a kind that this says nothing more of.
    Other {
        /// Where the frame begins.
        at: u64,
    },
    /// Something that can't be read.
    Damage(Damage),
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
        Precedence::new(&self.record, self.saved_at, results)
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

/// What a segment says of its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AboutWriter {
    /// The machine.
    pub host: String,
    /// The number of the process.
    pub process: u32,
    /// The name of the program.
    pub program: String,
    /// Processor architecture and operating system.
    pub target: String,
    /// The release of SDE.
    pub sde: String,
}

/// Something that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file, within the store.
    pub path: String,
    /// Its bytes.
    pub place: Range<u64>,
    /// What is wrong with them.
    pub why: String,
    /// The run they are of, if that is known.
    pub key: Option<Key>,
}

impl Damage {
    /// Damage of a part of a file.
    #[must_use]
    pub fn new(path: impl Into<String>, place: Range<u64>, why: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            place,
            why: why.into(),
            key: None,
        }
    }
}
