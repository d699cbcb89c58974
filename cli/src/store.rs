//! Reading a store, and telling what could not be read of it.

use std::path::Path;

use sde::archiver::ArchiveError;
use sde_archives::inspect::Snapshot;
pub use sde_table::store::{NO_FORMAT, is_refused, of_format};

use crate::failure::Failure;
use crate::output::{Output, warn};

/// Why a store can't be opened for reading.
pub fn not_opened(path: &Path, error: ArchiveError) -> Failure {
    sde_table::store::not_opened(path, error).into()
}

/// Opens a store and reads from it; again if files are removed meanwhile.
pub fn read<T>(
    path: &Path,
    what: impl FnMut(&mut Snapshot) -> Result<T, Failure>,
) -> Result<(Snapshot, T), Failure> {
    let (store, found) = sde_table::store::read(path, what)?;
    if store.gone {
        warn(sde_table::store::GONE);
    }
    if found.is_err() {
        tell_damage(&store);
    }
    found.map(|found| (store, found))
}

/// The end of each command that reads a store: flushes, and tells damage.
pub fn conclude(store: &Snapshot, out: &mut Output) -> Result<(), Failure> {
    out.flush()?;
    out.found |= !store.is_whole();
    tell_damage(store);
    Ok(())
}

fn tell_damage(store: &Snapshot) {
    sde_table::store::damage(store).iter().for_each(warn);
}
