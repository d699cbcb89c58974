//! A file whose content is an input.
//!
//! A path as an input is the commonest wrong hit: the file is edited, its name stays, and the old result is found. An
//! [`InputFile`] enters the key by its content, not its name.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::digest::Digest;
use super::encoder::Encoder;
use super::error::{FingerprintError, FingerprintErrorKind};
use super::fingerprint::Fingerprint;
use super::shape::TypeWriter;
use super::short::Short;
use super::tag::item;

/// A path to a file that enters keys by its content.
///
/// The content is read for each key, so on each run that takes it, hits included, whatever holds it: a
/// [`Value`](crate::Value), [`Inputs`](crate::Inputs) that are used again, a prepared or registered app. Copies of one
/// file are one input, whatever their names.
///
/// A run that computes reads the file once more when its body has ended. If it has changed by then, the run has an
/// error ([`FingerprintErrorKind::Changed`]) and nothing is remembered, since the body may have read either content. A
/// change that is undone before the end goes unnoticed: do not write to input files while they are in use.
///
/// It counts only where it is an input or a parameter. An app that makes an `InputFile` of a path of its own to run
/// another app with does not depend on the content: give it the file instead.
///
/// ```
/// use sde::key::{commit, InputFile};
/// # let dir = std::env::temp_dir().join(format!("sde-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// let path = dir.join("water.xyz");
/// std::fs::write(&path, "3 atoms")?;
/// let before = commit(&InputFile::new(&path))?;
/// std::fs::write(&path, "4 atoms")?;
/// assert_ne!(before, commit(&InputFile::new(&path))?);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    path: PathBuf,
}

impl InputFile {
    /// Names a file; nothing is read yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file's present content, and its plain BLAKE3 digest, as `b3sum` prints it.
    ///
    /// # Errors
    /// [`FingerprintErrorKind::File`] with the path, when the file cannot be read, or is no regular file: a
    /// directory, a pipe, a device.
    pub fn content_digest(&self) -> Result<(u64, Digest), FingerprintError> {
        digest_file(&self.path).map_err(|cause| {
            FingerprintErrorKind::File {
                file: self.path.clone(),
                cause,
            }
            .into()
        })
    }
}

impl AsRef<Path> for InputFile {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl<P: Into<PathBuf>> From<P> for InputFile {
    fn from(path: P) -> Self {
        Self::new(path)
    }
}

pub(crate) fn digest_file(path: &Path) -> io::Result<(u64, Digest)> {
    // Opening a pipe waits for a writer, and a device may never end.
    if !std::fs::metadata(path)?.is_file() {
        let why = "it is no regular file, so what it holds can't be keyed";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok((
        hasher.count(),
        Digest::from_bytes(*hasher.finalize().as_bytes()),
    ))
}

/// The content of a file, as it counts wherever the file lies.
pub(crate) fn content(
    to: &mut Encoder<'_>,
    length: u64,
    digest: Digest,
) -> Result<(), FingerprintError> {
    to.item(|parts| {
        parts.bytes([item::FILE]);
        parts.bytes(length.to_le_bytes());
        parts.bytes(*digest.as_bytes());
        Ok(())
    })
}

impl Fingerprint for InputFile {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        // Also where it can't be read: it may be there next time.
        to.volatile();
        let (length, digest) = match self.content_digest() {
            Ok(content) => content,
            Err(error) => return to.item(|_| Err(error)),
        };
        to.file_seen(self.path.clone(), length, digest);
        content(to, length, digest)
    }

    fn describe(&self, out: &mut Short) {
        out.show("content of ");
        out.quoted(&self.path.to_string_lossy());
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::FILE);
    }
}
