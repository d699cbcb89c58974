//! What a store makes sure of before it is used, and after something failed.

use sde::ArchiveError;

use crate::format::directory;
use crate::locks::lock;
use crate::store::DirStore;
use crate::vfs::make_dirs;

impl DirStore {
    /// An error if a file of the store is not to be trusted. What comes later is warned of.
    pub(crate) fn check_trust(&self) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        inner.catalog.manifests().distrusted.check(&inner.dir)?;
        lock(&inner.catalog.segments).distrusted.check(&inner.dir)
    }

    pub(crate) fn check_writable(&self) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let path = &inner.dir;
        if inner.read_only {
            return Err(ArchiveError::ReadOnly { path: path.clone() });
        }
        match inner.local() {
            Some(_) => Ok(()),
            None => self.settle(),
        }
    }

    /// Makes durable what makes the directory a store, if this process found it one: a person may have copied or moved it. If
    /// that fails it is not tried again: a second sync may succeed without having written.
    fn settle(&self) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let settled = inner.settled.get_or_init(|| {
            let settled = directory::settle(&**inner.vfs(), &inner.dir);
            settled.map_err(|error| ArchiveError::io("syncing", &inner.dir, error))
        });
        settled.clone()
    }

    /// The directory may have been removed since, or its `FORMAT`: what is written without that
    /// would never be found.
    ///
    /// # Errors
    /// If all of it was removed. It is made again then.
    pub(crate) fn check_there(&self) -> Result<(), ArchiveError> {
        let (vfs, dir) = (&**self.0.vfs(), &self.0.dir);
        if let Some(local) = self.0.local() {
            // What others have put there since it was removed is no reason to refuse it.
            let made = make_dirs(vfs, local);
            made.map_err(|error| ArchiveError::io("making the directory", local, error))?;
        }
        let failed = |error| ArchiveError::io("looking at the store in", dir, error);
        if directory::look_for_format(vfs, dir).map_err(failed)? {
            return self.settle();
        }
        let is_empty = directory::is_empty(vfs, dir).map_err(failed)?;
        if is_empty {
            // What is saved from now on must not leave out what was there.
            self.0.writer.forget();
        }
        directory::create(vfs, dir)?;
        if is_empty {
            return Err(ArchiveError::Removed { path: dir.clone() });
        }
        sde::warning!(
            "the FORMAT file of the store in {} was removed, and is written again",
            dir.display()
        );
        Ok(())
    }
}
