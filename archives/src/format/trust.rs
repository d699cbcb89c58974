//! Which user a store must belong to.
//!
//! A store's contents are taken for results, so others who can write to it control these. Such a store is refused
//! unless the user trusts others. The check covers each folder and file too. Others may have left files in a folder
//! that was open to them, can still change files that they own, and may point a link anywhere.
//!
//! It costs one look at each folder when the store is opened, and one at each file when that is opened; for
//! segments that look also gives the length.

use std::io;
use std::path::{Path, PathBuf};

use sde::archiver::ArchiveError;

use crate::vfs::{Found, Vfs};

/// Who may own the files of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust {
    /// Only this user, if the medium knows users; nobody else may write to it.
    Own(Option<u32>),
    /// Anybody.
    Others,
}

const ADVICE: &str = "what is in a store is taken for results; make it yours alone (`chmod go-w`), or open it with `StoreOptions::trust_others`";

const LINK: &str = "it is a link, and may lead to what is not yours; put what it leads to in its place, or open the store with `StoreOptions::trust_others`";

impl Trust {
    /// Trusts this user only, or others too.
    pub(crate) fn new(vfs: &dyn Vfs, others: bool) -> Self {
        match others {
            true => Self::Others,
            false => Self::Own(vfs.user()),
        }
    }

    /// Why a file or folder in a store is not trusted, with advice.
    pub(crate) fn refusal(self, found: &Found) -> Option<String> {
        match (self, found.link) {
            (Self::Own(_), true) => Some(LINK.to_owned()),
            _ => self.refusal_of_owner(found),
        }
    }

    /// Why a directory that the user named is not trusted. It may be a link.
    fn refusal_of_owner(self, found: &Found) -> Option<String> {
        let (Self::Own(user), Some((owner, mode))) = (self, found.owner) else {
            return None;
        };
        if user.is_some_and(|user| user != owner) {
            return Some(format!("it belongs to user {owner}; {ADVICE}"));
        }
        (mode & 0o022 != 0).then(|| format!("others can write to it; {ADVICE}"))
    }

    /// Refuses a directory that is not trusted, whether it is a store or is to become one.
    pub(crate) fn check(self, vfs: &dyn Vfs, dir: &Path) -> Result<(), ArchiveError> {
        let found = vfs.look(dir);
        let found = found.map_err(|error| cannot_open(dir, "looking at it", error))?;
        let why = found.and_then(|found| self.refusal_of_owner(&found));
        why.map_or(Ok(()), |why| Err(not_a_store(dir, why)))
    }
}

/// The files of a store that were refused, each with the reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distrusted(Vec<(PathBuf, String)>);

impl Distrusted {
    pub(crate) fn add(&mut self, path: &Path, why: &str) {
        self.0.push((path.to_owned(), why.to_owned()));
    }

    /// An error if any file was refused: without it a store would compute its results again.
    pub(crate) fn check(&self, store: &Path) -> Result<(), ArchiveError> {
        let Some((path, why)) = self.0.first() else {
            return Ok(());
        };
        let name = path.strip_prefix(store).unwrap_or(path);
        let why = format!("of its file {:?}: {why}", name.display());
        Err(not_a_store(store, why))
    }
}

pub(crate) fn not_a_store(dir: &Path, why: impl Into<String>) -> ArchiveError {
    ArchiveError::not_a_store(dir, why)
}

pub(crate) fn cannot_open(dir: &Path, doing: &'static str, source: io::Error) -> ArchiveError {
    let advice = match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a directory you may write to, or open it with `open_read_only`"
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
    use crate::vfs::FileKind;

    #[test]
    fn only_what_is_the_users_own_is_trusted() {
        let found = |owner, link| Found {
            kind: FileKind::File,
            length: 0,
            id: 0,
            written_at: None,
            owner,
            link,
        };
        let own = Trust::Own(Some(7));
        let cases = [
            (Some((7, 0o600)), false, None),
            (Some((7, 0o755)), false, None),
            (Some((7, 0o620)), false, Some("others can write")),
            (Some((7, 0o602)), false, Some("others can write")),
            (Some((8, 0o600)), false, Some("belongs to user 8")),
            (Some((7, 0o600)), true, Some("a link")),
            (None, false, None),
        ];
        for (owner, link, why) in cases {
            let found = found(owner, link);
            let refusal = own.refusal(&found);
            match why {
                Some(why) => assert!(refusal.is_some_and(|text| text.contains(why)), "{found:?}"),
                None => assert_eq!(refusal, None, "{found:?}"),
            }
            assert_eq!(Trust::Others.refusal(&found), None);
        }
        // On a medium without known users, write permission is still checked.
        let unknown = Trust::Own(None);
        assert_eq!(unknown.refusal(&found(Some((8, 0o600)), false)), None);
        assert!(unknown.refusal(&found(Some((8, 0o622)), false)).is_some());
    }
}
