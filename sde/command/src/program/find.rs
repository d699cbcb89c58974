//! Where a program is: what a shell would find.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::ProgramError;

/// Finds `name`: one with a `/` relative to `folder`, else the first executable regular file of that name in
/// `search`, a PATH whose relative entries are relative to `folder`.
///
/// The path is absolute, and its links are not resolved.
pub(crate) fn find(name: &OsStr, folder: &Path, search: &OsStr) -> Result<PathBuf, ProgramError> {
    let not_found = |searched: &OsStr| ProgramError::NotFound {
        name: name.to_owned(),
        searched: searched.to_owned(),
    };
    if name.as_bytes().contains(&b'/') {
        let path = absolute(&folder.join(name))?;
        return match check(&path)? {
            Found::Program => Ok(path),
            Found::Other => Err(ProgramError::NotAFile { path }),
            Found::NotExecutable => Err(ProgramError::NotExecutable { path }),
            Found::Nothing => Err(not_found(folder.as_os_str())),
        };
    }
    let mut refused = None;
    for entry in std::env::split_paths(search) {
        let path = absolute(&folder.join(entry).join(name))?;
        match check(&path) {
            Ok(Found::Program) => return Ok(path),
            Ok(Found::NotExecutable) => refused = refused.or(Some(path)),
            // A folder that can't be read is passed over by `execvp` too.
            Ok(Found::Other | Found::Nothing) | Err(_) => {}
        }
    }
    Err(refused.map_or_else(
        || not_found(search),
        |path| ProgramError::NotExecutable { path },
    ))
}

/// Finds `name` in a PATH, of which only absolute entries are known: the run has another current folder.
pub(super) fn find_absolute(name: &OsStr, search: &OsStr) -> Result<PathBuf, ProgramError> {
    let entries = std::env::split_paths(search).filter(|entry| entry.is_absolute());
    let absolute: Vec<OsString> = entries.map(PathBuf::into_os_string).collect();
    find(name, Path::new("/"), &absolute.join(OsStr::new(":")))
}

enum Found {
    Program,
    NotExecutable,
    Other,
    Nothing,
}

fn check(path: &Path) -> Result<Found, ProgramError> {
    match path.metadata() {
        Ok(metadata) if !metadata.is_file() => Ok(Found::Other),
        Ok(_) if rustix::fs::access(path, Access::EXEC_OK).is_ok() => Ok(Found::Program),
        Ok(_) => Ok(Found::NotExecutable),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(Found::Nothing),
            _ => Err(read_error(path, error)),
        },
    }
}

fn absolute(path: &Path) -> Result<PathBuf, ProgramError> {
    std::path::absolute(path).map_err(|error| read_error(path, error))
}

pub(super) fn read_error(path: &Path, source: io::Error) -> ProgramError {
    ProgramError::Read {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
