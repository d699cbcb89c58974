//! Sharing a store with a group.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sde::archiver::ArchiveError;

use crate::format::directory::{self, DirectoryContent, FORMAT};
use crate::format::trust::not_a_store;
use crate::format::{class, manifest};
use crate::store::{DirStore, absolute};
use crate::vfs::{Disk, Permissions, Vfs};
use crate::work;

/// The result of [sharing](DirStore::share_with_group) a store with a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shared {
    /// The files and folders whose group or permissions were changed.
    pub changed: usize,
    /// The files and folders that the group can't use yet and only their owners can change, for each user.
    pub of_others: BTreeMap<u32, usize>,
}

impl DirStore {
    /// Shares the store in this directory with a group, by its number; makes a store if the directory is empty or does not
    /// exist.
    ///
    /// All members can read, save and remove then. Each file can be written to by its owner only, who is the author of what is
    /// in it. Whatever a program makes there later is the group's too, whatever its umask is.
    ///
    /// Only the owner of a file can change its permissions, so each member whose files are in the store already calls this.
    /// Others may use the store meanwhile. It looks at each file once.
    ///
    /// ```
    /// use std::os::unix::fs::MetadataExt;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// let group = folder.path().metadata().unwrap().gid();
    /// let shared = sde_archives::DirStore::share_with_group(&path, group)?;
    /// assert!(shared.of_others.is_empty());
    /// assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o2770);
    /// # Ok::<(), sde::archiver::ArchiveError>(())
    /// ```
    ///
    /// # Errors
    /// If the directory has other contents, or can't be made, listed or changed; if the user is not in the group.
    pub fn share_with_group(dir: impl AsRef<Path>, group: u32) -> Result<Shared, ArchiveError> {
        let dir = absolute(dir.as_ref())?;
        let found = directory::look(&Disk, &dir)?;
        let failed = |error| ArchiveError::io("sharing", &dir, error);
        let mut sharing = Sharing {
            permissions: Permissions::of_group(group),
            shared: Shared::default(),
        };
        match Disk.make_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // One that this made would be closed to the group.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let why =
                    "the folder that it is to be in does not exist; make it, open to the group";
                return Err(not_a_store(&dir, why));
            }
            made => made.map_err(failed)?,
        }
        // First, so that no process refuses the folders in it meanwhile.
        sharing.give(&dir).map_err(failed)?;
        match found {
            DirectoryContent::Nothing => directory::create(&Disk, &dir)?,
            DirectoryContent::Store => {
                for path in parts(&dir).map_err(failed)? {
                    let given = sharing.give(&path);
                    given.map_err(|error| ArchiveError::io("sharing", &path, error))?;
                }
            }
        }
        Ok(sharing.shared)
    }
}

/// The folders of a store and the files in them. What processes are at is left alone: it is over with them.
fn parts(store: &Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = vec![store.join(FORMAT), store.join(work::FOLDER)];
    for folder in directory::folders().map(|name| store.join(name)) {
        let files = match folder.read_dir() {
            Err(error) if directory::is_no_folder(&error) => continue,
            // It is another's, and is counted as that.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            files => Some(files?),
        };
        parts.push(folder);
        for file in files.into_iter().flatten() {
            let path = file?.path();
            let extension = path.extension().unwrap_or_default();
            if extension == class::EXTENSION || extension == manifest::EXTENSION {
                parts.push(path);
            }
        }
    }
    Ok(parts)
}

struct Sharing {
    permissions: Permissions,
    shared: Shared,
}

impl Sharing {
    /// Gives the group what this user owns, if it has not got it.
    fn give(&mut self, path: &Path) -> io::Result<()> {
        let found = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        let user = rustix::process::geteuid();
        let is_right = self.permissions.are_of(&found);
        if !is_right && found.uid() != user.as_raw() && !user.is_root() {
            *self.shared.of_others.entry(found.uid()).or_default() += 1;
            return Ok(());
        }
        if is_right || found.is_symlink() {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file: File = match options.open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let found = file.metadata()?;
        // A name that another member has made for a file of this user must not give that file away.
        if found.is_dir() || found.is_file() && found.nlink() == 1 {
            self.permissions.give(&file)?;
            self.shared.changed += 1;
        }
        Ok(())
    }
}
