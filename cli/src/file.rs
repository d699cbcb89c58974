//! Output files, which appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use sde_archives::inspect::StoredValue;

use crate::failure::Failure;
use crate::output::Output;

/// Lets `write` fill a file beside, then renames it, so that nobody finds half a file. `-` is standard output.
pub fn write(
    path: &Path,
    force: bool,
    out: &mut Output,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if path == Path::new("-") {
        return write(out.raw());
    }
    let failed =
        |error: io::Error| Failure::told(format!("{} can't be written: {error}", path.display()));
    // A rename would replace a device by a file, for all its users.
    let there = path.symlink_metadata();
    if there.as_ref().is_ok_and(|found| !found.is_file()) {
        return Err(Failure::told(format!(
            "{} is there already and is no regular file, which not even --force replaces; name another, or `-` for standard output",
            path.display()
        )));
    }
    if !force && there.is_ok() {
        return Err(Failure::told(format!(
            "{} is there already; --force replaces it",
            path.display()
        )));
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let mut beside = tempfile::Builder::new();
    let beside = beside.suffix(".unfinished");
    // With the usual permissions of a new file: the umask decides.
    let beside = beside.make_in(folder, |path| File::create_new(path));
    let mut beside = beside.map_err(failed)?;
    let mut to = BufWriter::new(beside.as_file_mut());
    write(&mut to)?;
    to.into_inner()
        .map_err(|error| failed(error.into_error()))?;
    beside.as_file().sync_all().map_err(failed)?;
    let named = match force {
        true => beside.persist(path),
        false => beside.persist_noclobber(path),
    };
    named.map(drop).map_err(|error| failed(error.error))
}

/// Writes the bytes of a payload from an offset on.
pub fn copy(payload: &StoredValue, at: u64, to: &mut impl Write) -> Result<(), Failure> {
    let mut from = payload.reader()?;
    io::copy(&mut (&mut from).take(at), &mut io::sink())?;
    io::copy(&mut from, to)?;
    Ok(())
}
