//! The users whose code this user runs.
//!
//! In a group's store a member can save wrong values. What would be run when it is read, as a compiled program is, counts only if this
//! user or one of these has saved it: see [`runs_results`](crate::StoreOptions::runs_results).
//!
//! They stand in this user's own file, `$XDG_CONFIG_HOME/sde/trusted` or `~/.config/sde/trusted`, the number of a user on each line.
//! Nothing in a store, and no other user, can add to it. `sde trust` shows and changes it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sde::archiver::ArchiveError;

use crate::format::id::UniqueId;

/// The longest file that is read.
const LONGEST: u64 = 1 << 16;

/// The file of the list; `None` if the environment names neither a home nor a folder for settings.
fn file() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let settings = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")));
    let settings = settings.filter(|settings| settings.is_absolute())?;
    Some(settings.join("sde/trusted"))
}

/// The numbers of the users who are trusted; none without a file.
///
/// ```
/// let users = sde_archives::trusted::users();
/// # let _ = users;
/// ```
///
/// # Errors
/// If the file can't be read, is another user's, can be written to by others, or has something else in it.
pub fn users() -> Result<Vec<u32>, ArchiveError> {
    let Some(path) = file() else {
        return Ok(Vec::new());
    };
    let failed = |error| ArchiveError::io("reading", &path, error);
    let read = |path: &Path| -> io::Result<String> {
        check(&File::open(path.parent().unwrap_or(path))?)?;
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(path)?;
        check(&file)?;
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = match read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(failed)?,
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let number = |line: &str| {
        line.trim().parse().map_err(|_| {
            let why = format!("{line:?} is no number of a user; remove that line");
            failed(io::Error::new(ErrorKind::InvalidData, why))
        })
    };
    lines.map(number).collect()
}

/// Replaces the list.
///
/// # Errors
/// If there is no place for the file, or it can't be written.
pub fn set_users(users: &[u32]) -> Result<(), ArchiveError> {
    let path = file().ok_or_else(|| {
        let why = "there is neither XDG_CONFIG_HOME nor HOME, so the users who are trusted can't be kept; set one";
        ArchiveError::other(why)
    })?;
    let folder = path.parent().unwrap_or(&path);
    let write = || -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        check(&File::open(folder)?)?;
        let beside = folder.join(format!("{}.new", UniqueId::new()));
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        let lines: String = users.iter().map(|user| format!("{user}\n")).collect();
        let written = file
            .write_all(lines.as_bytes())
            .and_then(|()| file.sync_all());
        written
            .and_then(|()| fs::rename(&beside, &path))
            .inspect_err(|_| {
                // The first error is the one to report.
                let _ = fs::remove_file(&beside);
            })
    };
    write().map_err(|error| ArchiveError::io("writing", &path, error))
}

/// Refuses what others can change.
fn check(file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    match is_own && found.mode() & 0o022 == 0 && (found.is_dir() || found.is_file()) {
        true => Ok(()),
        false => Err(io::Error::other(
            "others can change it or its folder, and it says whose code you run; make both yours alone (`chmod go-w`)",
        )),
    }
}
