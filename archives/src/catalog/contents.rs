//! Whether the store has the bytes of an output file.

use std::io;

use sde::Key;
use sde::archiver::ArchiveError;
use sde::key::Digest;

use super::Catalog;
use super::index::Place;
use crate::format::frame::{self, FrameKind};
use crate::vfs::is_gone;

/// The key of a content frame.
pub(crate) fn content_key(digest: &Digest) -> Key {
    Key::from_bytes(*digest.as_bytes())
}

impl Catalog {
    /// Whether a copy of this content is there, by its header alone.
    pub(crate) fn has_content(&self, key: &Key) -> Result<bool, ArchiveError> {
        let mut failed = None;
        for copy in self.known(|index| index.contents(key)) {
            match self.read_header(&copy.place, key) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                // A compaction has copied the frame elsewhere.
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    let path = &copy.place.segment.path;
                    failed = failed.or(Some(ArchiveError::io("reading", path, error)));
                }
            }
        }
        failed.map_or(Ok(false), Err)
    }

    /// Whether this copy is there, by its header alone.
    pub(crate) fn is_content(&self, copy: &Place, key: &Key) -> bool {
        self.read_header(copy, key).unwrap_or(false)
    }

    fn read_header(&self, place: &Place, key: &Key) -> io::Result<bool> {
        if place.segment.is_damaged(place.at) {
            return Ok(false);
        }
        let file = self.vfs.open(&place.segment.path)?;
        let found = frame::read_at(&*file, &place.segment, place.at)?;
        let is_of = |header: &frame::FrameHeader| {
            header.kind() == Some(FrameKind::Content) && header.key == *key
        };
        Ok(found.is_some_and(|(header, _)| is_of(&header)))
    }
}
