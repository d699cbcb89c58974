//! The medium of a store: the calls that a store makes, and what it assumes of them.
//!
//! Whether a store loses anything depends on which of these calls it makes, in which order, and how it handles
//! their errors. A real disk shows none of that: a kill leaves the page cache as it is, and failing disks are rare.
//! So all calls go through [`Vfs`]. [`Disk`] is the real medium; the tests have one that forgets unsynced data,
//! tears writes, and fails or stops at any chosen call.
//!
//! The assumptions, and there are no others:
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
mod mode;
mod trusted;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sde::bulk::try_zeroed;

pub use disk::Disk;
pub(crate) use mode::Permissions;
pub(crate) use trusted::Trusted;

/// The properties of a name, found without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The kind of file.
    pub kind: FileKind,
    /// The length in bytes, of a file.
    pub length: u64,
    /// The file's identity: names of one file have the same, different files never, as long as both exist. 0 if the
    /// medium has none.
    pub id: u64,
    /// When it was last written to, if the medium knows.
    pub written_at: Option<SystemTime>,
    /// Whose it is, if the medium knows.
    pub owner: Option<Owner>,
    /// Whether the name is a symbolic link. The other properties are those of its target, if that exists.
    pub link: bool,
}

/// Whose a file or directory is, and who may do what with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
    /// The last twelve bits of the mode; the permissions are the last nine.
    pub mode: u32,
}

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: opening it may never return.
    Other,
}

/// Whether a file is gone. A network file system may report a stale handle for one that another process removed.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle
    )
}

/// The canonical path of a directory, even if it does not exist yet.
pub(crate) fn real_path(vfs: &dyn Vfs, dir: &Path) -> PathBuf {
    let of = |there: &Path| {
        let real = vfs.real_path(there).ok()?;
        Some(real.join(dir.strip_prefix(there).ok()?))
    };
    dir.ancestors()
        .find_map(of)
        .unwrap_or_else(|| dir.to_owned())
}

/// The names of a medium, and its files. See the [module](self) for the assumptions.
pub trait Vfs: Send + Sync + fmt::Debug {
    /// The properties of a name; `None` if it does not exist.
    ///
    /// # Errors
    /// If they can't be found out.
    fn look(&self, path: &Path) -> io::Result<Option<Found>>;

    /// The length of a file, as [`look`](Self::look) gives it, and nothing else: on some file systems asking for
    /// the times of a file slows its next sync.
    ///
    /// # Errors
    /// If it can't be found out.
    fn length_of(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self.look(path)?.map(|found| found.length))
    }

    /// The canonical path, without links and `..`. A medium without these gives the path itself, as this does.
    ///
    /// # Errors
    /// If nothing is there, or the path can't be found out.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// The target of a symbolic link, as it is written; `None` for other names. A medium without links always gives
    /// `None`, as this does.
    ///
    /// # Errors
    /// If it can't be found out.
    fn link_target(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let _ = path;
        Ok(None)
    }

    /// The names in a directory, in any order.
    ///
    /// # Errors
    /// If it can't be listed.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Makes a directory that only its owner can enter; in the [directory of a group](Owner::shared_with) its members can.
    /// Its parent must be there.
    ///
    /// # Errors
    /// If it can't be made; `AlreadyExists` if the name is taken.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes a file that only its owner can read, to be written to; in the directory of a group its members can read it.
    ///
    /// # Errors
    /// If it can't be made; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// If it can't be opened, or is no regular file.
    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;

    /// Renames a file within its directory. It is an error if the new name is taken: of several processes that
    /// publish one name, one succeeds.
    ///
    /// # Errors
    /// If it can't be renamed; `AlreadyExists` if the new name is taken. On a shared file system the rename may
    /// have happened despite the error: look first.
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name in its directory, under the conditions of [`publish`](Self::publish). A medium
    /// without hard links gives an error, as this does.
    ///
    /// # Errors
    /// As `publish`; `Unsupported` without hard links.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file.
    ///
    /// # Errors
    /// If it can't be removed.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// If it can't be removed, or is not empty.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable; [`sync_dir`](Self#method.sync_dir) calls it.
    ///
    /// # Errors
    /// If that is not certain.
    fn sync_dir_for(&self, dir: &Path, site: Site) -> io::Result<()>;

    /// The user of this process, who would own a new store, if the medium knows users.
    fn user(&self) -> Option<u32> {
        None
    }

    /// The groups of this process, if the medium knows groups.
    fn groups(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The owner of a segment, if nothing that he may have written is to be read. Mostly everything is read.
    fn untrusted(&self, found: &Found) -> Option<u32> {
        let _ = found;
        None
    }

    /// The time of day, from which ages are counted.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Takes a lock that the system releases however its holder ends; `None` if another holds it. Correctness must
    /// not depend on it: on some file systems everybody gets it.
    ///
    /// # Errors
    /// If there are no locks, or the file can't be opened.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>>;
}

/// An open file.
pub trait VfsFile: Send + Sync {
    /// Writes all slices, one after the other, from a place on, which must be in the file or at its end.
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

    /// Fills the buffer from a position on. Threads may read at the same time.
    ///
    /// # Errors
    /// If it can't be read; `UnexpectedEof` if the file ends before.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;

    /// Fills the buffer from a position on, as far as the file reaches; gives the number of bytes.
    ///
    /// # Errors
    /// If it can't be read.
    fn read_up_to(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// The length of the file.
    ///
    /// # Errors
    /// If it can't be found out.
    fn length(&self) -> io::Result<u64>;

    /// Whose it is, if the medium knows.
    fn owner(&self) -> Option<Owner> {
        None
    }

    /// The first place from `at` on that may have data: before it are only zeros that the medium does not store.
    /// `None` if there is no data up to the end. A medium that can't tell gives `at`, as this does.
    ///
    /// # Errors
    /// If it can't be found out.
    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        Ok(Some(at))
    }

    /// Takes the lock of [`Vfs::try_lock`] on this file while it is open. Success is not reported, since nothing
    /// may depend on it.
    fn lock_while_open(&self);
}

/// The place in the source that asks for a sync.
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

/// Makes a directory with all its parents, durably.
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
    // The maker may have been killed before it synced the name.
    match vfs.sync_dir(parent) {
        Err(error) if was_there && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        outcome => outcome,
    }
}

fn is_dir(vfs: &dyn Vfs, path: &Path) -> io::Result<bool> {
    let found = vfs.look(path)?;
    Ok(found.is_some_and(|found| found.kind == FileKind::Directory))
}

/// Bytes of a file that is known to have them.
pub(crate) fn read_bytes(file: &dyn VfsFile, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = room_for(length)?;
    file.read_at(&mut bytes, at)?;
    Ok(bytes)
}

/// Bytes of a file that is known to have them, and their digest: each piece is hashed while it is in the processor's
/// caches, and the system reads the next one meanwhile.
pub(crate) fn read_hashed(
    file: &dyn VfsFile,
    mut at: u64,
    length: u64,
) -> io::Result<(Vec<u8>, blake3::Hash)> {
    let mut bytes = room_for(length)?;
    let mut hasher = blake3::Hasher::new();
    for piece in bytes.chunks_mut(HASHED) {
        file.read_at(piece, at)?;
        hasher.update(piece);
        at += piece.len() as u64;
    }
    Ok((bytes, hasher.finalize()))
}

fn room_for(length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    try_zeroed(length).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// The number of bytes that are read and hashed at once.
const HASHED: usize = 256 << 10;

/// The number of bytes read at once.
const PIECE: u64 = 1 << 20;

/// Passes bytes of a file to `take`, in pieces.
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
