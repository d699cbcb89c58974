//! A file that a run is given: in its key, and in its folder.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use sde_engine::Fingerprint;
use sde_engine::key::{Digest, Encoder, FingerprintError, Short, TypeWriter};

use crate::builder::Content;
use crate::code::is_executable;
use crate::error::CommandError;

/// A file that the run is given, as it was when its key was made.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) content: Content,
    pub(crate) digest: Digest,
    length: u64,
    pub(crate) is_executable: bool,
}

impl Given {
    /// The file, if it may be a program.
    pub(crate) fn executable(&self) -> Option<&Path> {
        match &self.content {
            Content::Path(path) if self.is_executable => Some(path),
            _ => None,
        }
    }

    pub(crate) fn counted(&self) -> Counted {
        let executable = if self.is_executable {
            ", executable"
        } else {
            ""
        };
        Counted(format!("{} {} bytes{executable}", self.digest, self.length))
    }

    pub(crate) fn read(content: &Content, base: &Path) -> Result<Self, CommandError> {
        match content {
            Content::Bytes(bytes) => Ok(Self {
                digest: Digest::from_bytes(*blake3::hash(bytes).as_bytes()),
                length: bytes.len() as u64,
                is_executable: false,
                content: content.clone(),
            }),
            Content::Path(path) => {
                let path = base.join(path);
                let failed = |error| CommandError::file("reading the input", &path, error);
                let (length, digest) = digest_of(&path).map_err(failed)?;
                Ok(Self {
                    digest,
                    length,
                    is_executable: is_executable(&path),
                    content: Content::Path(path),
                })
            }
        }
    }

    /// Puts the file into the run's folder, and sees that it is the one of the key.
    pub(crate) fn place(&self, to: &Path, is_linked: bool) -> io::Result<()> {
        use std::os::unix::fs::{PermissionsExt, symlink};
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        match &self.content {
            Content::Path(path) if is_linked => return symlink(path, to),
            Content::Path(path) => fs::copy(path, to).map(drop)?,
            Content::Bytes(bytes) => fs::write(to, bytes)?,
        }
        let mode = if self.is_executable { 0o755 } else { 0o644 };
        fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
        self.check(to)
    }

    /// Whether a file holds it.
    pub(crate) fn check(&self, path: &Path) -> io::Result<()> {
        match digest_of(path)? == (self.length, self.digest) {
            true => Ok(()),
            false => Err(io::Error::other(
                "it was changed since the run's key was made; run it again",
            )),
        }
    }
}

/// A file or a tree as it counts in the key: by its digest, of which a person sees the beginning.
#[derive(Clone, Debug)]
pub(crate) struct Counted(String);

impl Counted {
    pub(crate) fn tree(digest: &Digest) -> Self {
        Self(format!("{digest} tree"))
    }
}

impl Fingerprint for Counted {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.0.fingerprint(to)
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        String::shape(to);
    }

    fn describe(&self, out: &mut Short) {
        let (digest, rest) = self.0.split_once(' ').unwrap_or((&self.0, ""));
        out.show(format_args!(
            "{} ({rest})",
            digest.get(..12).unwrap_or(digest)
        ));
    }
}

fn digest_of(path: &Path) -> io::Result<(u64, Digest)> {
    // Opening a pipe waits for a writer, and a device may never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        ));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok((
        hasher.count(),
        Digest::from_bytes(*hasher.finalize().as_bytes()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the result of the new content would be that of the old one's key.
    #[test]
    fn a_file_that_was_edited_since_its_key_was_made_is_not_placed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        fs::write(&file, "1").unwrap();
        let given = Given::read(&Content::Path(file.clone()), dir.path()).unwrap();
        given.place(&dir.path().join("one/copy"), false).unwrap();
        fs::write(&file, "2").unwrap();
        let error = given.place(&dir.path().join("other"), false).unwrap_err();
        assert!(error.to_string().contains("it was changed"), "{error}");
    }
}
