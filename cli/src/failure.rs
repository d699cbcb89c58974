//! Why a command came to no end.

use std::io;

use sde::ArchiveError;

/// What ends a command before its time.
#[derive(Debug)]
pub enum Failure {
    /// Whoever read what it writes does so no more.
    Closed,
    /// What a person is to be told: exit status 2.
    Told(String),
}

impl Failure {
    /// What was asked for makes no sense, or can't be done.
    pub fn told(message: impl std::fmt::Display) -> Self {
        Self::Told(message.to_string())
    }
}

/// Of writing the output: all else says what it was doing.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Told(format!("the output can't be written: {error}")),
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::told(error)
    }
}

/// JSON and CSV are written to the output, and have nothing that they can't say.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<csv::Error> for Failure {
    fn from(error: csv::Error) -> Self {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => error.into(),
            other => Self::Told(format!("the output can't be written: {other:?}")),
        }
    }
}

impl From<zip::result::ZipError> for Failure {
    fn from(error: zip::result::ZipError) -> Self {
        io::Error::from(error).into()
    }
}
