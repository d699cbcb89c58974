//! Directories that are the user's alone.
//!
//! What is kept is code, and whoever can write to the directory above the store can put another store
//! in its place. The store looks at itself; this looks at what is above and beside it.

use std::io;
use std::path::Path;

use sde_archives::vfs::{FileKind, Found, Vfs};

/// Whether a link may lead there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// The user named it, by whatever way he comes there.
    Followed,
    /// We made it.
    Refused,
}

/// Makes a directory for this user alone if there is none, with those above it.
///
/// # Errors
/// If it can't be made; if what is there is not a directory, or not his alone.
pub(super) fn make(medium: &dyn Vfs, dir: &Path, links: Links) -> io::Result<()> {
    if medium.look(dir)?.is_none() {
        if let Some(above) = dir.parent().filter(|above| !above.as_os_str().is_empty()) {
            make_above(medium, above)?;
        }
        made(medium.make_dir(dir))?;
    }
    check(medium, dir, links)
}

/// The same, but for whose those are that are there: who may write to them is their owners' affair.
fn make_above(medium: &dyn Vfs, dir: &Path) -> io::Result<()> {
    if medium.look(dir)?.is_some() {
        return Ok(());
    }
    if let Some(above) = dir.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_above(medium, above)?;
    }
    made(medium.make_dir(dir))
}

/// Another process may have made it meanwhile.
fn made(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome,
    }
}

/// Whether files can be made in a directory: one is, and removed.
///
/// # Errors
/// If not.
pub(super) fn try_to_write(medium: &dyn Vfs, dir: &Path) -> io::Result<()> {
    let unique = format!(
        ".try-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let file = dir.join(unique);
    made(medium.create(&file).map(drop))?;
    medium.remove(&file)
}

/// Whether the system says that nothing can be written, and not this crate that nothing should be.
pub(super) fn is_of_writing(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let is_the_systems = error.raw_os_error().is_some();
    is_the_systems && matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

/// Refuses a directory that is not this user's alone. One that is not there is no matter.
///
/// # Errors
/// If it is not a directory, or not his alone, or can't be looked at.
pub(super) fn check(medium: &dyn Vfs, dir: &Path, links: Links) -> io::Result<()> {
    let Some(found) = medium.look(dir)? else {
        return Ok(());
    };
    match refusal(medium, &found, links) {
        Some(why) => {
            let why = format!("{}: {why}", dir.display());
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
        None => Ok(()),
    }
}

fn refusal(medium: &dyn Vfs, found: &Found, links: Links) -> Option<String> {
    const ADVICE: &str =
        "what is kept there is code; make it yours alone (`chmod go-w`), or name another directory";
    if found.link && links == Links::Refused {
        return Some(format!("it is a link; {ADVICE}"));
    }
    if found.kind != FileKind::Directory {
        return Some("it is not a directory".to_owned());
    }
    let (owner, mode) = found.owner?;
    if medium.user().is_some_and(|user| user != owner) {
        return Some(format!("it belongs to user {owner}; {ADVICE}"));
    }
    (mode & 0o022 != 0).then(|| format!("others can write to it; {ADVICE}"))
}
