//! The owners and permissions that a store may have.
//!
//! A store's contents are taken for results, so others who can write to it control these. Such a store is refused
//! unless it is one of a [group](Owner::shared_with) of this user, or the user trusts others. The check covers each
//! folder and file too. Others may have left files in a folder that was open to them, can still change files that
//! they own, and may point a link anywhere.
//!
//! Whoever names a group's store trusts the group for results: a member can give wrong ones. What the store itself
//! holds makes nobody trusted.
//!
//! It costs one look at each folder when the store is opened, and one at each file when that is opened; for
//! segments that look also gives the length.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use sde::archiver::ArchiveError;

use crate::vfs::{FileKind, Found, Owner, Vfs};

/// Who may own and write the files of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust {
    /// This user may, if the medium knows users, and nobody else.
    Own(Option<u32>),
    /// Anybody may who can make files in a directory of this group.
    Group(u32),
    /// Anybody may.
    Others,
}

const ADVICE: &str = "what is in a store is taken for results; make it yours alone (`chmod go-w`), share it with a group that you are in (`sde init --group` on it), or open it with `StoreOptions::trust_others`";

pub(crate) const LINK: &str = "it is a link, and may lead to what is not yours; put what it leads to in its place, or open the store with `StoreOptions::trust_others`";

const SHARE: &str = "run `sde init --group` on the store";

impl Trust {
    /// Trusts this user only; in a directory of a group that the user is in, the group; or others too.
    pub(crate) fn of(vfs: &dyn Vfs, dir: &Path, others: bool) -> Self {
        if others {
            return Self::Others;
        }
        let owner = vfs.look(dir).ok().flatten().and_then(|found| found.owner);
        let group = owner.and_then(|owner| owner.shared_with());
        match group.filter(|group| vfs.groups().contains(group)) {
            Some(group) => Self::Group(group),
            None => Self::Own(vfs.user()),
        }
    }

    /// Why a file or folder in a store is not trusted, with advice.
    pub(crate) fn refusal(self, found: &Found) -> Option<String> {
        match (self, found.link) {
            (Self::Own(_) | Self::Group(_), true) => Some(LINK.to_owned()),
            _ => self.refusal_of_owner(found),
        }
    }

    /// Why a directory that the user named is not trusted. It may be a link.
    fn refusal_of_owner(self, found: &Found) -> Option<String> {
        let Owner { user, group, mode } = found.owner?;
        match self {
            Self::Others => None,
            Self::Own(own) if own.is_some_and(|own| own != user) => {
                Some(format!("it belongs to user {user}; {ADVICE}"))
            }
            Self::Own(_) => {
                (mode & 0o022 != 0).then(|| format!("others can write to it; {ADVICE}"))
            }
            Self::Group(_) if mode & 0o002 != 0 => Some(format!(
                "users outside the group can write to it; have its owner, user {user}, {SHARE}"
            )),
            Self::Group(of) if mode & 0o020 != 0 && group != of => Some(format!(
                "group {group} can write to it, and the store is of group {of}; have its owner, user {user}, {SHARE}"
            )),
            Self::Group(of) => {
                let passes_on = group == of && mode & 0o2000 != 0;
                (found.kind == FileKind::Directory && !passes_on).then(|| {
                    format!("files made in it are closed to group {of}, of which the store is; have its owner, user {user}, {SHARE}")
                })
            }
        }
    }

    /// Refuses a directory that is not trusted, whether it is a store or is to become one.
    pub(crate) fn check(self, vfs: &dyn Vfs, dir: &Path) -> Result<(), ArchiveError> {
        let found = vfs.look(dir);
        let found = found.map_err(|error| cannot_open(dir, "looking at it", error))?;
        let why = found.and_then(|found| self.refusal_of_owner(&found));
        why.map_or(Ok(()), |why| Err(not_a_store(dir, why)))
    }
}

/// Why a file or folder of a store can't be read, if this user has no permission, with advice.
pub(crate) fn no_permission(vfs: &dyn Vfs, path: &Path, error: &io::Error) -> Option<String> {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return None;
    }
    let mut above = path.ancestors();
    let owner = above.find_map(|path| vfs.look(path).ok().flatten()?.owner)?;
    Some(format!(
        "you may not read it; have its owner, user {}, {SHARE}",
        owner.user
    ))
}

/// The error of a folder of a store that can't be listed.
pub(crate) fn not_listed(
    vfs: &dyn Vfs,
    store: &Path,
    dir: &Path,
    error: io::Error,
) -> ArchiveError {
    match no_permission(vfs, dir, &error) {
        Some(why) => not_trusted(store, dir, &why),
        None => ArchiveError::io("listing", dir, error),
    }
}

/// The files of a store that were refused, each with the reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distrusted(BTreeMap<PathBuf, String>);

impl Distrusted {
    /// Adds a file; `false` if it is known.
    pub(crate) fn add(&mut self, path: &Path, why: &str) -> bool {
        self.0.insert(path.to_owned(), why.to_owned()).is_none()
    }

    /// An error if any file was refused: without it a store would compute its results again.
    pub(crate) fn check(&self, store: &Path) -> Result<(), ArchiveError> {
        let Some((path, why)) = self.0.first_key_value() else {
            return Ok(());
        };
        Err(not_trusted(store, path, why))
    }
}

/// The error of a store with a file or folder that is refused.
pub(crate) fn not_trusted(store: &Path, path: &Path, why: &str) -> ArchiveError {
    let name = path.strip_prefix(store).unwrap_or(path);
    not_a_store(store, format!("of its {:?}: {why}", name.display()))
}

pub(crate) fn not_a_store(dir: &Path, why: impl Into<String>) -> ArchiveError {
    ArchiveError::not_a_store(dir, why)
}

pub(crate) fn cannot_open(dir: &Path, doing: &'static str, source: io::Error) -> ArchiveError {
    let advice = match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a directory you may write to, or open it with `open_read_only`; if it is to be shared, have its owner run `sde init --group` on it"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room, or name a directory on another disk"
        }
        _ => "name another directory",
    };
    ArchiveError::open(dir, doing, source, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(owner: Option<(u32, u32, u32)>, link: bool) -> Found {
        Found {
            kind: FileKind::File,
            length: 0,
            id: 0,
            written_at: None,
            owner: owner.map(|(user, group, mode)| Owner { user, group, mode }),
            link,
        }
    }

    #[track_caller]
    fn check(trust: Trust, found: &Found, why: Option<&str>) {
        let refusal = trust.refusal(found);
        match why {
            Some(why) => assert!(refusal.is_some_and(|text| text.contains(why)), "{found:?}"),
            None => assert_eq!(refusal, None, "{found:?}"),
        }
        assert_eq!(Trust::Others.refusal(found), None);
    }

    #[test]
    fn only_what_is_the_users_own_is_trusted() {
        let own = Trust::Own(Some(7));
        let cases = [
            (Some((7, 1, 0o600)), false, None),
            (Some((7, 1, 0o755)), false, None),
            (Some((7, 1, 0o620)), false, Some("others can write")),
            (Some((7, 1, 0o602)), false, Some("others can write")),
            (Some((8, 1, 0o600)), false, Some("belongs to user 8")),
            (Some((7, 1, 0o600)), true, Some("a link")),
            (None, false, None),
        ];
        for (owner, link, why) in cases {
            check(own, &found(owner, link), why);
        }
        // On a medium without known users, write permission is still checked.
        let unknown = Trust::Own(None);
        check(unknown, &found(Some((8, 1, 0o600)), false), None);
        check(unknown, &found(Some((8, 1, 0o622)), false), Some("others"));
    }

    #[test]
    fn in_a_groups_store_nobody_else_may_write() {
        let cases = [
            (Some((8, 5, 0o640)), false, None),
            (Some((8, 5, 0o2770)), false, None),
            (Some((8, 6, 0o644)), false, None),
            (Some((8, 6, 0o660)), false, Some("group 6 can write")),
            (Some((8, 5, 0o662)), false, Some("outside the group")),
            (Some((8, 5, 0o640)), true, Some("a link")),
        ];
        for (owner, link, why) in cases {
            check(Trust::Group(5), &found(owner, link), why);
        }
        for (group, mode, why) in [
            (5, 0o2770, None),
            (5, 0o770, Some("are closed to group 5")),
            (6, 0o2750, Some("are closed to group 5")),
        ] {
            let folder = Found {
                kind: FileKind::Directory,
                ..found(Some((8, group, mode)), false)
            };
            check(Trust::Group(5), &folder, why);
        }
    }

    /// Any other mode gives a group nothing.
    #[test]
    fn a_directory_is_a_groups_by_its_mode() {
        let of = |mode| {
            Owner {
                user: 8,
                group: 5,
                mode,
            }
            .shared_with()
        };
        for mode in [0o2770, 0o2775, 0o3770, 0o2070] {
            assert_eq!(of(mode), Some(5), "{mode:o}");
        }
        for mode in [0o770, 0o2750, 0o2760, 0o2777, 0o2772, 0o700, 0o1777] {
            assert_eq!(of(mode), None, "{mode:o}");
        }
    }
}
