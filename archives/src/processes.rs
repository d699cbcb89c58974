//! The processes that use a store: what they are at, and how they are told to stop.
//!
//! A process is known here once it shares work with others: when it has announced a run, or a sweep of it has gone on
//! for a while. So one that announces nothing is not seen: it opened the store for reading only, or together with other
//! ranks, or it is on a system other than Linux.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("store");
//! # sde_archives::DirStore::open(&path)?;
//! for process in sde_archives::processes::list(&path)? {
//!     let runs = process.runs.len();
//!     println!("{}:{} is at {runs} runs", process.host, process.process);
//! }
//! # Ok::<(), sde::archiver::ArchiveError>(())
//! ```

use std::path::Path;
use std::time::SystemTime;

use sde::archiver::ArchiveError;

use crate::work;

pub use crate::work::process::{Process, Running};

/// The processes that are known, in the order of their ids. Nothing is written or locked.
///
/// # Errors
/// If the store's folder `work` can't be read.
pub fn list(store: &Path) -> Result<Vec<Process>, ArchiveError> {
    work::processes(store)
        .map_err(|error| ArchiveError::io("looking for processes in", store, error))
}

/// Tells all processes that live to stop, at once or at a time. Those are returned: what they were told before counts no
/// more. A process that opens the store later is not told.
///
/// The request is a file in the store, `STOP`, until those that it names are gone. They look for it every 2 s while they are at work,
/// and begin no more items of sweeps then. It is followed if its owner is that of the folder or the administrator, or if the folder is a group's.
///
/// # Errors
/// If it would not be followed, or can't be written, or the folder `work` can't be read.
pub fn tell_to_stop(store: &Path, at: Option<SystemTime>) -> Result<Vec<Process>, ArchiveError> {
    work::tell_to_stop(store, at)
        .map_err(|error| ArchiveError::io("telling the processes to stop in", store, error))
}

/// Takes the request to stop back, and says whether there was one. Processes that have stopped do not go on.
///
/// # Errors
/// If it can't be removed.
pub fn cancel_stop(store: &Path) -> Result<bool, ArchiveError> {
    work::cancel_stop(store)
        .map_err(|error| ArchiveError::io("taking back the request to stop in", store, error))
}
