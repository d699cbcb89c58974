//! Errors of archivers.

use std::path::PathBuf;
use std::sync::Arc;

/// A store could not be read or written.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file system failed.
    #[error("{doing} {}: {cause}; the computation goes on, what was saved before is still there", path.display())]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        cause: Arc<std::io::Error>,
    },
    /// The disk is full, and the store has nothing more to remove.
    #[error("{doing} {}: {cause}; there is no room, and nothing more of the store may go: make room on the disk, or say what the store may give up, with `sde gc --capacity`, `SDE_STORE_CAPACITY` or `StoreOptions::retention`; what was saved before is still there", path.display())]
    Full {
        /// The action that failed.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        cause: Arc<std::io::Error>,
    },
    /// The directory can't be opened as a store.
    #[error("the store {} can't be opened, {doing} failed: {cause}; {advice}", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
        /// The system's error.
        cause: Arc<std::io::Error>,
        /// How to solve it.
        advice: &'static str,
    },
    /// The store was opened for reading only, and something was to be saved.
    #[error("the store {} was opened for reading only; open it for saving too", path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is not a store, or one of another format.
    #[error("{} is not a store that this program reads: {why}", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// What was found, and how to solve it.
        why: String,
    },
    /// The store was removed while it was in use.
    #[error("the store {} was removed while it was in use; it is made again, with what is still in memory: what is not was lost with it", path.display())]
    Removed {
        /// The directory.
        path: PathBuf,
    },
    /// Stored bytes are damaged, cut short, or not what they should be. A run
    /// that meets them is a miss.
    #[error("a stored entry is damaged: {why}")]
    Damaged {
        /// The part that is damaged, and how.
        why: String,
    },
    /// A value could not be encoded, or not without loss. All others were saved; this one is computed again when it is
    /// needed.
    #[error(
        "{name} of type {type_name} could not be saved, all else was: {why}; tag it expendable, or give it a type that can be saved"
    )]
    Encode {
        /// The result and its run.
        name: String,
        /// Its type.
        type_name: &'static str,
        /// The message of its `Serialize` or of the store.
        why: String,
    },
    /// Any other error of a custom archiver.
    #[error("{0}")]
    Other(String),
}

crate::error::debug_as_said!(ArchiveError);

impl ArchiveError {
    /// An I/O error, with the action and the path.
    #[must_use]
    pub fn io(doing: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            doing,
            path: path.into(),
            cause: Arc::new(source),
        }
    }

    /// Whether there was no room on the disk, or for this user.
    #[must_use]
    pub fn is_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            Self::Io { cause, .. } | Self::Open { cause, .. } => {
                matches!(cause.kind(), StorageFull | QuotaExceeded)
            }
            Self::Full { .. } => true,
            _ => false,
        }
    }

    /// Whether a file was missing. If the store is being compacted, it is worth looking again.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Io { cause, .. } => cause.kind() == std::io::ErrorKind::NotFound,
            _ => false,
        }
    }
}
