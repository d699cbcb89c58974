//! Sharing a store with a group.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use sde::archiver::ArchiveError;

use crate::format::directory::{self, DirectoryContent, FORMAT};
use crate::format::trust::{LINK, not_a_store, not_trusted};
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
    /// The files of this user that stay closed to the group, since they have another name: that may be one of a private
    /// file. A copy in the place of such a file can be shared.
    pub linked: Vec<PathBuf>,
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
    /// If the directory has other contents, or can't be made, listed or changed; if a file or folder of the store is a link; if
    /// the user is not in the group.
    pub fn share_with_group(dir: impl AsRef<Path>, group: u32) -> Result<Shared, ArchiveError> {
        let dir = absolute(dir.as_ref())?;
        let found = directory::look(&Disk, &dir)?;
        let failed = |error| ArchiveError::io("sharing", &dir, error);
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
        let mut sharing = Sharing {
            store: &dir,
            permissions: Permissions::of_group(group),
            shared: Shared::default(),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, &dir, flags, Mode::empty());
        let store = opened.map_err(|error| failed(error.into()))?;
        let store: Folder<'_> = (&dir, &File::from(store));
        // First, so that no process refuses the folders in it meanwhile.
        sharing.give(store, OsStr::new("."))?;
        match found {
            DirectoryContent::Nothing => directory::create(&Disk, &dir)?,
            DirectoryContent::Store => {
                for name in [FORMAT, work::FOLDER] {
                    sharing.give(store, OsStr::new(name))?;
                }
                for name in directory::folders() {
                    sharing.give_folder(store, OsStr::new(name))?;
                }
            }
        }
        Ok(sharing.shared)
    }
}

/// A folder, and its open handle: another member may put a link in its place at any time.
type Folder<'a> = (&'a Path, &'a File);

/// Opens what has a name in a folder; `None` if nothing has.
fn open(folder: &File, name: &OsStr, flags: OFlags) -> io::Result<Option<File>> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => Ok(None),
        file => Ok(Some(file?.into())),
    }
}

struct Sharing<'a> {
    store: &'a Path,
    permissions: Permissions,
    shared: Shared,
}

impl Sharing<'_> {
    /// Gives the group a folder with its segments and manifests. Files in the making are left alone: they go with their
    /// processes.
    fn give_folder(&mut self, store: Folder<'_>, name: &OsStr) -> Result<(), ArchiveError> {
        let Some(folder) = self.give(store, name)? else {
            return Ok(());
        };
        let path = store.0.join(name);
        let failed = |error: Errno| ArchiveError::io("listing", &path, error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let files = match openat(&folder, ".", flags, Mode::empty()).and_then(Dir::new) {
            // A file has its name; or it is another's, and is counted as that.
            Err(Errno::NOTDIR | Errno::ACCESS) => return Ok(()),
            files => files.map_err(failed)?,
        };
        for file in files {
            let file = file.map_err(failed)?;
            let name = OsStr::from_bytes(file.file_name().to_bytes());
            let extension = Path::new(name).extension().unwrap_or_default();
            if extension == class::EXTENSION || extension == manifest::EXTENSION {
                self.give((&path, &folder), name)?;
            }
        }
        Ok(())
    }

    /// Gives the group a file or folder that this user owns, unless it has it; returns a handle to look into it.
    fn give(
        &mut self,
        (path, folder): Folder<'_>,
        name: &OsStr,
    ) -> Result<Option<File>, ArchiveError> {
        let path = path.join(name);
        let failed = |error| ArchiveError::io("sharing", &path, error);
        let Some(handle) = open(folder, name, OFlags::PATH).map_err(failed)? else {
            return Ok(None);
        };
        let found = handle.metadata().map_err(failed)?;
        if found.is_symlink() {
            return Err(not_trusted(self.store, &path, LINK));
        }
        let user = rustix::process::geteuid();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let readable = open(folder, name, flags);
        let is_right = match &readable {
            Ok(Some(file)) => self.permissions.are_of(&found) && !Permissions::has_lists(file),
            Ok(None) => return Ok(None),
            Err(_) => false,
        };
        if found.uid() != user.as_raw() && !user.is_root() {
            if !is_right {
                *self.shared.of_others.entry(found.uid()).or_default() += 1;
            }
            return Ok(Some(handle));
        }
        let Some(file) = readable.map_err(failed)? else {
            return Ok(None);
        };
        let found = file.metadata().map_err(failed)?;
        // A name that another member has made for a file of this user must not give that file away.
        if found.is_file() && found.nlink() > 1 {
            self.shared.linked.extend((!is_right).then_some(path));
        } else if !is_right && (found.is_dir() || found.is_file()) {
            self.permissions.give(&file).map_err(failed)?;
            self.shared.changed += 1;
        }
        Ok(Some(file))
    }
}
