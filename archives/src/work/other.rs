//! Whether the process lives that an announcement is of.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use sde::Holder;

use super::lease::{self, FileId, Locked};

/// What there is under a name.
pub(super) enum HolderState {
    Nothing,
    /// A process lives that holds it, as far as can be told.
    Alive(Holder),
    Dead(Dead),
}

/// What a dead process has left. As long as this is there no other process of this machine finds it dead.
pub(super) struct Dead {
    id: FileId,
    _locked: File,
}

impl Dead {
    /// Removes a name of it, unless another has taken the name over.
    pub(super) fn remove(&self, path: &Path) {
        if id_of(path).ok() == Some(self.id) {
            let _ = fs::remove_file(path);
        }
    }
}

/// How much of a lease is read.
const MOST: u64 = 1024;

/// Which file has this name.
pub(super) fn id_of(path: &Path) -> io::Result<FileId> {
    Ok(lease::id(&fs::symlink_metadata(path)?))
}

/// Looks at an announcement, or at a lease. `now` is the time of the file system.
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
    if lease::is_own(lease::id(&found)) {
        return Ok(HolderState::Alive(holder_of(&lease::this()).0));
    }
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    options.read(true).write(true).custom_flags(flags as i32);
    let file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(HolderState::Nothing),
        file => file?,
    };
    let found = file.metadata()?;
    let id = lease::id(&found);
    // This process may have announced it between the two.
    let Some(file) = lease::keep_if_own(file, id) else {
        return Ok(HolderState::Alive(holder_of(&lease::this()).0));
    };
    let locked = lease::try_lock(&file);
    let mut text = String::new();
    // What is no text says of no machine that it is this one.
    let _ = (&file).take(MOST).read_to_string(&mut text);
    let (holder, is_here) = holder_of(&text);
    let is_dead = match (locked, is_here) {
        (Locked::Taken, true) => true,
        // Stopped, or on a machine that may have its own locks.
        _ => {
            let age = now()?.duration_since(found.modified()?);
            // One that is as far ahead is of a clock that was: it would be alive until then.
            age.unwrap_or_else(|ahead| ahead.duration()) > duration
        }
    };
    Ok(match is_dead {
        true => HolderState::Dead(Dead { id, _locked: file }),
        false => HolderState::Alive(holder),
    })
}

/// Who a lease says that it is of, and whether that is on this machine.
fn holder_of(text: &str) -> (Holder, bool) {
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    let host = next().chars().filter(|c| !c.is_control()).collect();
    let process = next().parse().unwrap_or(0);
    (Holder { host, process }, next() == lease::machine())
}
