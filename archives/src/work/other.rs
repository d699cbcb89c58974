//! Tells whether the process that made an announcement lives.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use sde::archiver::Holder;

use super::file::{self, FileId, Locked, id_of};

/// The state of the process behind a name.
pub(super) enum HolderState {
    Nothing,
    /// It lives, as far as can be told.
    Alive(Holder),
    Dead(Dead),
}

/// A dead process's lease. While this lock is held, no other process of this machine finds it dead.
pub(super) struct Dead {
    id: FileId,
    _locked: File,
}

impl Dead {
    /// Removes a name of the lease, unless another process has taken the name over.
    pub(super) fn remove(&self, path: &Path) {
        if id_of(path).ok() == Some(self.id) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The most bytes read of a lease.
const MOST: u64 = 1024;

/// Looks at an announcement, or at a lease. `now` gives the file system's time.
pub(super) fn look(
    path: &Path,
    duration: Duration,
    now: impl FnOnce() -> io::Result<SystemTime>,
) -> io::Result<HolderState> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(HolderState::Nothing),
        found => found?,
    };
    if !found.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    if file::is_own(file::id(&found)) {
        return Ok(HolderState::Alive(holder_of(&file::this()).0));
    }
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    options.read(true).write(true).custom_flags(flags as i32);
    let file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(HolderState::Nothing),
        file => file?,
    };
    let found = file.metadata()?;
    let id = file::id(&found);
    // This process may have announced it between the two checks.
    let Some(file) = file::keep_if_own(file, id) else {
        return Ok(HolderState::Alive(holder_of(&file::this()).0));
    };
    let locked = file::try_lock(&file);
    let text = text_of(&file, MOST);
    let (holder, is_here) = holder_of(&text);
    let is_dead = match (locked, is_here) {
        (Locked::Taken, true) => true,
        // The holder is stopped, or on another machine, whose locks may not be visible here.
        _ => {
            let age = now()?.duration_since(found.modified()?);
            // A time far ahead comes from a wrong clock: the holder must not count as alive until then.
            age.unwrap_or_else(|ahead| ahead.duration()) > duration
        }
    };
    Ok(match is_dead {
        true => HolderState::Dead(Dead { id, _locked: file }),
        false => HolderState::Alive(holder),
    })
}

/// The text of a lease. It may be cut off within a letter; one that can't be read names no machine.
pub(super) fn text_of(file: &File, most: u64) -> String {
    let mut text = Vec::new();
    let _ = file.take(most).read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The holder named in a lease, and whether it is on this machine.
pub(super) fn holder_of(text: &str) -> (Holder, bool) {
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    let host: String = next().chars().filter(|c| !c.is_control()).collect();
    let process = next().parse().unwrap_or(0);
    (Holder::new(host, process), next() == file::machine())
}
