//! Reads the contents of output files, by digest.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::sync::Arc;

use sde::Key;
use sde::archiver::ArchiveError;
use sde::key::Digest;

use super::error::ReadError;
use super::frame::Frame;
use super::payload::{StoredValue, ValueSource};
use crate::catalog::Catalog;
use crate::catalog::index::Place;
use crate::format::frame::FrameKind;
use crate::format::metadata::TypeInfo;

impl Frame<'_> {
    /// The payload of a content frame.
    pub(crate) fn file_content(&self) -> StoredValue {
        let place = self.payload();
        let source = ValueSource::Payload {
            at: place.start,
            length: place.end - place.start,
            digest: Digest::from_bytes(*self.header.key.as_bytes()),
        };
        let stored = TypeInfo {
            name: Arc::from("bytes"),
            schema: Digest::from_bytes([0; 32]),
        };
        self.value(source, &stored)
    }
}

/// The content of this key at a place.
fn content_at(catalog: &Catalog, place: &Place, key: &Key) -> Result<StoredValue, ReadError> {
    if place.segment.is_damaged(place.at) {
        return Err(ReadError::OtherKey);
    }
    let frame = Frame::read(&catalog.vfs, place, FrameKind::Content)?.of_key(key)?;
    Ok(frame.file_content())
}

impl Catalog {
    /// Whether a whole and durable copy exists.
    pub(crate) fn has_whole_content(&self, key: &Key, is_durable: &dyn Fn(&Place) -> bool) -> bool {
        let copies = self.known(|index| index.contents(key));
        copies.iter().any(|copy| {
            let content = content_at(self, &copy.place, key);
            let is_whole = content.is_ok_and(|content| content.verify(|_| ()).is_ok());
            is_whole && is_durable(&copy.place)
        })
    }

    /// Writes a content to a file. Gives whether a whole copy was found, and whether the file of a copy was gone.
    pub(crate) fn copy_content(
        &self,
        key: &Key,
        to: &mut File,
    ) -> Result<(bool, bool), ArchiveError> {
        self.first_whole(key, |content| {
            match to.rewind().and_then(|()| to.set_len(0)) {
                Ok(()) => content.copy(|piece| to.write_all(piece)),
                failed => Ok(failed),
            }
        })
    }

    /// Reads a content. Gives whether a whole copy was found, and whether the file of a copy was gone.
    pub(crate) fn check_content(&self, key: &Key) -> Result<(bool, bool), ArchiveError> {
        self.first_whole(key, |content| content.verify(|_| ()).map(Ok))
    }

    /// Reads one copy after the other by `read`, up to one that is whole. A damaged copy is not read again.
    fn first_whole(
        &self,
        key: &Key,
        mut read: impl FnMut(&StoredValue) -> Result<io::Result<()>, ReadError>,
    ) -> Result<(bool, bool), ArchiveError> {
        let (mut gone, mut failed) = (false, None);
        for copy in self.known(|index| index.contents(key)) {
            let copied = content_at(self, &copy.place, key).and_then(|content| read(&content));
            match copied {
                Ok(written) => {
                    let failed = |error| ArchiveError::Other(format!("writing it failed: {error}"));
                    written.map_err(failed)?;
                    return Ok((true, gone));
                }
                Err(ReadError::Gone) => gone = true,
                Err(error) => {
                    if let ReadError::Damaged(_) = error {
                        copy.place.segment.note_damaged(copy.place.at);
                    }
                    failed = failed.or(error.warned(key, "the content of an output file"));
                }
            }
        }
        match failed {
            Some(error) if !gone => Err(error),
            _ => Ok((false, gone)),
        }
    }
}
