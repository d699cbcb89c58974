//! Errors of reading, for people and for callers.

use std::io;
use std::ops::Range;

use sde::Key;
use sde::archiver::ArchiveError;

use crate::format::segment::Segment;
use crate::vfs::is_gone;

const GONE: &str = "its file is gone; a compaction may have put it elsewhere";

/// Why a frame could not be used.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is damaged, and counts as missing.
    Damaged(String),
    /// It is sound, but of another type than was asked for.
    OtherType(String),
    /// It is of another key with the same prefix.
    OtherKey,
    /// Its file is gone.
    Gone,
    /// It could not be read.
    Io(ArchiveError),
}

impl ReadError {
    pub(crate) fn io(segment: &Segment, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("its file was cut short".to_owned()),
            _ if is_gone(&error) => Self::Gone,
            _ => Self::Io(ArchiveError::io("reading", &segment.path, error)),
        }
    }

    /// Warns of damage; gives back the errors of the medium.
    pub(crate) fn warned(self, key: &Key, what: &str) -> Option<ArchiveError> {
        match self {
            Self::Damaged(why) | Self::OtherType(why) => {
                sde::warning!("{what} of {} can't be used: {why}", key.short());
                None
            }
            Self::Gone | Self::OtherKey => None,
            Self::Io(error) => Some(error),
        }
    }
}

impl From<ReadError> for ArchiveError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged(why) => Self::damaged(why),
            ReadError::OtherType(why) => Self::Other(why),
            ReadError::Gone | ReadError::OtherKey => Self::damaged(GONE),
            ReadError::Io(error) => error,
        }
    }
}

/// A damaged part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The path of the file, within the store.
    pub path: String,
    /// The damaged bytes.
    pub place: Range<u64>,
    /// The reason.
    pub why: String,
    /// The key of the run that they belong to, if it is known.
    pub key: Option<Key>,
}

impl Damage {
    /// The damage of a part of a file, without a key.
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
