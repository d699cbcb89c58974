//! Where everything is: the store's index, in memory.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use sde::{Key, Mark, RunId, Selection};

use crate::metadata::{EntryMetadata, RecordHead, ScratchMetadata};
use crate::segment::Segment;

/// Where a frame is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) segment: Arc<Segment>,
    pub(crate) at: u64,
}

/// One saved entry.
#[derive(Clone, Debug)]
pub(crate) struct EntryAt {
    pub(crate) place: Place,
    pub(crate) run: RunId,
    made_at: SystemTime,
    saved_at: u64,
    /// How many values it has.
    values: usize,
    /// It is the archived copy, and nothing is missing from it.
    pub(crate) archived: bool,
}

impl EntryAt {
    pub(crate) fn new(
        place: Place,
        record: &RecordHead,
        metadata: &EntryMetadata<impl Sized>,
    ) -> Self {
        Self {
            run: record.run,
            made_at: record.made_at,
            saved_at: metadata.saved_at,
            values: metadata.values(),
            archived: place.segment.selection == Selection::Archive && metadata.is_archive(),
            place,
        }
    }

    /// Of two entries the later computation is the better; of two copies of one,
    /// that with more values.
    fn rank(&self) -> impl Ord + use<> {
        Reverse((self.made_at, self.values, self.saved_at))
    }
}

/// One saved scratch state.
#[derive(Clone, Debug)]
pub(crate) struct ScratchAt {
    pub(crate) place: Place,
    saved_at: u64,
}

/// What a frame adds to the index.
pub(crate) enum Item {
    Entry(Key, EntryAt),
    Scratch(Key, ScratchAt),
    Mark(Mark),
}

impl Item {
    pub(crate) fn scratch(place: Place, metadata: &ScratchMetadata) -> Self {
        let saved_at = metadata.saved_at;
        Self::Scratch(metadata.key, ScratchAt { place, saved_at })
    }

    /// When it was saved, if it says so.
    pub(crate) fn saved_at(&self) -> Option<u64> {
        match self {
            Self::Entry(_, entry) => Some(entry.saved_at),
            Self::Scratch(_, scratch) => Some(scratch.saved_at),
            Self::Mark(_) => None,
        }
    }
}

/// How many states of one run are kept: if the latest is damaged, an earlier one
/// leads to the same bits.
const STATES: usize = 3;

#[derive(Default)]
pub(crate) struct Index {
    /// The best first.
    entries: HashMap<Key, Vec<EntryAt>>,
    /// The latest first.
    scratch: HashMap<Key, Vec<ScratchAt>>,
    marks: Vec<Mark>,
}

impl Index {
    pub(crate) fn add(&mut self, item: Item) {
        match item {
            Item::Entry(key, entry) => {
                let known = self.entries.entry(key).or_default();
                let at = known.partition_point(|other| other.rank() <= entry.rank());
                known.insert(at, entry);
            }
            Item::Scratch(key, state) => {
                let known = self.scratch.entry(key).or_default();
                let at = known.partition_point(|other| other.saved_at > state.saved_at);
                known.insert(at, state);
                known.truncate(STATES);
            }
            Item::Mark(mark) if self.marks.contains(&mark) => {}
            Item::Mark(mark) => {
                let at = self.marks.partition_point(|other| other.at <= mark.at);
                self.marks.insert(at, mark);
            }
        }
    }

    /// The saved entries of a key, the best first.
    pub(crate) fn entries(&self, key: &Key) -> &[EntryAt] {
        self.entries.get(key).map_or(&[], Vec::as_slice)
    }

    /// The scratch states of a key that were saved after its last entry, the
    /// latest first: those saved before belong to a run that has finished.
    pub(crate) fn scratch(&self, key: &Key) -> &[ScratchAt] {
        let finished = self.entries(key).iter().map(|entry| entry.saved_at).max();
        let states = self.scratch.get(key).map_or(&[][..], Vec::as_slice);
        let after = states.partition_point(|state| Some(state.saved_at) > finished);
        &states[..after]
    }

    /// All marks, the oldest first.
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }
}
