//! What a store asks of the thing that it is on: the calls, and what they promise.
//!
//! Whether a store loses anything is decided by which of these calls it makes, in
//! which order, and what it makes of their errors. None of that can be seen on
//! a real disk: a kill leaves the page cache as it is, and a disk that fails is
//! hard to come by. So all calls go through [`Vfs`]. [`Disk`] is the real one;
//! the tests have one that forgets what was not synced, tears writes, fails at any
//! chosen call, or stops in it.
//!
//! What is assumed, and nothing more:
//!
//! - bytes that were written are on the medium for good once
//!   [`sync`](VfsFile#method.sync) has said so, the file's length with them;
//! - a name that was made, changed or removed is there for good once
//!   [`sync_dir`](Vfs#method.sync_dir) of its directory has said so;
//! - before that, any part of what was written may be there after a power loss, in
//!   any order, in pieces of 512 bytes;
//! - a new name is made by one process only, whoever else tries
//!   ([`create`](Vfs::create), [`publish`](Vfs::publish));
//! - after an error of a sync nothing is known of that file, whatever a second
//!   sync says.
//!
//! A sync that is left out shows only when the power fails. So the calls of
//! `sync` and `sync_dir` carry the place in the source that they come from, and the tests leave out
//! one place at a time: each must be missed.

mod disk;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use disk::Disk;

/// What is known of a name without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub kind: FileKind,
    /// The length in bytes, of a file.
    pub length: u64,
    /// Which file it is, whatever its name: two names of one file have the same, two files never,
    /// as long as both exist. 0 where the medium can't say.
    pub id: u64,
    /// When it was last written to, if the medium knows.
    pub written_at: Option<SystemTime>,
    /// The number of the user who owns it, and the last twelve bits of its mode (the permissions are the last nine),
    /// where there are such.
    pub owner: Option<(u32, u32)>,
    /// Whether the name is a symbolic link. All else is of what it leads to, if that is there.
    pub link: bool,
}

/// What a name may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: opening it may never return.
    Other,
}

/// Names and what they stand for. See the [module](self) for what is promised.
pub trait Vfs: Send + Sync + fmt::Debug {
    /// What is there; `None` if nothing is.
    ///
    /// # Errors
    /// If that can't be found out.
    fn look(&self, path: &Path) -> io::Result<Option<Found>>;

    /// How long a file is, as [`look`](Self::look) tells, and nothing else of it: on some file systems the next sync after
    /// somebody asked for the times of a file takes longer.
    ///
    /// # Errors
    /// If that can't be found out.
    fn length_of(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self.look(path)?.map(|found| found.length))
    }

    /// The one path of what is there, without links and `..`. A medium that has neither gives the
    /// path itself, as this does.
    ///
    /// # Errors
    /// If nothing is there, or that can't be found out.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Where a symbolic link leads, as it is written in it; `None` for what is none. A medium that has no links gives that for all, as this does.
    ///
    /// # Errors
    /// If that can't be found out.
    fn link_target(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let _ = path;
        Ok(None)
    }

    /// The names in a directory, in any order.
    ///
    /// # Errors
    /// If it can't be listed.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Makes a directory that only its owner can enter. Its parent must be there.
    ///
    /// # Errors
    /// If it can't be made; `AlreadyExists` if the name is taken.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes a file that only its owner can read, to be written to.
    ///
    /// # Errors
    /// If it can't be made; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// If it can't be opened, or is no regular file.
    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;

    /// Gives a file another name, in the same directory. It is an error if that is taken:
    /// of several processes that publish one name, one succeeds.
    ///
    /// # Errors
    /// If it can't be renamed; `AlreadyExists` if the new name is taken. On a shared file system it
    /// may have happened although there is an error: look before doing anything else.
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, in the same directory, as [`publish`](Self::publish) gives it another. A medium where a file
    /// has one name gives an error, as this does.
    ///
    /// # Errors
    /// As `publish`; `Unsupported` where a file has one name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file.
    ///
    /// # Errors
    /// If it can't be removed.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory with nothing in it.
    ///
    /// # Errors
    /// If it can't be removed, or something is in it.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable; [`sync_dir`](Self#method.sync_dir) calls it.
    ///
    /// # Errors
    /// If that is not certain.
    fn sync_dir_for(&self, dir: &Path, site: Site) -> io::Result<()>;

    /// Whose store it would be: the user of this process, if the medium knows users.
    fn user(&self) -> Option<u32> {
        None
    }

    /// The time of day, by which ages are told.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Takes a lock that the system gives back when its holder ends, however he ends; `None` if
    /// somebody has it. Nothing but politeness may rest on it: there are file systems where all
    /// have it.
    ///
    /// # Errors
    /// If there are no locks, or the file can't be opened.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>>;
}

/// An open file.
pub trait VfsFile: Send + Sync {
    /// Writes all these bytes, one slice after the other, from a place on, which is in the file or at its end.
    ///
    /// # Errors
    /// If not all could be written; some may have been.
    fn write_at(&mut self, slices: &[&[u8]], at: u64) -> io::Result<()>;

    /// Cuts the file off.
    ///
    /// # Errors
    /// If it can't be cut.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Makes what was written durable; [`sync`](Self#method.sync) calls it.
    ///
    /// # Errors
    /// If that is not certain. The file must not be used any more then.
    fn sync_for(&mut self, site: Site) -> io::Result<()>;

    /// Fills the buffer from a position. Any number of threads may do so at once.
    ///
    /// # Errors
    /// If it can't be read; `UnexpectedEof` if the file ends before.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;

    /// Fills the buffer from a position as far as the file reaches; gives how many bytes that were.
    ///
    /// # Errors
    /// If it can't be read.
    fn read_up_to(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// How long it is.
    ///
    /// # Errors
    /// If that can't be found out.
    fn length(&self) -> io::Result<u64>;

    /// The first place from `at` on where something may have been written: from `at` to there are
    /// only zeros that the medium does not even hold. `None` if there is nothing to the end. A
    /// medium that can't tell gives `at`, as this does by itself.
    ///
    /// # Errors
    /// If that can't be found out.
    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        Ok(Some(at))
    }

    /// Takes the lock of [`Vfs::try_lock`] on this file for as long as it is open. Whether that
    /// worked is not told, since nothing may rest on it.
    fn lock_while_open(&self);
}

/// The place in the source where a sync is asked for.
pub type Site = &'static Location<'static>;

impl dyn Vfs + '_ {
    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// If that is not certain.
    #[track_caller]
    pub fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.sync_dir_for(dir, Location::caller())
    }
}

impl dyn VfsFile + '_ {
    /// Makes what was written durable.
    ///
    /// # Errors
    /// If that is not certain. The file must not be used any more then.
    #[track_caller]
    pub fn sync(&mut self) -> io::Result<()> {
        self.sync_for(Location::caller())
    }
}

/// Makes a directory with all its parents, and makes the new names durable.
///
/// # Errors
/// If one of them can't be made, or is no directory.
pub fn make_dirs(vfs: &dyn Vfs, dir: &Path) -> io::Result<()> {
    let Some(parent) = dir.parent() else {
        return Ok(());
    };
    let was_there = dir.as_os_str().is_empty() || is_dir(vfs, dir)?;
    if !was_there {
        make_dirs(vfs, parent)?;
        match vfs.make_dir(dir) {
            // Another process has made it in the meantime.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_dir(vfs, dir)? => {}
            outcome => outcome?,
        }
    }
    if parent.as_os_str().is_empty() {
        return Ok(());
    }
    // Whoever made it may have been killed before he synced it.
    match vfs.sync_dir(parent) {
        Err(error) if was_there && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        outcome => outcome,
    }
}

fn is_dir(vfs: &dyn Vfs, path: &Path) -> io::Result<bool> {
    let found = vfs.look(path)?;
    Ok(found.is_some_and(|found| found.kind == FileKind::Directory))
}

/// Bytes of a file that is known to be so long.
pub(crate) fn read_bytes(file: &dyn VfsFile, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length)?;
    bytes.resize(length, 0);
    file.read_at(&mut bytes, at)?;
    Ok(bytes)
}

/// How much is read at once.
const PIECE: u64 = 1 << 20;

/// Gives bytes of a file, one piece after the other.
pub(crate) fn pieces(
    file: &dyn VfsFile,
    mut at: u64,
    length: u64,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE.min(length) as usize];
    let end = at.saturating_add(length);
    while at < end {
        let piece = &mut piece[..PIECE.min(end - at) as usize];
        file.read_at(piece, at)?;
        take(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}
