//! The disk, but for one thing.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde_archives::vfs::{Disk, Found, Site, Vfs, VfsFile};

/// What is done before a call with a path.
type Does = dyn Fn(&Path) -> io::Result<()> + Send + Sync;

#[derive(Clone)]
struct First(Arc<Does>);

impl std::fmt::Debug for First {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("First")
    }
}

#[derive(Clone, Debug, Default)]
pub struct OddDisk {
    before_publish: Option<First>,
    before_open: Option<First>,
    has_no_locks: bool,
}

impl OddDisk {
    /// One that does something before it gives a file its name.
    pub fn that_first(does: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self {
            before_publish: Some(First(Arc::new(move |_: &Path| does()))),
            ..Self::default()
        }
    }

    /// One that does something before it opens a file.
    pub fn that_opens(does: impl Fn(&Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self {
            before_open: Some(First(Arc::new(does))),
            ..Self::default()
        }
    }

    /// One on which all locks look as if nobody had them.
    pub fn without_locks() -> Self {
        Self {
            has_no_locks: true,
            ..Self::default()
        }
    }
}

impl Vfs for OddDisk {
    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        Disk.look(path)
    }
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Disk.real_path(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        Disk.list(dir)
    }
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.make_dir(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Disk.create(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.before_open
            .iter()
            .try_for_each(|first| first.0(path))?;
        Disk.open(path)
    }
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before_publish
            .iter()
            .try_for_each(|first| first.0(to))?;
        Disk.publish(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.remove_dir(dir)
    }
    fn sync_dir_for(&self, dir: &Path, site: Site) -> io::Result<()> {
        Disk.sync_dir_for(dir, site)
    }
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        match self.has_no_locks {
            true => Ok(Some(Box::new(()))),
            false => Disk.try_lock(path),
        }
    }
}
