//! Whether a file is unchanged, mostly told without reading it.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{OutputFile, regular};
use crate::key::{Digest, digest_file};
use crate::sync::lock;

/// The identity and the digest of a file that was read.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    identity: Identity,
    digest: Digest,
}

/// Numbers that change whenever a file is written to or replaced: device, file number and length; the times of writing
/// and of changing.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity([u64; 3], [i64; 4]);

/// File systems stamp changes with times as coarse as this. A file that was changed more recently may be changed once more
/// and keep its stamp.
const COARSE: Duration = Duration::from_secs(2);

impl Identity {
    /// `None` if the file was changed too recently to be known by it, or the system has nothing of the kind.
    #[cfg(unix)]
    fn of(about: &Metadata, now: SystemTime) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let (seconds, nanos) = (about.ctime(), about.ctime_nsec());
        let changed = Duration::new(seconds.try_into().ok()?, nanos.try_into().ok()?);
        let since = now.duration_since(SystemTime::UNIX_EPOCH + changed).ok()?;
        let numbers = [about.dev(), about.ino(), about.len()];
        let times = [about.mtime(), about.mtime_nsec(), seconds, nanos];
        (since > COARSE).then_some(Self(numbers, times))
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata, _: SystemTime) -> Option<Self> {
        None
    }
}

impl Seen {
    /// Reads a file: its length, its digest, and its identity with the digest if that can be relied on.
    pub(super) fn read(path: &Path) -> io::Result<(u64, Digest, Option<Self>)> {
        let now = SystemTime::now();
        let identity = |about: &Metadata| Identity::of(about, now);
        let before = identity(&fs::symlink_metadata(path)?);
        let (length, digest) = digest_file(path)?;
        let after = identity(&fs::symlink_metadata(path)?);
        let known = before.filter(|before| after == Some(*before));
        Ok((
            length,
            digest,
            known.map(|identity| Self { identity, digest }),
        ))
    }
}

impl OutputFile {
    /// Whether the file is there and holds what it held when it was described. It is read again only if it may have been written
    /// to since it was read last.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("sde-doc-unchanged-{}", std::process::id()));
    /// std::fs::write(&path, "1 2 3")?;
    /// let file = sde::OutputFile::new(&path)?;
    /// assert!(file.is_unchanged()?);
    /// std::fs::write(&path, "1 2 4")?;
    /// assert!(!file.is_unchanged()?);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If that can't be found out, or something that is no regular file is in its place.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        let (now, path) = (SystemTime::now(), self.path());
        let Some(about) = regular(path)? else {
            return Ok(false);
        };
        if about.len() != self.length() {
            return Ok(false);
        }
        let seen = *lock(&self.0.seen);
        let identity = Identity::of(&about, now);
        if let Some(seen) = seen.filter(|seen| identity == Some(seen.identity)) {
            return Ok(seen.digest == self.digest());
        }
        let (_, digest, seen) = Seen::read(path)?;
        *lock(&self.0.seen) = seen;
        Ok(digest == self.digest())
    }
}
