//! A file whose content is an input.
//!
//! A path as an input is the commonest wrong hit: the file is edited, its name stays, and the old
//! result is found. An [`InputFile`] is what the file holds; its name is not part of the key.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::digest::Digest;
use super::encoder::Encoder;
use super::error::{FingerprintError, FingerprintErrorKind};
use super::fingerprint::Fingerprint;
use super::shape::Shape;
use super::short::Short;
use super::tag::item;

/// How much is read at a time.
const PIECE: usize = 256 * 1024;

/// A path to a file that enters keys by its content.
///
/// The content is read each time that the value is encoded, so on each run that takes it, hits
/// included. Copies of one file are the same input, whatever they are called. A file that changes
/// while a run is under way may be keyed by one content and read by the app with another: do not
/// write to input files while they are in use.
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

    /// The length of what the file holds now, and its plain BLAKE3 digest, as `b3sum` prints it.
    ///
    /// # Errors
    /// [`FingerprintErrorKind::File`] with the path, when the file cannot be read.
    pub fn content_digest(&self) -> Result<(u64, Digest), FingerprintError> {
        digest_file(&self.path).map_err(|source| {
            FingerprintErrorKind::File {
                file: self.path.clone(),
                source,
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

fn digest_file(path: &Path) -> io::Result<(u64, Digest)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    // A small file needs one piece of its own size, and one byte to see its end.
    let piece = usize::try_from(size).map_or(PIECE, |size| size.saturating_add(1).min(PIECE));
    let mut buffer = vec![0; piece.max(1)];
    let mut hasher = blake3::Hasher::new();
    let mut length = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((length, Digest::from_bytes(*hasher.finalize().as_bytes())))
}

impl Fingerprint for InputFile {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.item(|parts| {
            let (length, digest) = self.content_digest()?;
            parts.bytes([item::FILE]);
            parts.bytes(length.to_le_bytes());
            parts.bytes(*digest.as_bytes());
            Ok(())
        })
    }

    fn describe(&self, out: &mut Short) {
        out.show("content of ");
        out.quoted(&self.path.to_string_lossy());
    }

    fn shape(to: &mut Shape<'_, '_>) {
        to.tag(item::FILE);
    }
}
