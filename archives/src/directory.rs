//! Whether a directory is a store, and making one.
//!
//! A person may name the wrong directory. Whatever is in it must be left exactly
//! as it is, so a directory counts as a store only by its `FORMAT` file, and one
//! becomes a store only if there is nothing in it.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use sde::ArchiveError;

use crate::disk;
use crate::id::FileId;

/// The version of the format that this crate writes and reads.
pub(crate) const VERSION: u32 = 1;

const FORMAT: &str = "FORMAT";
const FORMAT_START: &str = "SDE store, format ";
/// How a file is called before it takes its name: what a crash may leave behind.
const UNFINISHED: &str = ".unfinished";

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum There {
    /// A store that this crate reads.
    Store,
    /// Nothing, or a directory with nothing in it.
    Nothing,
}

/// Looks without changing anything.
pub(crate) fn look(dir: &Path) -> Result<There, ArchiveError> {
    match std::fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(There::Nothing),
        Err(error) => return Err(cannot_open(dir, "looking at it", error)),
        Ok(found) if !found.is_dir() => {
            return Err(not_a_store(
                dir,
                "it is a file; name a directory that is a store, or one that does not exist yet",
            ));
        }
        Ok(_) => {}
    }
    if has_format(dir)? {
        return Ok(There::Store);
    }
    let names = std::fs::read_dir(dir).map_err(|e| cannot_open(dir, "listing it", e))?;
    for name in names {
        let name = name
            .map_err(|e| cannot_open(dir, "listing it", e))?
            .file_name();
        if !name.as_encoded_bytes().ends_with(UNFINISHED.as_bytes()) {
            // Another process may just be making it a store.
            return match has_format(dir)? {
                true => Ok(There::Store),
                false => Err(not_a_store(
                    dir,
                    "it has other things in it and no FORMAT file; name a store, an empty directory, or one that does not exist yet",
                )),
            };
        }
    }
    Ok(There::Nothing)
}

/// Makes an empty or missing directory a store.
pub(crate) fn create(dir: &Path) -> Result<(), ArchiveError> {
    disk::make_private_dir(dir).map_err(|e| cannot_open(dir, "making the directory", e))?;
    let text = format!(
        "{FORMAT_START}{VERSION}\n\
         Checkpoints and archives of the SDE framework. What each file holds is\n\
         described in the README of the crate sde-archives.\n"
    );
    let made = with_unfinished(dir, |path| {
        let mut file = disk::create_private_file(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        // Of two processes that do this at once either may win: they write the same.
        std::fs::rename(path, dir.join(FORMAT))?;
        disk::sync_dir(dir)
    });
    made.map_err(|e| cannot_open(dir, "writing its FORMAT file", e))
}

/// Finds out now whether files can be made here, not when there is a result to
/// lose.
pub(crate) fn probe(dir: &Path) -> Result<(), ArchiveError> {
    with_unfinished(dir, |path| {
        disk::create_private_file(path)?;
        std::fs::remove_file(path)
    })
    .map_err(|e| cannot_open(dir, "making a file in it", e))
}

/// Does something with a new name; cleans up if that fails.
fn with_unfinished(dir: &Path, job: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let path = dir.join(format!("{}{UNFINISHED}", FileId::new()));
    let outcome = job(&path);
    if outcome.is_err() {
        // What is left if this fails too does no harm.
        let _ = std::fs::remove_file(&path);
    }
    outcome
}

/// Whether there is a `FORMAT` file; an error if it is not of this version.
fn has_format(dir: &Path) -> Result<bool, ArchiveError> {
    let path = dir.join(FORMAT);
    let mut text = String::new();
    let read = disk::open_file(&path).and_then(|file| file.take(4096).read_to_string(&mut text));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
            ) =>
        {
            return Err(not_a_store(dir, "its FORMAT is not a text file"));
        }
        Err(error) => return Err(cannot_open(dir, "reading its FORMAT file", error)),
        Ok(_) => {}
    }
    let first_line = text.lines().next().unwrap_or_default();
    let version = first_line
        .strip_prefix(FORMAT_START)
        .and_then(|version| version.parse::<u32>().ok());
    match version {
        Some(VERSION) => Ok(true),
        Some(other) => Err(not_a_store(
            dir,
            format!(
                "it has format {other}, this program reads format {VERSION}; use the release of SDE that wrote it, or another directory"
            ),
        )),
        None => Err(not_a_store(
            dir,
            format!(
                "its FORMAT file does not begin with \"{FORMAT_START}{VERSION}\"; if it is a store whose FORMAT file was damaged, write that line into it"
            ),
        )),
    }
}

pub(crate) fn not_a_store(dir: &Path, why: impl Into<String>) -> ArchiveError {
    ArchiveError::NotAStore {
        path: dir.to_owned(),
        why: why.into(),
    }
}

pub(crate) fn cannot_open(dir: &Path, doing: &'static str, source: io::Error) -> ArchiveError {
    let advice = match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a directory you may write to, or open it with `open_read_only`"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room, or name a directory on another disk"
        }
        _ => "name another directory",
    };
    ArchiveError::Open {
        path: dir.to_owned(),
        doing,
        source: Arc::new(source),
        advice,
    }
}
