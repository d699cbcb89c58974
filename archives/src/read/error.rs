//! What can't be read, for a person and for who reads on.

use std::io;
use std::ops::Range;

use sde::{ArchiveError, Key};

use crate::format::segment::Segment;

const GONE: &str = "its file is gone; a compaction may have put it elsewhere";

/// Why a frame gave nothing.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is not what it should be: a miss.
    Damaged(String),
    /// It is sound, and not what was asked for.
    OtherType(String),
    /// It is of another key, that begins alike.
    OtherKey,
    /// Its file is not there any more.
    Gone,
    /// It could not be read.
    Io(ArchiveError),
}

impl ReadError {
    pub(crate) fn io(segment: &Segment, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("its file was cut short".to_owned()),
            // A network file system may say the second of a file that another process removed.
            io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle => Self::Gone,
            _ => Self::Io(ArchiveError::io("reading", &segment.path, error)),
        }
    }

    /// Warns of what is damaged; gives back what is an error.
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
            ReadError::Damaged(why) => Self::Damaged { why },
            ReadError::OtherType(why) => Self::Other(why),
            ReadError::Gone | ReadError::OtherKey => Self::Damaged {
                why: GONE.to_owned(),
            },
            ReadError::Io(error) => error,
        }
    }
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
