//! Reading a store, and saying what could not be read of it.

use std::path::Path;

use sde_archives::inspect::{Inspection, Snapshot};

use crate::failure::Failure;
use crate::output::{Output, warn};

/// Opens a store and reads what is asked for; once more if files are removed meanwhile.
pub fn read<T>(
    path: &Path,
    what: impl FnMut(&mut Snapshot) -> Result<T, Failure>,
) -> Result<(Snapshot, T), Failure> {
    let (store, found) = Inspection::open(path)?.read(what)?;
    if store.gone {
        warn(
            "files were removed each time that this was read: some of what is there may be missing",
        );
    }
    if found.is_err() {
        tell_damage(&store);
    }
    found.map(|found| (store, found))
}

/// What a command that reads a store ends with.
pub fn conclude(store: &Snapshot, out: &mut Output) -> Result<(), Failure> {
    out.flush()?;
    out.found |= !store.is_whole();
    tell_damage(store);
    Ok(())
}

/// Says on standard error what was found damaged, in one line, and what can't be read by this release.
fn tell_damage(store: &Snapshot) {
    for (path, version) in store.other_formats() {
        warn(format!("left out: {}", of_format(&path, version)));
    }
    if let Some(why) = store.inspection().format_damage() {
        warn(format!("this is a damaged store: {why}"));
    }
    if let Some(first) = store.damages.first() {
        let more = match store.damages.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let entry = first.key.map(|key| format!(" (entry {})", key.short()));
        let (path, at, entry) = (&first.path, first.place.start, entry.unwrap_or_default());
        warn(format!(
            "left out, as it is damaged: {path} at byte {at}{entry}{more}; `sde verify` lists all"
        ));
    }
}

/// What a person is told of a file of another format.
pub fn of_format(path: &str, version: u32) -> String {
    format!(
        "{path} has format {version}, which this program does not read; use the release of SDE that \
         wrote it"
    )
}
