//! Opening a store to read it, and telling what could not be read of it.

use std::io::ErrorKind;
use std::path::Path;

use sde::archiver::ArchiveError;
use sde_archives::inspect::{Inspection, Snapshot};
use sde_archives::vfs::{Disk, Vfs};

use crate::error::Error;

/// Why a store can't be opened for reading; the library's texts are for programs that may make a store.
pub fn not_opened(path: &Path, error: ArchiveError) -> Error {
    let why = match error {
        ArchiveError::Open { cause, doing, .. } => format!("{doing} failed: {cause}"),
        ArchiveError::NotAStore { .. } if !path.exists() => "it does not exist".to_owned(),
        ArchiveError::NotAStore { .. } if !path.is_dir() => "it is a file".to_owned(),
        ArchiveError::NotAStore { .. } if !path.join("FORMAT").exists() => {
            "there is nothing of a store in it, or its FORMAT file is lost".to_owned()
        }
        error => return error.into(),
    };
    let is_variable = std::env::var_os("SDE_STORE").is_some_and(|name| name == *path);
    let by = if is_variable {
        ", which SDE_STORE names,"
    } else {
        ""
    };
    let path = path.display();
    Error::told(format!(
        "{path}{by} is not a store that can be opened: {why}; name the directory that a program has as its store"
    ))
}

/// Opens a store and reads from it; again if files are removed meanwhile.
///
/// # Errors
///
/// The directory is no store, or can't be read. What `what` refuses is within the result, as the store is told of too.
pub fn read<T, E: From<Error>>(
    path: &Path,
    what: impl FnMut(&mut Snapshot) -> Result<T, E>,
) -> Result<(Snapshot, Result<T, E>), E> {
    let store = Inspection::open(path).map_err(|error| not_opened(path, error))?;
    store.read(what).map_err(|error| Error::from(error).into())
}

/// What a reader of this store is to be told: files that went meanwhile, what is damaged, in one line, and what this
/// release can't read.
pub fn notes(store: &Snapshot) -> Vec<String> {
    let gone = store.gone.then(|| GONE.to_owned());
    gone.into_iter().chain(damage(store)).collect()
}

/// What is damaged in a store, in one line, and what this release can't read of it.
pub fn damage(store: &Snapshot) -> Vec<String> {
    let mut told = Vec::new();
    let mut warn = |text: String| told.push(text);
    for (path, version) in store.other_formats() {
        warn(format!("left out: {}", of_format(&path, version)));
    }
    if store.inspection().format_damage().is_some() {
        warn(format!("this is a damaged store: {NO_FORMAT}"));
    }
    let path = store.inspection().path();
    let all = store.damages.iter();
    let (unreadable, damaged): (Vec<_>, Vec<_>) = all.partition(|one| is_refused(path, &one.path));
    if let Some(first) = unreadable.first() {
        warn(format!(
            "left out, as this user may not read it: {}; `sde verify` says who can mend that",
            first.path
        ));
    }
    if let Some(first) = damaged.first() {
        let more = match damaged.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let entry = first.key.map(|key| format!(" (entry {})", key.short()));
        let (path, at, entry) = (&first.path, first.place.start, entry.unwrap_or_default());
        warn(format!(
            "left out, as it is damaged: {path} at byte {at}{entry}{more}; `sde verify` lists all"
        ));
    }
    told
}

/// The note on a store from which files went while it was read.
pub const GONE: &str = "the store was read several times, and each time files were removed meanwhile: some entries may be missing";

/// Whether this user may not read a file of a store. That is found out by trying: permissions are more than a mode.
/// The medium opens regular files only: opening a pipe would never return.
pub fn is_refused(store: &Path, file: &str) -> bool {
    let opened = Disk.open(&store.join(file));
    opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// The message on a store without its `FORMAT` file.
pub const NO_FORMAT: &str =
    "its FORMAT file is lost or damaged; that of any store of the same release does";

/// The message on a file of another format.
pub fn of_format(path: &str, version: u32) -> String {
    format!(
        "{path} has format {version}, which this program does not read; use the release of SDE that \
         wrote it"
    )
}
