//! Checks of a store before it is used, and after a failure.

use sde::archiver::ArchiveError;

use crate::format::directory;
use crate::locks::lock;
use crate::store::DirStore;
use crate::vfs::make_dirs;

impl DirStore {
    /// An error if a file of the store is not trusted. Files found later are only warned of.
    pub(crate) fn check_trust(&self) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        inner.catalog.manifests().distrusted.check(&inner.dir)?;
        lock(&inner.catalog.segments).distrusted.check(&inner.dir)
    }

    pub(crate) fn check_writable(&self) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let path = &inner.dir;
        if inner.read_only {
            return Err(ArchiveError::read_only(path));
        }
        match inner.local() {
            Some(_) => Ok(()),
            None => self.settle(),
        }
    }

    /// Makes the existence of a store durable that this process found: a person may have copied or moved it. After
    /// a failure it is not tried again: a second sync may succeed without writing.
    fn settle(&self) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let settled = inner.settled.get_or_init(|| {
            let settled = directory::settle(&**inner.vfs(), &inner.dir);
            settled.map_err(|error| ArchiveError::io("syncing", &inner.dir, error))
        });
        settled.clone()
    }

    /// Checks that the store is still there. If its directory or `FORMAT` was removed, new files would never be
    /// found.
    ///
    /// # Errors
    /// If the whole store was removed. It is made again then.
    pub(crate) fn check_there(&self) -> Result<(), ArchiveError> {
        let (vfs, dir) = (&**self.0.vfs(), &self.0.dir);
        if let Some(local) = self.0.local() {
            // Other ranks may have written to it since it was removed, so it need not be empty.
            let made = make_dirs(vfs, local);
            made.map_err(|error| ArchiveError::io("making the directory", local, error))?;
        }
        let failed = |error| ArchiveError::io("looking at the store in", dir, error);
        if directory::look_for_format(vfs, dir).map_err(failed)? {
            return self.settle();
        }
        let is_empty = directory::is_empty(vfs, dir).map_err(failed)?;
        if is_empty {
            // Later saves must not rely on segments and entries that are gone.
            self.0.writer.forget();
        }
        directory::create(vfs, dir)?;
        if is_empty {
            return Err(ArchiveError::removed(dir));
        }
        sde::warning!(
            "the FORMAT file of the store in {} was removed, and is written again",
            dir.display()
        );
        Ok(())
    }
}
