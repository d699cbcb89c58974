//! The real file system.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{FileKind, Found, Owner, Permissions, Site, Vfs, VfsFile};

/// From this length on, the disk starts on written bytes at once, so that a sync has less left to write.
#[cfg(target_os = "linux")]
const LONG_WRITE: u64 = 1 << 20;

/// The file system of this machine, with the calls of the standard library.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Vfs for Disk {
    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        let own = match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            own => own?,
        };
        if !own.is_symlink() {
            return Ok(Some(as_found(&own, false)));
        }
        match std::fs::metadata(path) {
            // The link leads nowhere, but the name is taken.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(as_found(&own, true))),
            found => found.map(|found| Some(as_found(&found, true))),
        }
    }

    #[cfg(target_os = "linux")]
    fn length_of(&self, path: &Path) -> io::Result<Option<u64>> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
        match statx(CWD, path, AtFlags::empty(), StatxFlags::SIZE) {
            Ok(found) => Ok(Some(found.stx_size)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            // The kernel or a sandbox lacks this call.
            Err(_) => Ok(self.look(path)?.map(|found| found.length)),
        }
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(path)
    }

    fn link_target(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
        match std::fs::read_link(path) {
            Err(error) if matches!(error.kind(), InvalidInput | NotADirectory | NotFound) => {
                Ok(None)
            }
            target => target.map(Some),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect()
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        #[cfg(unix)]
        return Permissions::beside(dir)?.make_dir(dir);
        #[cfg(not(unix))]
        std::fs::create_dir(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        #[cfg(unix)]
        return Ok(Box::new(Permissions::beside(path)?.create(path)?));
        #[cfg(not(unix))]
        Ok(Box::new(
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)?,
        ))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        // Opening a pipe would block.
        if !std::fs::metadata(path)?.is_file() {
            let why = "it is not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Box::new(File::open(path)?))
    }

    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        // Unlike a rename, a link replaces nothing.
        match self.link(from, to) {
            Ok(()) => std::fs::remove_file(from),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                // Without links a rename must do. The names have random numbers, so no other process uses them.
                if std::fs::symlink_metadata(to).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                std::fs::rename(from, to)
            }
            Err(error) => Err(error),
        }
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to).map_err(|error| match has_no_links(&error) {
            true => io::ErrorKind::Unsupported.into(),
            false => error,
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::remove_dir(dir)
    }

    fn sync_dir_for(&self, dir: &Path, _: Site) -> io::Result<()> {
        if !cfg!(unix) {
            return Ok(());
        }
        match File::open(dir)?.sync_all() {
            // Some file systems can't sync directories, and report that.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            outcome => outcome,
        }
    }

    fn user(&self) -> Option<u32> {
        #[cfg(target_os = "linux")]
        return Some(rustix::process::geteuid().as_raw());
        #[cfg(not(target_os = "linux"))]
        None
    }

    #[cfg(target_os = "linux")]
    fn groups(&self) -> Vec<u32> {
        let mut groups = rustix::process::getgroups().unwrap_or_default();
        groups.push(rustix::process::getegid());
        groups
            .into_iter()
            .map(rustix::process::Gid::as_raw)
            .collect()
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        // NFS grants an exclusive lock only to a file opened for writing. That of another of the group can't be.
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path)?,
            file => file?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl VfsFile for File {
    fn write_at(&mut self, slices: &[&[u8]], at: u64) -> io::Result<()> {
        let mut slices: Vec<_> = slices
            .iter()
            .filter(|slice| !slice.is_empty())
            .map(|slice| IoSlice::new(slice))
            .collect();
        #[cfg(target_os = "linux")]
        let length = slices.iter().map(|slice| slice.len() as u64).sum();
        let mut left = &mut slices[..];
        // No other thread moves the file's position meanwhile.
        self.seek(SeekFrom::Start(at))?;
        while !left.is_empty() {
            match self.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        #[cfg(target_os = "linux")]
        if length >= LONG_WRITE {
            // Linux starts to write dirty pages, without waiting. If it refuses, the sync has more to write.
            let length = std::num::NonZeroU64::new(length);
            let _ = rustix::fs::fadvise(self, at, length, rustix::fs::Advice::DontNeed);
        }
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync_for(&mut self, _: Site) -> io::Result<()> {
        // The length is part of what makes the data readable, so it is synced too.
        self.sync_data()
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_exact_at(self, buffer, at);
        #[cfg(not(unix))]
        {
            use std::io::{Read, Seek};
            let mut file = self;
            file.seek(io::SeekFrom::Start(at))?;
            file.read_exact(buffer)
        }
    }

    fn read_up_to(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        #[cfg(unix)]
        {
            let mut read = 0;
            while read < buffer.len() {
                let rest = &mut buffer[read..];
                match std::os::unix::fs::FileExt::read_at(self, rest, at + read as u64) {
                    Ok(0) => break,
                    Ok(more) => read += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(read)
        }
        #[cfg(not(unix))]
        {
            let there = VfsFile::length(self)?.saturating_sub(at);
            let length = buffer
                .len()
                .min(usize::try_from(there).unwrap_or(usize::MAX));
            self.read_at(&mut buffer[..length], at).map(|()| length)
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn owner(&self) -> Option<Owner> {
        self.metadata().ok().as_ref().map(Owner::of)
    }

    #[cfg(target_os = "linux")]
    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        // Moves the file's position, which writers set themselves.
        match rustix::fs::seek(self, rustix::fs::SeekFrom::Data(at)) {
            Ok(place) => Ok(Some(place)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            // The file system does not report holes.
            Err(_) => Ok(Some(at)),
        }
    }

    fn lock_while_open(&self) {
        let _ = self.try_lock();
    }
}

/// Whether the error means that the file system has no hard links.
fn has_no_links(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied | io::ErrorKind::TooManyLinks
    )
}

fn as_found(found: &Metadata, link: bool) -> Found {
    let kind = match found.is_file() {
        true => FileKind::File,
        false if found.is_dir() => FileKind::Directory,
        false => FileKind::Other,
    };
    #[cfg(unix)]
    let (id, owner) = {
        use std::os::unix::fs::MetadataExt;
        (found.ino(), Some(Owner::of(found)))
    };
    #[cfg(not(unix))]
    let (id, owner) = (0, None);
    Found {
        kind,
        length: found.len(),
        id,
        written_at: found.modified().ok(),
        owner,
        link,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn holes_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = Disk.create(&path).unwrap();
        let hole = 1 << 40;
        file.write_at(&[b"before"], 0).unwrap();
        file.write_at(&[b"after"], hole).unwrap();
        let in_hole = hole / 2;
        let found = Disk.open(&path).unwrap().next_data(in_hole).unwrap();
        // Data may begin at the block with the last bytes.
        assert!(
            found.is_some_and(|at| at > in_hole && at <= hole),
            "{found:?}"
        );
        file.cut(hole).unwrap();
        assert_eq!(file.next_data(hole).unwrap(), None);
    }
}
