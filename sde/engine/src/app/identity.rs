//! The identity of an app, as far as its results depend on it.
//!
//! Two runs are equal only if they run equal code with equal settings. An app's identity is therefore a digest of its
//! declared name, its version (or the digest of its source), its own fields, its parameters and, recursively, its
//! sub-apps. A name in a slot stands for the app it leads to: if the name leads elsewhere, the identity differs.

use std::borrow::Cow;
use std::fmt;

use crate::key::Digest;

/// The digest of an app with its settings; a key has nothing else of the app.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct AppId(pub(crate) Digest);

impl AppId {
    /// The digest's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The identity of an app's code: a version that its author raises, or the digest of its source.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum CodeId {
    /// A declared version.
    Version(Cow<'static, str>),
    /// The digest of the token tree that `#[sde::app]` saw.
    Source(Digest),
}

impl fmt::Display for CodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(f, "version {}", crate::error::printable(version))
            }
            Self::Source(digest) => write!(f, "source {}", digest.short()),
        }
    }
}

impl fmt::Debug for CodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
