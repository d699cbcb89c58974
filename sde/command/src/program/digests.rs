//! Digests of programs and libraries, kept so that a file that did not change is not read again.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use sde_engine::key::Digest;

/// A file that changed within this time may change again without another ctime: clocks of file systems are coarse.
const SETTLES: Duration = Duration::from_secs(2);

/// Digests of files, by device, inode, size, mtime and ctime, in a folder of the user.
pub(crate) struct Digests {
    /// None: nothing is kept.
    folder: Option<PathBuf>,
    rehash: bool,
    /// What was read, as it was then.
    read: Mutex<Vec<(PathBuf, Digest)>>,
}

impl Digests {
    /// Keeps digests in the user's cache; with `rehash`, every file is read, and what was kept is replaced.
    pub(crate) fn new(rehash: bool) -> Self {
        let set = |name| std::env::var_os(name).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let home = || set("HOME").filter(|path| path.is_absolute());
        let cache = cache.or_else(|| Some(home()?.join(".cache")));
        Self::in_folder(cache.map(|cache| cache.join("sde/digests")), rehash)
    }

    /// Without a folder that is only the user's, nothing is kept.
    pub(super) fn in_folder(folder: Option<PathBuf>, rehash: bool) -> Self {
        let folder = folder.filter(|folder| {
            // A folder that is there is no failure; any other shows in the check.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            let metadata = folder.symlink_metadata();
            metadata.is_ok_and(|metadata| metadata.is_dir() && only_ours(&metadata))
        });
        Self {
            folder,
            rehash,
            read: Mutex::default(),
        }
    }

    /// The BLAKE3 digest of a regular file's content. A file that changes while it is read twice is an error.
    pub(crate) fn of(&self, path: &Path) -> io::Result<Digest> {
        self.of_at(path, SystemTime::now())
    }

    /// Whether all files that were read are as they were. One that was changed and changed back is not.
    pub(crate) fn check(&self) -> io::Result<()> {
        for (path, before) in self
            .read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            if identity(&open(path)?.metadata()?) != *before {
                let why = format!("{} was changed while the program ran", path.display());
                return Err(io::Error::other(why));
            }
        }
        Ok(())
    }

    fn note(&self, path: &Path, about: &Metadata) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.push((path.to_owned(), identity(about)));
    }

    fn of_at(&self, path: &Path, now: SystemTime) -> io::Result<Digest> {
        // By the open file: over NFS, opening asks the server, and looking at a path may not.
        let before = open(path)?.metadata()?;
        let kept = self
            .folder
            .as_ref()
            .filter(|_| is_settled(before.ctime(), before.ctime_nsec(), now));
        let kept = kept.map(|folder| folder.join(identity(&before).to_string()));
        if let Some(digest) = kept.as_deref().filter(|_| !self.rehash).and_then(load) {
            self.note(path, &before);
            return Ok(digest);
        }
        let (digest, after) = hash_unchanged(path)?;
        self.note(path, &after);
        if let Some(kept) = kept.filter(|_| identity(&before) == identity(&after)) {
            // A folder that can't be written costs time, and nothing else.
            let _ = store(&kept, digest);
        }
        Ok(digest)
    }
}

/// The digest of a regular file's content, and what the file was before and after it was read.
pub(crate) fn hash_unchanged(path: &Path) -> io::Result<(Digest, Metadata)> {
    unchanged(path, |file| {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        Ok(Digest::from(*hasher.finalize().as_bytes()))
    })
}

fn unchanged<T>(
    path: &Path,
    mut read: impl FnMut(&File) -> io::Result<T>,
) -> io::Result<(T, Metadata)> {
    for _ in 0..2 {
        let file = open(path)?;
        let before = file.metadata()?;
        let value = read(&file)?;
        let after = file.metadata()?;
        if identity(&before) == identity(&after) {
            return Ok((value, after));
        }
    }
    Err(io::Error::other("it changes while it is read"))
}

/// Opens a regular file. A pipe does not block, it is refused.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is not a regular file",
    ))
}

fn identity(metadata: &Metadata) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for number in [metadata.dev(), metadata.ino(), metadata.size()] {
        hasher.update(&number.to_le_bytes());
    }
    for number in [
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ] {
        hasher.update(&number.to_le_bytes());
    }
    Digest::from(*hasher.finalize().as_bytes())
}

/// Whether another content would have another ctime.
///
/// Images (squashfs, ISO, ext4 made by `mke2fs -d`) hold whole seconds, often one that the maker of the image chose for
/// all files: two images in turn at one device may differ in content alone. So such a file is always read.
fn is_settled(seconds: i64, nanoseconds: i64, now: SystemTime) -> bool {
    let (Ok(seconds), Ok(nanoseconds @ 1..)) = (u64::try_from(seconds), u32::try_from(nanoseconds))
    else {
        return false;
    };
    let settled = SystemTime::UNIX_EPOCH
        .checked_add(Duration::new(seconds, nanoseconds))
        .and_then(|changed| changed.checked_add(SETTLES));
    settled.is_some_and(|settled| settled <= now)
}

fn only_ours(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// The digest in a file of the cache, unless anything about that file is not as [`store`] leaves it.
fn load(kept: &Path) -> Option<Digest> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(kept)
        .ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || !only_ours(&metadata) {
        return None;
    }
    let mut text = String::new();
    file.take(65).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

/// Writes beside and renames, so a reader finds all 64 digits or nothing.
fn store(kept: &Path, digest: Digest) -> io::Result<()> {
    let folder = kept.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(digest.to_string().as_bytes())?;
    file.persist(kept)?;
    Ok(())
}

#[cfg(test)]
mod tests;
