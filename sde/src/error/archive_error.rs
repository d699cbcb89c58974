//! What an archiver says when it fails.

use std::path::PathBuf;
use std::sync::Arc;

/// A store could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file system said no.
    #[error("{doing} {}: {source}; the computation goes on, what was saved before is still there", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What the system says.
        source: Arc<std::io::Error>,
    },
    /// The directory is not a store, or one of another format.
    #[error("{} is not a store that this program reads: {why}", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// What was found, and what to do.
        why: String,
    },
    /// Stored bytes are damaged, cut short, or not what they should be. A run
    /// that meets them is a miss.
    #[error("a stored entry is damaged: {why}")]
    Damaged {
        /// What is wrong with which part.
        why: String,
    },
    /// A value could not be turned into bytes.
    #[error("result \"{name}\" of type {type_name} could not be encoded: {why}")]
    Encode {
        /// The result.
        name: String,
        /// Its type.
        type_name: &'static str,
        /// What its `Serialize` says.
        why: String,
    },
    /// Anything else an archiver of the user's own may meet.
    #[error("{0}")]
    Other(String),
}

impl ArchiveError {
    /// An I/O error with what was being done, to which path.
    #[must_use]
    pub fn io(doing: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            doing,
            path: path.into(),
            source: Arc::new(source),
        }
    }
}
