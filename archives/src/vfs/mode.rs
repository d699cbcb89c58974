//! The permissions of new files and directories.
//!
//! They depend on the mode of the directory above, and on nothing else. In the directory of a group the members can
//! enter new directories and read new files, whatever the umask is; elsewhere only the owner can.
//!
//! Only its owner can write to a file, in a group's directory too. So the owner of a file has written all its bytes.

use super::Owner;

/// The bits of a directory in which a group makes files of the group.
const OF_GROUP: u32 = 0o2070;
const OTHERS_WRITE: u32 = 0o002;

impl Owner {
    /// The group whose directory this is, by its mode: what is made in it is the group's (`setgid`), the group can make
    /// files there, and nobody else can.
    #[must_use]
    pub fn shared_with(&self) -> Option<u32> {
        (self.mode & (OF_GROUP | OTHERS_WRITE) == OF_GROUP).then_some(self.group)
    }
}

/// The permissions of what is made in a directory.
#[derive(Clone, Copy)]
pub(crate) struct Permissions {
    group: Option<u32>,
    /// What users outside the group may do.
    others: u32,
}

#[cfg(unix)]
mod unix {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
    use std::path::Path;

    use super::{Owner, Permissions};

    /// A file, which its owner writes and the group reads.
    const FILE: u32 = 0o640;
    /// A file that the whole group writes.
    const SHARED_FILE: u32 = 0o660;
    #[cfg(target_os = "linux")]
    const LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];
    const DIRECTORY: u32 = 0o2770;

    impl Owner {
        pub(crate) fn of(found: &Metadata) -> Self {
            Self {
                user: found.uid(),
                group: found.gid(),
                mode: found.mode() & 0o7777,
            }
        }
    }

    impl Permissions {
        /// The permissions of what is made under a name, by the directory of that name.
        pub(crate) fn beside(path: &Path) -> io::Result<Self> {
            let parent = path.parent().filter(|one| !one.as_os_str().is_empty());
            let dir = Owner::of(&std::fs::metadata(parent.unwrap_or(Path::new(".")))?);
            let group = dir.shared_with();
            let others = group.map_or(0, |_| dir.mode & 0o005);
            Ok(Self { group, others })
        }

        /// The permissions of what only a group can use.
        pub(crate) fn of_group(group: u32) -> Self {
            let group = Some(group);
            Self { group, others: 0 }
        }

        /// Makes a directory.
        pub(crate) fn make_dir(self, dir: &Path) -> io::Result<()> {
            let mode = if self.group.is_some() { 0o770 } else { 0o700 };
            DirBuilder::new().mode(mode).create(dir)?;
            match self.group {
                Some(_) => self.give(&File::open(dir)?),
                None => Ok(()),
            }
        }

        /// Makes a file that its owner can write to.
        pub(crate) fn create(self, path: &Path) -> io::Result<File> {
            self.create_with(path, FILE)
        }

        /// Makes a file that all of the group can write to.
        pub(crate) fn create_shared(self, path: &Path) -> io::Result<File> {
            self.create_with(path, SHARED_FILE)
        }

        fn create_with(self, path: &Path, mode: u32) -> io::Result<File> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            let file = options.open(path)?;
            self.apply(&file, mode | self.others & 0o004)
                .inspect_err(|_| {
                    // The first error is the one to report.
                    let _ = std::fs::remove_file(path);
                })?;
            Ok(file)
        }

        /// Gives a file or directory to the group.
        pub(crate) fn give(self, file: &File) -> io::Result<()> {
            let mode = self.mode_of(&file.metadata()?);
            self.apply(file, mode)
        }

        /// Whether the group can use a file or directory as it should. Others may read it.
        pub(crate) fn are_of(self, found: &Metadata) -> bool {
            let is_mode = found.mode() & 0o7772 == self.mode_of(found) & 0o7772;
            is_mode && self.group.is_none_or(|group| group == found.gid())
        }

        fn mode_of(self, found: &Metadata) -> u32 {
            match found.is_dir() {
                true => DIRECTORY | self.others,
                false => FILE | self.others & 0o004,
            }
        }

        /// Whether a file or directory has POSIX access lists, as Linux keeps them.
        pub(crate) fn has_lists(file: &File) -> bool {
            #[cfg(target_os = "linux")]
            return LISTS
                .iter()
                .any(|list| rustix::fs::fgetxattr(file, *list, &mut [0_u8; 0][..]).is_ok());
            #[cfg(not(target_os = "linux"))]
            false
        }

        /// Removes the access lists: one closes to the group what the mode opens, and that of a directory goes to all
        /// that is made in it.
        fn remove_lists(file: &File) {
            #[cfg(target_os = "linux")]
            for list in LISTS {
                _ = rustix::fs::fremovexattr(file, list);
            }
        }

        /// Not every file system gives what is made to the group of the directory, and the umask may take permissions.
        fn apply(self, file: &File, mode: u32) -> io::Result<()> {
            let Some(group) = self.group else {
                return Ok(());
            };
            if file.metadata()?.gid() != group {
                fchown(file, None, Some(group))?;
            }
            Self::remove_lists(file);
            file.set_permissions(std::fs::Permissions::from_mode(mode))
        }
    }
}
