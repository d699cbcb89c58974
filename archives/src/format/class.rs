//! The classes of what is stored, and the folders in which they lie.

use std::path::{Path, PathBuf};

use sde::Tags;

/// What a frame holds the values of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Results, and all marks.
    Result,
    /// Results tagged `intermediate`. Their frames lie among those of results, and are frames of their own: damage to
    /// one costs no result, and an archive to keep has none of them.
    Intermediate,
    /// The states of runs that have not finished.
    Scratch,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Result, Self::Intermediate, Self::Scratch];

    /// Where a result with these tags belongs; `None` if it is not saved.
    pub(crate) fn of(tags: Tags) -> Option<Self> {
        match () {
            () if tags.is_archived() => Some(Self::Result),
            () if tags.is_checkpointed() => Some(Self::Intermediate),
            () => None,
        }
    }

    /// The segments in which it lies.
    #[must_use]
    pub const fn part(self) -> Part {
        match self {
            Self::Result | Self::Intermediate => Part::Entries,
            Self::Scratch => Part::Scratch,
        }
    }
}

/// What a segment has frames of: scratch comes and goes, entries stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Results, intermediates and marks.
    Entries,
    /// The states of runs that have not finished.
    Scratch,
}

impl Part {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Entries, Self::Scratch];

    /// Its folder in a store.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::Scratch => "scratch",
        }
    }

    /// Its number in a segment's header.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Entries => 1,
            Self::Scratch => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.code() == code)
    }

    /// Its place in a list of one thing for each part.
    pub(crate) const fn number(self) -> usize {
        self.code() as usize - 1
    }
}

/// How segments are called.
pub(crate) const EXTENSION: &str = "sde";

/// Where a part of a store has its segments.
pub(crate) fn folder(store: &Path, part: Part) -> PathBuf {
    store.join(part.folder())
}
