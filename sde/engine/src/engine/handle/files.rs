//! Putting and reading the content of output files.

use std::fs::File;
use std::io;
use std::path::Path;

use super::Handle;
use crate::engine::Engine;
use crate::error::ArchiveError;
use crate::key::Digest;
use crate::output_file::{Asked, OutputFile};

impl Handle {
    /// Puts what an output file holds at a path, with its permission bits, in one step: other programs see the old file
    /// or the new. A file that holds it already is left as it is. Missing folders are made.
    ///
    /// The content comes from where the file lies, else from the store.
    ///
    /// ```
    /// use sde::{OutputFile, Sde};
    ///
    /// let there = tempfile::tempdir()?;
    /// let copy = there.path().join("a/Cargo.toml");
    /// Sde::new().put(&OutputFile::new("Cargo.toml")?, &copy)?;
    /// assert_eq!(std::fs::read(&copy)?, std::fs::read("Cargo.toml")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If neither has the content, what is at the path is no regular file, or it can't be written.
    pub fn put(&self, file: &OutputFile, path: &Path) -> io::Result<()> {
        file.put(path, &|asked| {
            self.engine.stored_content(&file.digest(), asked)
        })
    }

    /// Writes what an output file holds over the content of `to`. It is never in memory as a whole.
    ///
    /// # Errors
    /// If neither its place nor the store has the content, or it can't be written.
    pub fn content(&self, file: &OutputFile, to: &mut File) -> io::Result<()> {
        file.write_to(to, &|asked| {
            self.engine.stored_content(&file.digest(), asked)
        })
    }
}

impl Engine {
    /// Asks the store, if there is one, for what an output file holds.
    pub(in crate::engine) fn stored_content(
        &self,
        digest: &Digest,
        asked: Asked<'_>,
    ) -> Result<bool, ArchiveError> {
        match (self.archiver(), asked) {
            (None, _) => Ok(false),
            (Some(archiver), Asked::Present) => archiver.content(digest, None),
            (Some(archiver), Asked::Whole) => archiver.has_whole_content(digest),
            (Some(archiver), Asked::Copy(to)) => archiver.content(digest, Some(to)),
        }
    }
}
