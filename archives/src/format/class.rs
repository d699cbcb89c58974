//! The classes of stored values, and their folders.

use std::path::{Path, PathBuf};

use sde::Tags;

/// The class of the values in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// Results, and all invalidation marks.
    Result,
    /// Results tagged `intermediate`. They are in the segments of results, but in frames of their own: damage to
    /// one costs no result, and an archive leaves them out.
    Intermediate,
    /// The states of runs that have not finished.
    Scratch,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 3] = [Self::Result, Self::Intermediate, Self::Scratch];

    /// The class's name, as `sde ls` shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Intermediate => "intermediate",
            Self::Scratch => "scratch",
        }
    }

    /// The class of a result with these tags; `None` if it is not saved.
    pub(crate) fn of(tags: Tags) -> Option<Self> {
        match () {
            () if tags.is_archived() => Some(Self::Result),
            () if tags.is_checkpointed() => Some(Self::Intermediate),
            () => None,
        }
    }
}

/// The kind of a segment: scratch is soon superseded, entries stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Results, intermediates and marks.
    Entries,
    /// The states of runs that have not finished.
    Scratch,
}

impl Part {
    /// Both parts.
    pub(crate) const ALL: [Self; 2] = [Self::Entries, Self::Scratch];

    /// The part's folder in a store.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::Scratch => "scratch",
        }
    }

    /// The part's number in a segment's header.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Entries => 1,
            Self::Scratch => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.code() == code)
    }

    /// The part's position in an array with an element for each part.
    pub(crate) const fn number(self) -> usize {
        self.code() as usize - 1
    }
}

/// The extension of segment files.
pub(crate) const EXTENSION: &str = "sde";

/// The folder with a part's segments.
pub(crate) fn folder(store: &Path, part: Part) -> PathBuf {
    store.join(part.folder())
}
