//! The rows of a segment's index.

use std::io;
use std::sync::Arc;

use sde::Key;
use sde::archiver::ArchiveError;

use super::segments::SegmentFile;
use crate::format::frame::FrameKind;
use crate::format::index_block::{Row, prefix};
use crate::rewrite::source::Source;

/// A frame, by its row in an index.
#[derive(Clone, Copy, Debug)]
pub struct Listed(pub(super) Row);

impl Listed {
    /// Whether it is a frame of an entry.
    #[must_use]
    pub fn is_entry(&self) -> bool {
        self.0.kind() == Some(FrameKind::Entry)
    }

    /// Whether it is a state of a run that had not finished.
    #[must_use]
    pub fn is_scratch(&self) -> bool {
        self.0.kind() == Some(FrameKind::Scratch)
    }

    /// Whether it is a mark, which invalidates an entry or revokes that.
    #[must_use]
    pub fn is_mark(&self) -> bool {
        self.0.kind() == Some(FrameKind::Mark)
    }

    /// Whether it records uses of entries.
    #[must_use]
    pub fn is_uses(&self) -> bool {
        self.0.kind() == Some(FrameKind::Uses)
    }

    /// Whether it is a process's journal.
    #[must_use]
    pub fn is_journal(&self) -> bool {
        self.0.kind() == Some(FrameKind::Journal)
    }

    /// When it was saved, in nanoseconds since 1970; 0 for uses and provenances.
    #[must_use]
    pub fn saved_at(&self) -> u64 {
        self.0.saved_at
    }

    /// The first 8 bytes of its key; 0 if it has none.
    #[must_use]
    pub fn prefix(&self) -> u64 {
        self.0.prefix
    }

    /// Whether it may be of this key.
    #[must_use]
    pub fn may_be_of(&self, key: &Key) -> bool {
        self.0.prefix == prefix(key)
    }
}

impl SegmentFile {
    /// Passes the segment's frames to `each`, in any order, reading only the index if there is one. Segments that
    /// can't be read or are gone yield none.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn list(&self, each: impl FnMut(Listed)) -> Result<(), ArchiveError> {
        let Ok(segment) = &self.header else {
            return Ok(());
        };
        match Source::open(&*self.inspection.vfs, Arc::clone(segment), 0, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(ArchiveError::io("reading", &*self.file, error)),
            Ok(source) => {
                source.rows.iter().map(Listed).for_each(each);
                Ok(())
            }
        }
    }
}
