//! The classes of what is stored, which are kept in folders of their own.
//!
//! An archive is to be copied without what only a restart needs. So results lie
//! apart from intermediates, and both from scratch: the folder of the results, with
//! `FORMAT` and the manifests of archives, is a store of its own. What was checkpointed
//! need not be written again to be archived.

use sde::Tags;

/// One class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Results, and all marks.
    Result,
    /// Results tagged `intermediate`.
    Intermediate,
    /// The states of runs that have not finished.
    Scratch,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Result, Self::Intermediate, Self::Scratch];

    /// Its folder in a store.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Result => "results",
            Self::Intermediate => "intermediates",
            Self::Scratch => "scratch",
        }
    }

    /// Where a result with these tags belongs; `None` if it is not saved.
    pub(crate) fn of(tags: Tags) -> Option<Self> {
        match () {
            () if tags.is_archived() => Some(Self::Result),
            () if tags.is_checkpointed() => Some(Self::Intermediate),
            () => None,
        }
    }

    /// Its number in a segment's header.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Result => 1,
            Self::Intermediate => 2,
            Self::Scratch => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.code() == code)
    }

    /// Its place in a list of one thing for each class.
    pub(crate) const fn number(self) -> usize {
        self.code() as usize - 1
    }
}
