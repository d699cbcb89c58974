//! What a folder of inputs holds: how it counts, and how it is copied.
//!
//! Permission bits, names, empty folders and contents count; owners, times and extended attributes do not.

mod link;
mod walk;

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sde_engine::key::Digest;

use crate::program::hash_unchanged;
use walk::{Identity, Visit, walk};

/// Tells why a folder can't be digested or copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    /// The operating system refused.
    #[error(
        "can't {what} {path:?}, a part of an input folder: {source}; mend it, or leave it out of the folder"
    )]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The root is a file.
    #[error("{path:?} is not a folder; give a file as an input file")]
    NotAFolder { path: PathBuf },
    /// A folder that holds itself.
    #[error(
        "{path:?} leads back into a folder that holds it, so its content has no end; remove that link"
    )]
    Cycle { path: PathBuf },
    /// A device, a socket or a pipe.
    #[error(
        "{path:?} is a device, a socket or a pipe, whose content is not fixed; leave it out of the folder"
    )]
    Special { path: PathBuf },
}

fn io_error<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> TreeError + 'a {
    move |source| TreeError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// The digest of all that counts in the folder `root`. Costs the reading of all files.
pub(crate) fn digest(root: &Path) -> Result<Digest, TreeError> {
    let mut encoding = Encoding(blake3::Hasher::new());
    encoding.0.update(b"sde tree 1");
    walk(root, None, &mut encoding)?;
    Ok(Digest::from(*encoding.0.finalize().as_bytes()))
}

/// Copies the folder `root` to `to`, which does not exist yet, so that both have one digest. After an error, a part may be there.
pub(crate) fn copy(root: &Path, to: &Path) -> Result<(), TreeError> {
    // Made first, so a walk that comes to it, because it lies in `root`, ends as a cycle.
    make(to)?;
    let made = Identity::of(to).map_err(io_error("look at", to))?;
    walk(root, Some(made), &mut Copying(to))
}

/// Feeds a hasher: each node is its kind, its name, and what counts of it; the end of a folder is a kind.
struct Encoding(blake3::Hasher);

impl Encoding {
    fn node(&mut self, kind: u8, name: &Path) {
        // The root's own name does not count.
        let name = name.file_name().unwrap_or_default();
        self.0.update(&[kind]);
        self.bytes(name.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

impl Visit for Encoding {
    fn enter(&mut self, name: &Path, mode: u32) -> Result<(), TreeError> {
        self.node(b'd', name);
        self.0.update(&mode.to_le_bytes());
        Ok(())
    }

    fn file(&mut self, name: &Path, from: &Path, mode: u32) -> Result<(), TreeError> {
        let (digest, _) = hash_unchanged(from).map_err(io_error("read", from))?;
        self.node(b'f', name);
        self.0.update(&mode.to_le_bytes());
        self.0.update(digest.as_bytes());
        Ok(())
    }

    fn link(&mut self, name: &Path, text: &Path) -> Result<(), TreeError> {
        self.node(b'l', name);
        self.bytes(text.as_os_str().as_bytes());
        Ok(())
    }

    fn leave(&mut self, _: &Path, _: u32) -> Result<(), TreeError> {
        self.0.update(b"e");
        Ok(())
    }
}

/// Copies to a folder that is there.
struct Copying<'a>(&'a Path);

impl Visit for Copying<'_> {
    fn enter(&mut self, name: &Path, _: u32) -> Result<(), TreeError> {
        match name.file_name() {
            Some(_) => make(&self.0.join(name)),
            None => Ok(()),
        }
    }

    fn file(&mut self, name: &Path, from: &Path, mode: u32) -> Result<(), TreeError> {
        let to = self.0.join(name);
        std::fs::copy(from, &to).map_err(io_error("copy", from))?;
        set_mode(&to, mode)
    }

    fn link(&mut self, name: &Path, text: &Path) -> Result<(), TreeError> {
        let to = self.0.join(name);
        std::os::unix::fs::symlink(text, &to).map_err(io_error("make the link", &to))
    }

    fn leave(&mut self, name: &Path, mode: u32) -> Result<(), TreeError> {
        // Last, for nothing can be written to a folder without that right.
        set_mode(&self.0.join(name), mode)
    }
}

fn make(folder: &Path) -> Result<(), TreeError> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    made.map_err(io_error("make the folder", folder))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), TreeError> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(io_error("set the mode of", path))
}

#[cfg(test)]
mod tests;
