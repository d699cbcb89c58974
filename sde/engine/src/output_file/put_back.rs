//! Putting a file where it was.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::BuildHasher;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use super::{OutputFile, mode, regular};
use crate::error::ArchiveError;
use crate::key::digest_file;

/// Writes the content of a file, and says whether there is any; without a file it only says that.
pub(crate) type Content<'a> = dyn Fn(Option<&mut File>) -> Result<bool, ArchiveError> + 'a;

impl OutputFile {
    /// Leaves the file as it was, put back if need be; says why if that can't be done.
    pub(crate) fn ensure(&self, content: &Content<'_>) -> Result<(), String> {
        if !self.has_place() {
            return self.check(content);
        }
        let done = match self.is_unchanged() {
            Ok(true) => set_mode(self.path(), self.mode()),
            Ok(false) => self.put_at(self.path(), content),
            Err(error) => Err(error),
        };
        done.map_err(|error| self.refused(&error))
    }

    /// Says why [`ensure`](Self::ensure) would fail, as far as can be told without doing it.
    pub(crate) fn check(&self, content: &Content<'_>) -> Result<(), String> {
        let is_had = || content(None).map_err(io::Error::other);
        match self.is_unchanged().and_then(|is| Ok(is || is_had()?)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.refused(&no_content())),
            Err(error) => Err(self.refused(&error)),
        }
    }

    /// Checks a file that another user's result names: it is never put there, since it could be any file of this user's.
    pub(crate) fn is_in_place(&self, content: &Content<'_>) -> Result<(), String> {
        let path = self.path().display();
        match self.is_unchanged() {
            _ if !self.has_place() => self.check(content),
            Ok(true) => Ok(()),
            _ => Err(format!(
                "another user saved it, so its output file {path} is not put back"
            )),
        }
    }

    fn refused(&self, error: &io::Error) -> String {
        match self.has_place() {
            true => {
                let path = self.path().display();
                format!("its output file {path} is not as it was, and can't be put back: {error}")
            }
            false => format!("a file of its results is not to be had: {error}"),
        }
    }

    /// Writes what the file holds over the content of `to`: from where it lies, else from the store.
    pub(crate) fn write_to(&self, to: &mut File, content: &Content<'_>) -> io::Result<()> {
        if self.is_unchanged().unwrap_or(false) {
            let mut from = File::open(self.path())?;
            to.rewind()?;
            to.set_len(0)?;
            return io::copy(&mut from, to).map(drop);
        }
        match content(Some(to)).map_err(io::Error::other)? {
            true => Ok(()),
            false => Err(no_content()),
        }
    }

    /// Puts the file at a path, unless it is there.
    pub(crate) fn put(&self, path: &Path, content: &Content<'_>) -> io::Result<()> {
        let is_there = regular(path)?.is_some_and(|about| about.len() == self.length())
            && digest_file(path)? == (self.length(), self.digest());
        if is_there {
            return set_mode(path, self.mode());
        }
        self.put_at(path, &|to| match to {
            Some(to) => self.write_to(to, content).map(|()| true).map_err(failed),
            None => Ok(true),
        })
    }

    /// Writes the file beside its place, then gives it its name.
    fn put_at(&self, path: &Path, content: &Content<'_>) -> io::Result<()> {
        // Without content no folder is made.
        if !content(None).map_err(io::Error::other)? {
            return Err(no_content());
        }
        let folder = path.parent();
        folder.map_or(Ok(()), fs::create_dir_all)?;
        let unfinished = Unfinished(beside(path));
        let mut file = create(&unfinished.0)?;
        if !content(Some(&mut file)).map_err(io::Error::other)? {
            return Err(no_content());
        }
        let about = file.metadata()?;
        file.set_permissions(permissions(&about.permissions(), self.mode()))?;
        drop(file);
        // The rename would replace a link that was made meanwhile.
        regular(path)?;
        fs::rename(&unfinished.0, path)
    }
}

fn set_mode(path: &Path, wanted: u32) -> io::Result<()> {
    match regular(path)? {
        Some(about) if mode(&about) != wanted => {
            fs::set_permissions(path, permissions(&about.permissions(), wanted))
        }
        _ => Ok(()),
    }
}

fn failed(error: io::Error) -> ArchiveError {
    ArchiveError::Other(error.to_string())
}

fn no_content() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no store has its content")
}

/// A name of its own, which no other thread, process or machine takes.
fn beside(path: &Path) -> PathBuf {
    let random = RandomState::new().hash_one(std::process::id());
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{random:016x}.unfinished"));
    path.with_file_name(name)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A file that is removed on drop, unless it was renamed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A file that is left behind does no harm.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(unix)]
fn permissions(_: &Permissions, mode: u32) -> Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(mode)
}

#[cfg(not(unix))]
fn permissions(now: &Permissions, mode: u32) -> Permissions {
    let mut permissions = now.clone();
    permissions.set_readonly(mode & 0o200 == 0);
    permissions
}
