//! Errors of encoding and decoding, as text.

use std::fmt;

/// The error type for serde: only a text, so that it does not grow on its way up through the levels of a value.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl serde::ser::Error for Failure {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

impl serde::de::Error for Failure {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}
