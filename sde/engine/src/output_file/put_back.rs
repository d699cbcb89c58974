//! Putting a file where it was.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::BuildHasher;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::{OutputFile, mode, regular};
use crate::error::ArchiveError;
use crate::key::digest_file;

/// What is asked of the store about a content.
pub(crate) enum Asked<'a> {
    /// Whether it is there. Its bytes are not read, so they may be damaged.
    Present,
    /// Whether it is there and whole.
    Whole,
    /// To be written over this file.
    Copy(&'a mut File),
}

/// Asks the store about the content of one file; says whether it has it.
pub(crate) type Content<'a> = dyn Fn(Asked<'_>) -> Result<bool, ArchiveError> + 'a;

impl OutputFile {
    /// Leaves the file as it was, put back if need be; says why if that can't be done.
    pub(crate) fn ensure(&self, content: &Content<'_>) -> Result<(), String> {
        if !self.has_place() {
            return self.check_whole(content);
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
        self.checked(&|| content(Asked::Present))
    }

    /// Reads the content of a file without a place, once for each loaded description: nobody looks at it again before the
    /// hit is given.
    fn check_whole(&self, content: &Content<'_>) -> Result<(), String> {
        let is_whole = &self.0.is_whole;
        self.checked(&|| {
            let is = is_whole.load(Ordering::Relaxed) || content(Asked::Whole)?;
            is_whole.store(is, Ordering::Relaxed);
            Ok(is)
        })
    }

    fn checked(&self, is_stored: &dyn Fn() -> Result<bool, ArchiveError>) -> Result<(), String> {
        let is_stored = || is_stored().map_err(io::Error::other);
        match self.is_unchanged().and_then(|is| Ok(is || is_stored()?)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.refused(&no_content())),
            Err(error) => Err(self.refused(&error)),
        }
    }

    /// Checks a file that another user's result names: it is never put there, since it could be any file of this user's.
    pub(crate) fn is_in_place(&self, content: &Content<'_>) -> Result<(), String> {
        let path = self.path().display();
        match self.is_unchanged() {
            _ if !self.has_place() => self.check_whole(content),
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
        match content(Asked::Copy(to)).map_err(io::Error::other)? {
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
        self.put_at(path, &|asked| match asked {
            Asked::Copy(to) => self.write_to(to, content).map(|()| true).map_err(failed),
            Asked::Present | Asked::Whole => Ok(true),
        })
    }

    /// Writes the file beside its place, then gives it its name.
    fn put_at(&self, path: &Path, content: &Content<'_>) -> io::Result<()> {
        // Without content no folder is made.
        if !content(Asked::Present).map_err(io::Error::other)? {
            return Err(no_content());
        }
        let folder = path.parent();
        folder.map_or(Ok(()), fs::create_dir_all)?;
        let unfinished = Unfinished(beside(path));
        let mut file = create(&unfinished.0)?;
        if !content(Asked::Copy(&mut file)).map_err(io::Error::other)? {
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
