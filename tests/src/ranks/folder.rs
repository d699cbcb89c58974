//! A folder that all ranks see.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::World;

/// A new folder, until its end on the process that has made it.
pub struct Folder {
    path: PathBuf,
    _own: Option<TempDir>,
}

impl Folder {
    /// Collective over all processes.
    ///
    /// # Panics
    /// If none can be made.
    pub(super) fn new(world: &dyn World) -> Self {
        let own = world.is_first().then(|| tempfile::tempdir().unwrap());
        let path = own.as_ref().map(|own| own.path().to_str().unwrap());
        let path = world.share(path.unwrap_or("").as_bytes());
        Self {
            path: String::from_utf8(path).unwrap().into(),
            _own: own,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
