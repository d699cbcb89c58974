//! What a command uses where it lies: files, folders and programs of `--uses`.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use sde_engine::key::Digest;

use crate::builder::Command;
use crate::code::is_executable;
use crate::error::CommandError;
use crate::program::{self, Digests, Part};
use crate::tree;

/// In place of a digest: nothing is there.
pub(crate) const ABSENT: Digest = Digest::from_bytes([0; 32]);

/// A file that is no program, or a folder, that `--uses` names.
pub(crate) fn read_only(
    used: &str,
    base: &Path,
    digests: &Digests,
) -> Result<Option<Part>, CommandError> {
    let optional = used.strip_prefix('?');
    let path = base.join(optional.unwrap_or(used));
    let is_absent = optional.is_some()
        && path.symlink_metadata().is_err_and(|error| {
            [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind())
        });
    let digest = if is_absent {
        ABSENT
    } else if path.is_dir() {
        tree::digest(&path)
            .map_err(|error| CommandError::tree(format!("reading {used}, which it uses"), error))?
    } else if optional.is_none() && (is_name(used, base) || is_executable(&path)) {
        return Ok(None);
    } else {
        digests
            .of(&path)
            .map_err(|error| CommandError::file("reading", &path, error))?
    };
    let name = format!("uses {used}");
    Ok(Some(Part { name, digest, path }))
}

/// The parts of a program that `--uses` names.
pub(crate) fn started(
    used: &str,
    base: &Path,
    search: &OsString,
    environment: &[(OsString, OsString)],
    digests: &Digests,
) -> Result<Vec<Part>, CommandError> {
    let path = match is_name(used, base) {
        true => program::find(used.as_ref(), base, search),
        false => Ok(base.join(used)),
    };
    let read = path.and_then(|path| program::read(&path, search, environment, digests));
    let failed = |error| CommandError::program(format!("reading {used}, which it uses"), error);
    let mut parts = read.map_err(failed)?.parts;
    if let Some(own) = parts.first_mut() {
        own.name = String::new();
    }
    Ok(parts.into_iter().map(|part| part.of(used)).collect())
}

/// Whether it is to be looked for in `PATH`: it is no path, and nothing here has that name.
pub(crate) fn is_name(used: &str, base: &Path) -> bool {
    !used.contains('/') && !used.starts_with('?') && !base.join(used).exists()
}

/// A name that is both a program's and that of something here says nothing.
pub(crate) fn check_names(
    command: &Command,
    base: &Path,
    callers: &OsString,
) -> Result<(), CommandError> {
    let is_both = |used: &&String| {
        let is_here = !used.contains('/') && base.join(used).exists();
        is_here && program::find(used.as_ref(), base, callers).is_ok()
    };
    match command.uses.iter().find(is_both) {
        None => Ok(()),
        Some(used) => {
            let why = format!(
                "PATH has a program of that name, and the folder something too: --uses ./{used} is the latter, an absolute path the former"
            );
            Err(CommandError::refused(format!("--uses {used}"), why))
        }
    }
}
