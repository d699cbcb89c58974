//! The checks.

use std::fs::File;
use std::io;
use std::path::Path;

use sde_archives::vfs::{Disk, Vfs};

use super::lock;

/// Tries something in a folder.
pub type Check = fn(&Path) -> io::Result<()>;

/// The checks: the guarantee, what a store loses without it, whether it can't do without, the function.
pub const CHECKS: [(&str, &str, bool, Check); 9] = [
    (
        "a name is made once",
        "two writers may write to one file",
        true,
        |dir| {
            let path = dir.join("once");
            Disk.create(&path)?;
            refused(Disk.create(&path).map(drop))
        },
    ),
    (
        "a name is not replaced by publishing another",
        "two writers may replace each other's generations",
        true,
        |dir| {
            let (from, to) = (dir.join("from"), dir.join("to"));
            written(&from, b"new")?;
            written(&to, b"old")?;
            refused(Disk.publish(&from, &to))?;
            reads(&to, b"old")
        },
    ),
    (
        "a published file is whole",
        "a generation may be found half written",
        true,
        |dir| {
            let (from, to) = (dir.join("unfinished"), dir.join("published"));
            written(&from, b"generation")?;
            Disk.publish(&from, &to)?;
            reads(&to, b"generation")?;
            match Disk.look(&from)? {
                None => Ok(()),
                Some(_) => Err(io::Error::other("it has two names afterwards")),
            }
        },
    ),
    (
        "a hard link names a file twice",
        "names are published by a rename, which is checked before it and not in one step with it; processes do not share work",
        false,
        |dir| {
            let (from, to) = (dir.join("one"), dir.join("two"));
            written(&from, b"linked")?;
            std::fs::hard_link(&from, &to)?;
            reads(&to, b"linked")
        },
    ),
    (
        "a rename gives a file another name",
        "nothing can be published where there are no hard links",
        false,
        |dir| {
            let (from, to) = (dir.join("before"), dir.join("after"));
            written(&from, b"renamed")?;
            std::fs::rename(&from, &to)?;
            reads(&to, b"renamed")?;
            match Disk.look(&from)? {
                None => Ok(()),
                Some(_) => Err(io::Error::other("it has two names afterwards")),
            }
        },
    ),
    (
        "what is appended can be read at once",
        "another process may see old lengths of files",
        true,
        |dir| {
            let path = dir.join("appended");
            let mut file = Disk.create(&path)?;
            for (part, at) in [(&b"first"[..], 0), (b"second", 5)] {
                file.write_at(&[part], at)?;
                file.sync()?;
            }
            reads(&path, b"firstsecond")
        },
    ),
    (
        "a file is synced without an error",
        "nothing that was saved is certain to survive a power cut",
        true,
        |dir| {
            let mut file = Disk.create(&dir.join("synced"))?;
            file.write_at(&[&[7; 4096]], 0)?;
            file.sync()
        },
    ),
    (
        "a folder is synced without an error",
        "a new file may be gone after a power cut",
        true,
        |dir| File::open(dir)?.sync_all(),
    ),
    (
        "a lock keeps others out, and ends with its holder",
        "two compactions may do the same work; nothing else rests on locks",
        false,
        lock::is_kept_between_processes,
    ),
];

/// Checks that an operation was refused because a name is taken.
fn refused(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => Err(io::Error::other("it was, and no error was given")),
    }
}

fn written(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Disk.create(path)?;
    file.write_at(&[bytes], 0)
}

fn reads(path: &Path, expected: &[u8]) -> io::Result<()> {
    match std::fs::read(path)? == expected {
        true => Ok(()),
        false => Err(io::Error::other("other bytes are read than were written")),
    }
}
