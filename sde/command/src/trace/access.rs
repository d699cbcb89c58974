//! What one call does with files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::parse::{Call, Named};

/// What a process did with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// It asked whether there is such a file, or for what is not its content.
    Look,
    Read,
    /// It listed a folder.
    List,
    /// It runs the file.
    Start,
    /// It made the file, or threw away what it held.
    Make,
}

/// One act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) act: Act,
    /// The absolute path by which it was named.
    pub(super) path: PathBuf,
    /// Where the file lies, if that is known.
    pub(super) real: Option<PathBuf>,
    /// There is nothing of that name.
    pub(super) is_absent: bool,
    pub(super) is_done: bool,
    /// The library that the loader may look for by this: the process has opened none of that name since it was started.
    pub(super) loads: Option<OsString>,
}

/// Whether it is named as shared libraries are.
pub(super) fn is_library(name: &OsStr) -> bool {
    name.to_string_lossy().contains(".so")
}

/// What a call does with files. `here` is the folder of the process.
pub(super) fn accesses(call: &Call<'_>, here: &Path) -> Vec<Access> {
    let one = |act, named: Named| Access {
        act,
        path: absolute(named.folder.as_deref().unwrap_or(here), &named.path),
        real: None,
        is_absent: call.is_absent(),
        is_done: call.is_done(),
        loads: None,
    };
    let made = if call.is_done() { Act::Make } else { Act::Look };
    // An empty path stands for a file that was opened before.
    let mut paths = call.paths().into_iter();
    let mut next = || paths.next().filter(|named| named.path != Path::new(""));
    let acts: Vec<(Act, Option<Named>)> = match call.name {
        "clone" | "clone3" | "fork" | "vfork" | "unshare" | "setns" | "fchdir" | "getcwd"
        | "io_uring_setup" => Vec::new(),
        "getdents" | "getdents64" => {
            let folder = call.of_number().map(|path| Named { path, folder: None });
            vec![(Act::List, folder)]
        }
        "execve" | "execveat" => vec![(Act::Start, next())],
        "mkdir" | "mkdirat" | "mknod" | "mknodat" => vec![(made, next())],
        // What a link leads to may be read by it, in ways that are not seen when the link moves.
        "symlink" | "symlinkat" => {
            let (text, link) = (next(), next());
            let folder = link.as_ref().map(|link| one(made, link.clone()).path);
            let to = text.zip(folder).map(|(text, link)| Named {
                path: text.path,
                folder: link.parent().map(Path::to_owned),
            });
            vec![(made, link), (Act::Look, to.filter(|_| call.is_done()))]
        }
        // Neither is new.
        "renameat2" if call.has("RENAME_EXCHANGE") => {
            vec![(Act::Read, next()), (Act::Read, next())]
        }
        "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
            vec![(Act::Read, next()), (made, next())]
        }
        "open" | "openat" | "openat2" | "creat" => {
            vec![(opens(call), next())]
        }
        "open_by_handle_at" => {
            let opened = call.opened().map(|path| Named { path, folder: None });
            vec![(Act::Read, opened)]
        }
        _ => vec![(Act::Look, next())],
    };
    let acts = acts.into_iter();
    let acts = acts.filter_map(|(act, named)| Some(one(act, named?)));
    let real = call
        .name
        .starts_with("open")
        .then(|| call.opened())
        .flatten();
    acts.map(|access| Access {
        real: real.clone(),
        ..access
    })
    .collect()
}

/// What is done by opening a file.
fn opens(call: &Call<'_>) -> Act {
    let is_new = call.has("O_CREAT") && call.has("O_EXCL");
    let is_emptied = call.name == "creat" || call.has("O_TRUNC");
    match call.is_done() {
        // The path is that of a folder.
        true if call.has("O_PATH") || call.has("O_TMPFILE") => Act::Look,
        true if is_new || is_emptied => Act::Make,
        // It may ask how long the file is.
        true if call.has("O_WRONLY") => Act::Look,
        _ => Act::Read,
    }
}

/// A path without `.` and `..`, which go up from where links lead to.
pub(super) fn absolute(folder: &Path, path: &Path) -> PathBuf {
    let mut whole = PathBuf::from("/");
    for part in folder.join(path).components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::ParentDir => {
                whole = fs::canonicalize(&whole).unwrap_or(whole);
                whole.pop();
            }
            _ => {}
        }
    }
    whole
}
