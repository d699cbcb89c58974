//! Errors of archivers.

use std::path::PathBuf;
use std::sync::Arc;

/// A store could not be read or written.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file system failed.
    #[error("{doing} {}: {cause}; the computation goes on, what was saved before is still there", path.display())]
    #[non_exhaustive]
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
    #[non_exhaustive]
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
    #[non_exhaustive]
    Open {
        /// The directory.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
        /// The system's error.
        cause: Arc<std::io::Error>,
        /// The way to solve it.
        advice: &'static str,
    },
    /// The store was opened for reading only, and something was to be saved.
    #[error("the store {} was opened for reading only; open it for saving too", path.display())]
    #[non_exhaustive]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is not a store, or one of another format.
    #[error("{} is not a store that this program reads: {why}", path.display())]
    #[non_exhaustive]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// What was found, and how to solve it.
        why: String,
    },
    /// The store was removed while it was in use.
    #[error("the store {} was removed while it was in use; it is made again, with what is still in memory: what is not was lost with it", path.display())]
    #[non_exhaustive]
    Removed {
        /// The directory.
        path: PathBuf,
    },
    /// Stored bytes are damaged, cut short, or not what they should be. A run
    /// that meets them is a miss.
    #[error("a stored entry is damaged: {why}")]
    #[non_exhaustive]
    Damaged {
        /// The part that is damaged, and how.
        why: String,
    },
    /// A value could not be encoded, or not without loss. All others were saved; this one is computed again when it is
    /// needed.
    #[error(
        "{name} of type {type_name} could not be saved, all else was: {why}; tag it expendable, or give it a type that can be saved"
    )]
    #[non_exhaustive]
    Encode {
        /// The result and its run.
        name: String,
        /// The type of the value.
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

    /// The error of a directory that can't be opened as a store, with the action that failed and how to solve it.
    #[must_use]
    pub fn open(
        path: impl Into<PathBuf>,
        doing: &'static str,
        source: std::io::Error,
        advice: &'static str,
    ) -> Self {
        Self::Open {
            path: path.into(),
            doing,
            cause: Arc::new(source),
            advice,
        }
    }

    /// The error of a directory that is no store, or one of another format: what was found, and how to solve it.
    #[must_use]
    pub fn not_a_store(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::NotAStore {
            path: path.into(),
            why: why.into(),
        }
    }

    /// The error where something was to be saved in a store that was opened for reading only.
    #[must_use]
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        Self::ReadOnly { path: path.into() }
    }

    /// The error where a store was removed while it was in use.
    #[must_use]
    pub fn removed(path: impl Into<PathBuf>) -> Self {
        Self::Removed { path: path.into() }
    }

    /// The error of stored bytes: which part is damaged, and how.
    #[must_use]
    pub fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged { why: why.into() }
    }

    /// The error of a value that could not be encoded: the result and its run, its type, and the reason.
    #[must_use]
    pub fn encode(
        name: impl Into<String>,
        type_name: &'static str,
        why: impl Into<String>,
    ) -> Self {
        Self::Encode {
            name: name.into(),
            type_name,
            why: why.into(),
        }
    }

    /// Any other error of a custom archiver.
    #[must_use]
    pub fn other(why: impl Into<String>) -> Self {
        Self::Other(why.into())
    }

    /// An I/O error as that of a [full](Self::is_full) disk, of which the store has nothing more to remove. Other
    /// errors stay.
    #[must_use]
    pub fn or_full(self) -> Self {
        match self {
            Self::Io { doing, path, cause } if is_full(&cause) => Self::Full { doing, path, cause },
            other => other,
        }
    }

    /// Whether there was no room on the disk, or for this user.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Io { cause, .. } | Self::Open { cause, .. } => is_full(cause),
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

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}
