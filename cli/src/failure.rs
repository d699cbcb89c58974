//! The reasons for which a command ends early.

use std::io;

use sde::archiver::ArchiveError;

/// Why a command ends early.
#[derive(Debug)]
pub enum Failure {
    /// The reader of the output has closed it.
    Closed,
    /// A message for the user: exit status 2.
    Told(String),
    /// The exit status is this one, and all is told.
    Status(u8),
}

impl Failure {
    /// A request that makes no sense, or can't be met.
    pub fn told(message: impl std::fmt::Display) -> Self {
        Self::Told(message.to_string())
    }

    /// The message of one that is told in a list.
    pub fn text(self) -> String {
        match self {
            Self::Told(why) => why,
            other => format!("{other:?}"),
        }
    }
}

/// From writing the output: all other errors name what was being done.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Told(format!("the output can't be written: {error}")),
        }
    }
}

impl From<sde_table::Error> for Failure {
    fn from(error: sde_table::Error) -> Self {
        Self::Told(error.text())
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        sde_table::Error::from(error).into()
    }
}

/// Only output is converted to JSON and CSV, and it always can be, so an error is one of writing.
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
