//! One walk over a folder, in an order that is the same everywhere, for all that is done with it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::io::Errno;

use super::link::stays;
use super::{TreeError, io_error};

/// What is done with each node. `name` is relative to the root, whose own is empty; `mode` has the nine permission bits.
pub(super) trait Visit {
    fn enter(&mut self, name: &Path, mode: u32) -> Result<(), TreeError>;
    /// A file, whose content is at `from`.
    fn file(&mut self, name: &Path, from: &Path, mode: u32) -> Result<(), TreeError>;
    /// A link that stays inside, or leads nowhere.
    fn link(&mut self, name: &Path, text: &Path) -> Result<(), TreeError>;
    fn leave(&mut self, name: &Path, mode: u32) -> Result<(), TreeError>;
}

/// Names a folder while it is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl Identity {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| Self::from(&metadata))
    }
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// A folder that was entered and not left.
struct Open {
    name: PathBuf,
    /// The path to it as messages show it.
    from: PathBuf,
    /// Where it is, no part of which is a link.
    real: PathBuf,
    /// The folder that links must not leave: the root, or a folder outside it to which a link led.
    top: Rc<Path>,
    identity: Identity,
    mode: u32,
    left: VecDeque<OsString>,
}

/// Walks over `root`, in which `forbidden` must not be.
pub(super) fn walk(
    root: &Path,
    forbidden: Option<Identity>,
    visit: &mut impl Visit,
) -> Result<(), TreeError> {
    if !root.metadata().map_err(io_error("look at", root))?.is_dir() {
        let path = root.to_owned();
        return Err(TreeError::NotAFolder { path });
    }
    // A list instead of calls: a deep tree must not use up the stack.
    let mut open = vec![Open::follow(PathBuf::new(), root)?];
    visit.enter(Path::new(""), open[0].mode)?;
    while let Some(folder) = open.last_mut() {
        let Some(entry) = folder.left.pop_front() else {
            visit.leave(&folder.name, folder.mode)?;
            open.pop();
            continue;
        };
        let Some(inner) = folder.visit(&entry, visit)? else {
            continue;
        };
        let is_inside_itself = open.iter().any(|outer| outer.identity == inner.identity);
        if is_inside_itself || forbidden == Some(inner.identity) {
            return Err(TreeError::Cycle { path: inner.from });
        }
        visit.enter(&inner.name, inner.mode)?;
        open.push(inner);
    }
    Ok(())
}

impl Open {
    /// A folder that a link leads to from outside: the links in it must not leave it.
    fn follow(name: PathBuf, from: &Path) -> Result<Self, TreeError> {
        let real = from.canonicalize().map_err(io_error("look at", from))?;
        let top = Rc::from(real.as_path());
        Self::new(name, from, real, top)
    }

    fn new(name: PathBuf, from: &Path, real: PathBuf, top: Rc<Path>) -> Result<Self, TreeError> {
        let metadata = real.metadata().map_err(io_error("look at", from))?;
        let list = || -> io::Result<Vec<OsString>> {
            real.read_dir()?
                .map(|entry| Ok(entry?.file_name()))
                .collect()
        };
        let mut names = list().map_err(io_error("list", from))?;
        names.sort_unstable();
        Ok(Self {
            name,
            from: from.to_owned(),
            identity: Identity::from(&metadata),
            mode: metadata.mode() & 0o777,
            left: names.into(),
            real,
            top,
        })
    }

    /// Visits an entry that is not a folder. One that is, or leads to one outside, is given back.
    fn visit(&self, entry: &OsString, visit: &mut impl Visit) -> Result<Option<Self>, TreeError> {
        let (name, from, real) = (
            self.name.join(entry),
            self.from.join(entry),
            self.real.join(entry),
        );
        let mut metadata = real
            .symlink_metadata()
            .map_err(io_error("look at", &from))?;
        let is_link = metadata.is_symlink();
        if is_link {
            let text = real.read_link().map_err(io_error("read the link", &from))?;
            let target = match real.metadata() {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) =>
                {
                    None
                }
                Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
                    return Err(TreeError::Cycle { path: from });
                }
                target => Some(target.map_err(io_error("follow the link", &from))?),
            };
            let inside =
                || stays(&self.top, &self.real, &text).map_err(io_error("follow the link", &from));
            match target {
                Some(target) if !inside()? => metadata = target,
                _ => return visit.link(&name, &text).map(|()| None),
            }
        }
        if metadata.is_dir() {
            return match is_link {
                true => Self::follow(name, &from),
                false => Self::new(name, &from, real, Rc::clone(&self.top)),
            }
            .map(Some);
        }
        if !metadata.is_file() {
            return Err(TreeError::Special { path: from });
        }
        visit
            .file(&name, &from, metadata.mode() & 0o777)
            .map(|()| None)
    }
}
