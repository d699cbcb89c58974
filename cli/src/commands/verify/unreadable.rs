//! Files that this user may not read: what they hold is not known, and nothing of it is damaged.

use std::fs::{self, Metadata};
use std::path::Path;

use serde::Serialize;

use crate::failure::Failure;
use crate::output::Output;
use crate::store;

/// A file that may not be read.
#[derive(Serialize)]
pub struct Unreadable {
    pub file: String,
    /// The number of the user who owns it; null where that is not known.
    owner: Option<u32>,
    /// Its permissions as `chmod` writes them.
    mode: Option<String>,
    /// What mends it.
    mend: String,
}

impl Unreadable {
    /// The files of these that may not be read.
    pub fn of<'a>(store: &Path, files: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let refused = files.filter(|file| store::is_refused(store, file));
        refused.map(|file| Self::named(store, file)).collect()
    }

    fn named(store: &Path, file: &str) -> Self {
        let path = store.join(file);
        let found = fs::metadata(&path).ok();
        let (owner, mode) = owner_and_mode(found.as_ref());
        let by = owner.map_or("its owner".to_owned(), |owner| format!("user {owner}"));
        // A store's files are made for one user, or for a group.
        let mend = format!(
            "{by} can let its group read it: chmod ug+r {:?}",
            path.display().to_string()
        );
        Self {
            file: file.to_owned(),
            owner,
            mode: mode.map(|mode| format!("{mode:04o}")),
            mend,
        }
    }

    pub fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let owner = self.owner.map(|owner| format!(" of user {owner}"));
        let mode = self.mode.as_ref().map(|mode| format!(", mode {mode}"));
        let (owner, mode) = (owner.unwrap_or_default(), mode.unwrap_or_default());
        let (file, mend) = (&self.file, &self.mend);
        out.wrapped(
            format!("may not be read: {file}{owner}{mode}, so it is not verified; {mend}"),
            2,
        )
    }
}

#[cfg(unix)]
fn owner_and_mode(found: Option<&Metadata>) -> (Option<u32>, Option<u32>) {
    use std::os::unix::fs::MetadataExt;
    let of = found.map(|found| (found.uid(), found.mode() & 0o7777));
    of.unzip()
}

#[cfg(not(unix))]
fn owner_and_mode(_: Option<&Metadata>) -> (Option<u32>, Option<u32>) {
    (None, None)
}
