//! What is saved in one go: entries with their results, states of runs in progress, and marks.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::entry::{Entry, Record};
use crate::error::ArchiveError;
use crate::event::RunId;
use crate::key::Key;
use crate::result_map::{Codec, Content, ErasedValue, NOT_KEPT, Named, ResultSpec, Tags};

/// Selects the results of remembered entries that are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Selection {
    /// Results, intermediates and scratch.
    Checkpoint,
    /// Results only.
    Archive,
}

impl Selection {
    pub(crate) const BOTH: [Self; 2] = [Self::Checkpoint, Self::Archive];

    /// The selection's name in messages and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Archive => "archive",
        }
    }

    /// Whether a result with these tags is in it.
    #[must_use]
    pub const fn takes(self, tags: Tags) -> bool {
        match self {
            Self::Checkpoint => tags.is_checkpointed(),
            Self::Archive => tags.is_archived(),
        }
    }
}

/// The entries, scratch states and marks that are saved in one go.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The selection that the batch was collected for.
    pub selection: Selection,
    /// The entries that are new since the last batch of this selection.
    pub entries: Vec<SavedEntry>,
    /// The latest scratch states of runs in progress.
    pub scratch: Vec<SavedScratch>,
    /// Invalidations that are new.
    pub marks: Vec<Mark>,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new(selection: Selection) -> Self {
        Self {
            selection,
            entries: Vec::new(),
            scratch: Vec::new(),
            marks: Vec::new(),
        }
    }

    pub(crate) fn of(selection: Selection, entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        let entries = entries.into_iter();
        Self {
            entries: entries
                .map(|entry| SavedEntry::of(entry, selection))
                .collect(),
            ..Self::new(selection)
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.scratch.is_empty() && self.marks.is_empty()
    }
}

/// The outcome of a save that was made durable.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Saved {
    /// The errors of the values that could not be turned into bytes, and were left out. Saving it again would not
    /// help.
    pub left_out: Vec<ArchiveError>,
}

impl Saved {
    /// The outcome of a save that left these values out.
    #[must_use]
    pub fn without(left_out: Vec<ArchiveError>) -> Self {
        Self { left_out }
    }
}

/// One entry to save. Its run's scratch, if any was saved, is of no use any more.
#[derive(Clone)]
pub struct SavedEntry {
    record: Record,
    /// The cache may hold this entry too.
    entry: Arc<Entry>,
    selection: Selection,
}

/// One result to save.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SavedResult<'a> {
    /// The result's name.
    pub name: &'a str,
    /// The result's tags.
    pub tags: Tags,
    /// The value and how to write it; `None` if this selection leaves it out, or
    /// it is gone.
    pub value: Option<(&'a ErasedValue, Codec)>,
}

/// Without the values: some are read from the store when they are asked for.
impl fmt::Debug for SavedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let results = self.entry.results.iter();
        let results: Vec<_> = results.map(|one| (&*one.name, one.tags)).collect();
        f.debug_struct("SavedEntry")
            .field("record", &self.record)
            .field("results", &results)
            .field("selection", &self.selection)
            .finish()
    }
}

impl SavedEntry {
    /// An entry that no engine has made: its record and its results, those without a value named only.
    #[must_use]
    pub fn new<N: Into<Cow<'static, str>>>(
        record: Record,
        selection: Selection,
        results: impl IntoIterator<Item = (N, Tags, Option<(ErasedValue, Codec)>)>,
    ) -> Self {
        let named = |(name, tags, value): (N, _, Option<_>)| {
            let codec = value.as_ref().map(|(_, codec)| *codec);
            Named {
                content: value.map_or(Content::Gone(NOT_KEPT), |(value, _)| Content::Held(value)),
                spec: Arc::new(ResultSpec::stored(name.into(), tags, codec)),
                tags,
            }
        };
        let results = results.into_iter().map(named);
        Self::of(Arc::new(Entry::unchecked(record, results)), selection)
    }

    fn of(entry: Arc<Entry>, selection: Selection) -> Self {
        Self {
            record: entry.full_record(),
            entry,
            selection,
        }
    }

    pub(crate) fn into_entry(self) -> Arc<Entry> {
        self.entry
    }

    /// The record of how the entry was made.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// All its results; those without a value are named only.
    pub fn results(&self) -> impl ExactSizeIterator<Item = SavedResult<'_>> {
        self.entry.results.iter().map(|named| {
            let tags = named.tags;
            let value = match &named.content {
                _ if !self.selection.takes(tags) => None,
                Content::Held(value) => Some(value),
                Content::Stored(stored) => stored.get().ok(),
                Content::Weak(_) | Content::Gone(_) => None,
            };
            SavedResult {
                name: &named.name,
                tags,
                value: value.zip(named.codec),
            }
        })
    }
}

/// One scratch state to save.
#[derive(Debug)]
#[non_exhaustive]
pub struct SavedScratch {
    /// The app that runs.
    pub app: Arc<str>,
    /// The key of the run.
    pub key: Key,
    /// The state.
    pub value: ErasedValue,
    /// The codec that writes the value.
    pub codec: Codec,
    /// The time that the run had taken, with that of the runs that it went on from. A store keeps it for
    /// [`Payload::took`](crate::archiver::Payload::took).
    pub took: Duration,
}

impl SavedScratch {
    /// The state of a run of `app` that had taken no time, and how to write it.
    #[must_use]
    pub fn new(app: impl Into<Arc<str>>, key: Key, value: ErasedValue, codec: Codec) -> Self {
        Self {
            app: app.into(),
            key,
            value,
            codec,
            took: Duration::ZERO,
        }
    }
}

/// Marks an entry as one that must not be used, or may be used again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Mark {
    /// The entry's key.
    pub key: Key,
    /// The computation that made the entry; one made later under the same key is
    /// not meant.
    pub run: RunId,
    /// The reason for the mark.
    pub reason: String,
    /// When it was said.
    pub at: SystemTime,
    /// Whether this takes an earlier mark back.
    pub undone: bool,
}

impl Mark {
    /// Makes a mark, at a time, that the entry of this computation must not be used.
    #[must_use]
    pub fn new(key: Key, run: RunId, reason: impl Into<String>, at: SystemTime) -> Self {
        Self {
            key,
            run,
            reason: reason.into(),
            at,
            undone: false,
        }
    }

    /// The mark's rank among those of one computation: the highest counts. The latest has it, and of two that were
    /// made at one time that which says that the entry is not to be used.
    #[must_use]
    pub fn rank(&self) -> (SystemTime, bool) {
        (self.at, !self.undone)
    }
}
