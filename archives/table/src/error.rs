//! Why a store is not read, or a question makes no sense.

use std::fmt;

use sde::archiver::ArchiveError;

/// Why a store is not read, or why what was asked for makes no sense: a text for the person who asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// An error of this text.
    pub fn told(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }

    /// The text.
    pub fn text(self) -> String {
        self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<ArchiveError> for Error {
    fn from(error: ArchiveError) -> Self {
        match error {
            // The library's text says what becomes of a computation, and who reads a store has none.
            ArchiveError::Io {
                doing, path, cause, ..
            } => Self(format!("{doing} {} failed: {cause}", path.display())),
            error => Self::told(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_computation_is_spoken_of_where_there_is_none() {
        let closed = std::io::Error::other("closed");
        let error = Error::from(ArchiveError::io("sharing", "store", closed));
        assert_eq!(error.text(), "sharing store failed: closed");
    }
}
