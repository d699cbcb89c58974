//! A medium that shows only segments whose authors this user trusts to run code.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::{Found, Owner, Site, Vfs, VfsFile};

/// The medium below, without the segments of users that are not trusted. The user of the process is.
#[derive(Debug)]
pub(crate) struct Trusted {
    below: Arc<dyn Vfs>,
    users: Vec<u32>,
    /// The extension of segments.
    extension: &'static str,
}

impl Trusted {
    pub(crate) fn new(below: Arc<dyn Vfs>, users: Vec<u32>, extension: &'static str) -> Self {
        Self {
            below,
            users,
            extension,
        }
    }

    /// Whether somebody else may have written a file: its owner, or anybody who may write to it.
    fn is_of_others(&self, owner: &Owner) -> bool {
        let own = self.below.user().is_none_or(|own| own == owner.user);
        let is_trusted = own || self.users.contains(&owner.user);
        !is_trusted || owner.mode & 0o022 != 0
    }
}

impl Vfs for Trusted {
    fn untrusted(&self, found: &Found) -> Option<u32> {
        let owner = found.owner.filter(|owner| self.is_of_others(owner))?;
        Some(owner.user)
    }

    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        self.below.look(path)
    }
    fn length_of(&self, path: &Path) -> io::Result<Option<u64>> {
        self.below.length_of(path)
    }
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.below.real_path(path)
    }
    fn link_target(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        self.below.link_target(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.below.list(dir)
    }
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        self.below.make_dir(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.below.create(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let file = self.below.open(path)?;
        let is_segment = path.extension() == Some(self.extension.as_ref());
        // The name may lead to another file by now than was looked at.
        match file.owner().filter(|owner| self.is_of_others(owner)) {
            Some(_) if is_segment => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(file),
        }
    }
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.below.publish(from, to)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.below.link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.below.remove(path)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.below.remove_dir(dir)
    }
    fn sync_dir_for(&self, dir: &Path, site: Site) -> io::Result<()> {
        self.below.sync_dir_for(dir, site)
    }
    fn user(&self) -> Option<u32> {
        self.below.user()
    }
    fn groups(&self) -> Vec<u32> {
        self.below.groups()
    }
    fn now(&self) -> SystemTime {
        self.below.now()
    }
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.below.try_lock(path)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::vfs::Disk;

    /// The file is another than when it was looked at.
    #[test]
    fn a_segment_is_judged_when_it_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let medium = Trusted::new(Arc::new(Disk), Vec::new(), "sde");
        for (name, is_judged) in [("one.sde", true), ("FORMAT", false)] {
            let path = dir.path().join(name);
            fs::write(&path, "code").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
            assert!(medium.open(&path).is_ok());
            fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
            let opened = medium.open(&path);
            let gone = opened.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            assert_eq!(gone, is_judged, "{name}");
        }
    }
}
