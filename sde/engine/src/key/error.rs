//! Why a value could not be fingerprinted, and which part of it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A value, or part of one, has no fingerprint.
///
/// It names the path to that part, from the outermost value in. Nothing that fails leaves a partial
/// key behind: the encoder that saw it gives no key at all.
pub struct FingerprintError(Box<FailedPart>);

struct FailedPart {
    /// From the innermost part outwards: `.field` or `[index]` each.
    path: Vec<String>,
    cause: FingerprintErrorKind,
}

/// The causes of a failed fingerprint.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FingerprintErrorKind {
    /// The content of an [`InputFile`](super::InputFile) could not be read.
    #[error(
        "cannot read the input file {file:?}: {cause}; its content is part of the key, so give the path of a readable file"
    )]
    #[non_exhaustive]
    File {
        /// The path as it was given.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The content of an [`InputFile`](super::InputFile) changed after the key was made from it.
    #[error(
        "the input file {file:?} was changed, or removed, after its content was keyed, so it can't be told which content the result is of; it was not remembered: run it again, and leave the file alone while it runs"
    )]
    #[non_exhaustive]
    Changed {
        /// The path as it was given.
        file: PathBuf,
    },
    /// A sequence gave more or fewer elements than it had declared.
    #[error(
        "a sequence declared {declared} elements and gave {found}; the iterator's length must be exact"
    )]
    #[non_exhaustive]
    Count {
        /// The number of elements that the sequence declared.
        declared: usize,
        /// The number of elements that it gave.
        found: usize,
    },
    /// An earlier part failed, and its caller went on encoding regardless.
    #[error(
        "an earlier part of the value failed and its error was dropped; pass errors on with `?`"
    )]
    Abandoned,
    /// The message of a type's own `Fingerprint` or `Serialize`.
    #[error("{0}")]
    Custom(String),
}

crate::error::debug_as_said!(FingerprintErrorKind, FingerprintError);

impl FingerprintError {
    /// An error with a message of the caller's own: say why the value has no identity and what to
    /// do about it.
    #[must_use]
    pub fn custom(message: impl fmt::Display) -> Self {
        FingerprintErrorKind::Custom(message.to_string()).into()
    }

    /// The cause.
    #[must_use]
    pub fn kind(&self) -> &FingerprintErrorKind {
        &self.0.cause
    }

    /// The path to the part that failed, like `.atoms[3].file`; empty for the value itself.
    #[must_use]
    pub fn path(&self) -> String {
        self.0.path.iter().rev().map(String::as_str).collect()
    }

    /// Adds to the path that the failed part is within field `name` of the value being encoded.
    #[must_use]
    pub fn in_field(mut self, name: &str) -> Self {
        self.0.path.push(format!(".{name}"));
        self
    }

    /// Adds to the path that the failed part is within element `index` of the value being encoded.
    #[must_use]
    pub fn in_element(mut self, index: usize) -> Self {
        self.0.path.push(format!("[{index}]"));
        self
    }
}

impl From<FingerprintErrorKind> for FingerprintError {
    fn from(cause: FingerprintErrorKind) -> Self {
        Self(Box::new(FailedPart {
            path: Vec::new(),
            cause,
        }))
    }
}

impl fmt::Display for FingerprintError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.path.is_empty() {
            write!(formatter, "cannot fingerprint the value: {}", self.0.cause)
        } else {
            write!(
                formatter,
                "cannot fingerprint `{}`: {}",
                self.path(),
                self.0.cause
            )
        }
    }
}

impl std::error::Error for FingerprintError {}

/// Lets serde's derived code report a failure through the [`BySerde`](super::BySerde) adapter.
impl serde::ser::Error for FingerprintError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::custom(message)
    }
}
