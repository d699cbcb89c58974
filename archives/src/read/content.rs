//! What output files hold, by digest.

use std::fs::File;
use std::io::{self, Seek, Write};

use sde::{ArchiveError, Key};

use super::frame::Frame;
use super::trouble::Trouble;
use crate::catalog::Catalog;
use crate::catalog::index::Place;
use crate::format::frame::FrameKind;
use crate::vfs::pieces;

impl Frame<'_> {
    /// The frame of a content at a place.
    fn content_at<'a>(
        catalog: &'a Catalog,
        place: &'a Place,
        key: &Key,
    ) -> Result<Frame<'a>, Trouble> {
        if place.segment.is_damaged(place.at) {
            return Err(Trouble::OtherKey);
        }
        Frame::read(&catalog.vfs, place, FrameKind::Content)?.of_key(key)
    }

    /// Gives all that a content holds, a piece at a time; an error in the end if it is damaged.
    fn copy(&self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> Result<(), CopyError> {
        let payload = self.payload();
        let mut hasher = blake3::Hasher::new();
        let mut refused = None;
        let read = pieces(
            &*self.file,
            payload.start,
            payload.end - payload.start,
            |piece| {
                hasher.update(piece);
                take(piece).map_err(|error| {
                    let kind = error.kind();
                    refused = Some(error);
                    kind.into()
                })
            },
        );
        match (read, refused) {
            (_, Some(error)) => Err(CopyError::Refused(error)),
            (Err(error), None) => Err(CopyError::Trouble(Trouble::io(self.segment, error))),
            (Ok(()), None) if hasher.finalize().as_bytes() == self.header.key.as_bytes() => Ok(()),
            (Ok(()), None) => {
                self.segment.note_damaged(self.at);
                let why = "its bytes are not those saved".to_owned();
                Err(CopyError::Trouble(Trouble::Damaged(why)))
            }
        }
    }
}

/// Why a content was not copied.
enum CopyError {
    Trouble(Trouble),
    /// It could not be written.
    Refused(io::Error),
}

/// Checks the content at a place.
pub(crate) fn check_content(catalog: &Catalog, place: &Place) -> Result<(), Trouble> {
    let frame = Frame::read(&catalog.vfs, place, FrameKind::Content)?;
    match frame.copy(|_| Ok(())) {
        Err(CopyError::Trouble(trouble)) => Err(trouble),
        Err(CopyError::Refused(_)) | Ok(()) => Ok(()),
    }
}

impl Catalog {
    /// Writes a content to a file; gives whether there is a whole copy, and whether the file of one is gone.
    pub(crate) fn copy_content(
        &self,
        key: &Key,
        to: &mut File,
    ) -> Result<(bool, bool), ArchiveError> {
        let mut gone = false;
        for copy in self.known(|index| index.contents(key)) {
            let copied = match Frame::content_at(self, &copy.place, key) {
                Ok(frame) => {
                    let begun = to.rewind().and_then(|()| to.set_len(0));
                    begun.map_err(|error| cannot_write(&error))?;
                    frame.copy(|piece| to.write_all(piece))
                }
                Err(trouble) => Err(CopyError::Trouble(trouble)),
            };
            match copied {
                Ok(()) => return Ok((true, gone)),
                Err(CopyError::Refused(error)) => return Err(cannot_write(&error)),
                Err(CopyError::Trouble(Trouble::Gone)) => gone = true,
                Err(CopyError::Trouble(trouble)) => {
                    if let Some(error) = trouble.warned(key, "the content of an output file") {
                        return Err(error);
                    }
                }
            }
        }
        Ok((false, gone))
    }
}

fn cannot_write(error: &io::Error) -> ArchiveError {
    ArchiveError::Other(format!("writing it failed: {error}"))
}
