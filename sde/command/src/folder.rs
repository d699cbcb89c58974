//! The folder of one run, and what is left of those whose process was killed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::process::strays::Marks;

/// What the names of runs' folders begin with.
pub(crate) const PREFIX: &str = "sde-run-";
const LOCK: &str = "lock";
/// What the lock is called before it is taken.
const UNLOCKED: &str = "lock.new";
/// The folders of a run; all else stays until the run's folder goes.
const FOLDERS: [&str; 3] = ["work", "home", "tmp"];
/// A folder without a lock is one that is being made, unless it is older than this.
const MAKING: Duration = Duration::from_secs(3600);

/// A folder for one run, locked as long as somebody runs in it. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    lock: File,
}

impl RunFolder {
    /// Makes a folder in `scratch`, after removing those that killed runs left there.
    pub(crate) fn make(scratch: &Path) -> io::Result<Self> {
        // What can't be removed now is in nobody's way.
        let _ = sweep(scratch);
        let permissions = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(permissions)
            .tempdir_in(scratch)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.path().join(UNLOCKED))?;
        lock.write_all(host().as_bytes())?;
        match lock.try_lock() {
            // Without locks nobody finds the lock free, and nothing is removed.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            other => other?,
        }
        // Under its name the lock is taken: whoever finds it free knows that its run is over.
        fs::rename(folder.path().join(UNLOCKED), folder.path().join(LOCK))?;
        for name in FOLDERS {
            DirBuilder::new()
                .mode(0o700)
                .create(folder.path().join(name))?;
        }
        Ok(Self {
            path: folder.keep(),
            lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the program runs.
    pub(crate) fn work(&self) -> PathBuf {
        self.path.join(FOLDERS[0])
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path.join(FOLDERS[1])
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.path.join(FOLDERS[2])
    }

    /// The open file whose lock this process has.
    pub(crate) fn lock(&self) -> &File {
        &self.lock
    }

    /// Removes the folders of the run; what else is in the folder stays until it is dropped.
    pub(crate) fn clear(&self) -> io::Result<()> {
        FOLDERS
            .iter()
            .try_for_each(|name| remove(&self.path.join(name)))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // The program may have changed that too.
        let _ = fs::set_permissions(&self.path, Permissions::from_mode(0o700));
        // What stays has a lock that is free, and the next sweep tries again.
        let _ = remove_run(&self.path);
    }
}

/// What [`sweep`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// The number of folders that it removed.
    pub folders: usize,
    /// The processes of such runs that it killed, as `name (pid)`.
    pub ended: Vec<String>,
}

/// Removes the folders of runs that were killed, and kills what still runs of them.
///
/// `sde`'s own process has another one end the program if it is killed. If both were, descendants of the program may
/// live on: they are known by a `HOME` or `TMPDIR` in the folder.
///
/// A folder goes if it is in `scratch` itself, this user's, of this host, and nobody has its lock. On a file
/// system whose locks are not seen on other hosts, a run of another host would look like one that is over.
///
/// # Errors
/// `scratch` can't be read. A folder that can't be removed is left, and not counted.
pub fn sweep(scratch: &Path) -> io::Result<Swept> {
    let mut swept = Swept::default();
    for entry in fs::read_dir(scratch)?.flatten() {
        let folder = entry.path();
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // The lock is held until the folder is gone.
        if let Ok(Some(_lock)) = abandoned(&folder) {
            swept.ended.extend(Marks::new(&folder).kill());
            swept.folders += usize::from(remove_run(&folder).is_ok());
        }
    }
    Ok(swept)
}

/// The lock of a run that is over, taken: nobody else removes the folder meanwhile. A folder without a lock is no run's,
/// whatever its name: it goes only if it is empty, since a kill while it was made left it so.
fn abandoned(folder: &Path) -> io::Result<Option<File>> {
    let metadata = folder.symlink_metadata()?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let path = folder.join(LOCK);
    // Whatever it is: a link is not followed, and a pipe not waited for.
    let careful = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
        .bits()
        .cast_signed();
    let lock = match OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(careful)
        .open(&path)
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = SystemTime::now()
                .duration_since(metadata.modified()?)
                .unwrap_or_default();
            if age > MAKING {
                let _ = fs::remove_file(folder.join(UNLOCKED));
                let _ = fs::remove_dir(folder);
            }
            return Ok(None);
        }
        other => other?,
    };
    let mut made_on = String::new();
    (&lock).take(256).read_to_string(&mut made_on)?;
    if made_on != host() || lock.try_lock().is_err() {
        return Ok(None);
    }
    // Another sweep may have removed it before the lock was taken here.
    let same = path
        .symlink_metadata()
        .is_ok_and(|now| lock.metadata().is_ok_and(|taken| taken.ino() == now.ino()));
    Ok(same.then_some(lock))
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default()
}

/// Removes a run's folder, the lock last: a removal that is cut short is gone on with by the next sweep.
fn remove_run(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            remove(&entry.path())?;
        }
    }
    match fs::remove_file(folder.join(LOCK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_dir(folder),
    }
}

/// Removes a file or a folder, whatever the modes of the folders in it. Links are removed, not followed.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if !metadata.is_dir() => return fs::remove_file(path),
        Ok(_) => fs::remove_dir_all(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

/// Lets this user do everything in a folder and those below it. Deep folders are no deep recursion.
fn open_up(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let mode = folder.symlink_metadata()?.permissions().mode();
        fs::set_permissions(&folder, Permissions::from_mode(mode | 0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
