//! What a run may read: what its key has, its own folder, and what the program made.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::access::{Access, Act, absolute, is_library};
use super::exempt::{self, Exempt};
use super::told::{MOST, Undeclared, Use, shown};
use crate::program;

/// The most files that a program made outside its folder, and that are remembered. Others count as not made.
const MOST_MADE: usize = 100_000;
/// The most files that are told apart to count them.
const MOST_COUNTED: usize = 100_000;

/// What is declared. All paths are absolute.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) files: Vec<PathBuf>,
    /// Each with all below it.
    pub(crate) folders: Vec<PathBuf>,
    /// Programs that are looked for by name, at each call anew, and where.
    pub(crate) names: Vec<OsString>,
    pub(crate) search: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It counts, or can't change what a run gives.
    Declared,
    /// In the run's folder, or made by the program. A link there may lead out.
    Own,
    /// Of the kernel. A link there is that of the process which follows it.
    Kernel,
    /// Exempt. A link there may lead out.
    Machine,
    Undeclared,
}

/// Judges accesses, and collects those that nobody declared.
pub(super) struct Known {
    /// The folders of the run, as they are spelled and without links.
    own: Vec<PathBuf>,
    files: HashSet<PathBuf>,
    folders: Vec<PathBuf>,
    /// Folders above all these. That they are there is no news.
    above: HashSet<PathBuf>,
    /// Names of libraries.
    libraries: HashSet<OsString>,
    /// Where declared programs are looked for.
    searched: HashSet<PathBuf>,
    /// Links in the root of the file system, such as `/lib`, and where they lead.
    roots: Vec<(PathBuf, PathBuf)>,
    made: HashSet<PathBuf>,
    found: BTreeMap<PathBuf, Use>,
    /// What was found when there was no room.
    more: HashSet<PathBuf>,
}

impl Known {
    pub(super) fn new(declared: &Declared, own: &Path) -> Self {
        let mut known = Self {
            own: Vec::new(),
            files: HashSet::new(),
            folders: Vec::new(),
            above: HashSet::new(),
            libraries: HashSet::new(),
            searched: HashSet::new(),
            roots: roots(),
            made: HashSet::new(),
            found: BTreeMap::new(),
            more: HashSet::new(),
        };
        known.own = known.ways(own);
        for file in &declared.files {
            known.files.extend(known.ways(file));
            let name = file.file_name().filter(|name| is_library(name));
            known.libraries.extend(name.map(OsString::from));
        }
        for folder in &declared.folders {
            known.folders.extend(known.ways(folder));
        }
        for folder in &declared.search {
            let places = known.ways(folder).into_iter();
            let names = |folder: PathBuf| declared.names.iter().map(move |name| folder.join(name));
            known.searched.extend(places.flat_map(names));
        }
        let all = known.own.iter().chain(&known.files).chain(&known.folders);
        let above = all.flat_map(|path| path.ancestors().skip(1));
        known.above = above.map(Path::to_owned).collect();
        known
    }

    pub(super) fn take(&mut self, access: &Access) {
        self.judge(access);
        if access.act == Act::Start && access.is_done {
            self.interpreters(access);
        }
    }

    fn judge(&mut self, access: &Access) {
        let path = self.plain(&access.path);
        if access.act == Act::Make {
            return self.make(&path, access);
        }
        match self.standing(&path, access) {
            Standing::Declared => {}
            Standing::Undeclared => self.find(path, access),
            Standing::Own | Standing::Machine => {
                let real = access.real.clone().or_else(|| resolved(&path, access));
                self.judge_real(real, access);
            }
            Standing::Kernel => self.judge_real(access.real.clone(), access),
        }
    }

    fn judge_real(&mut self, real: Option<PathBuf>, access: &Access) {
        let real = real.map(|real| self.plain(&real));
        if let Some(real) = real
            && self.standing(&real, access) == Standing::Undeclared
        {
            self.find(real, access);
        }
    }

    fn make(&mut self, path: &Path, access: &Access) {
        let real = access.real.as_deref().map(|real| self.plain(real));
        for path in real.into_iter().chain([path.to_owned()]) {
            let is_new = self.standing(&path, access) != Standing::Own;
            if is_new && self.made.len() < MOST_MADE {
                self.made.insert(path);
            }
        }
    }

    /// The start of a script reads its interpreter, which no call tells of.
    fn interpreters(&mut self, access: &Access) {
        let mut access = access.clone();
        // The kernel follows no more.
        for _ in 0..5 {
            let Some(path) = program::interpreter(&access.path) else {
                return;
            };
            access.path = absolute(Path::new("/"), &path);
            self.judge(&access);
        }
    }

    pub(super) fn undeclared(self) -> (Vec<Undeclared>, u64) {
        let more = self.more.len() as u64;
        let found = self.found.into_iter();
        let found = found.map(|(path, used)| Undeclared {
            used,
            path: shown(&path),
        });
        (found.collect(), more)
    }

    fn standing(&self, path: &Path, access: &Access) -> Standing {
        let is_below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        let is_made = |path: &Path| self.made.contains(path);
        if is_below(&self.own) || path.ancestors().any(is_made) {
            return Standing::Own;
        }
        let is_declared = self.files.contains(path)
            || is_below(&self.folders)
            || self.is_folder_above(path, access)
            || self.is_looked_for(path, access);
        match exempt::of(path) {
            _ if is_declared => Standing::Declared,
            Some(Exempt::Kernel) => Standing::Kernel,
            Some(Exempt::Machine) => Standing::Machine,
            None => Standing::Undeclared,
        }
    }

    /// Whether a program only came by, on its way to something declared.
    fn is_folder_above(&self, path: &Path, access: &Access) -> bool {
        access.act != Act::List && !access.is_absent && self.above.contains(path)
    }

    /// Whether it was looked for in vain on the way to a declared program, or by the loader to a declared library: who
    /// makes the next key looks too.
    fn is_looked_for(&self, path: &Path, access: &Access) -> bool {
        let loads = access.loads.as_ref();
        let is_loaders = loads.is_some_and(|name| self.libraries.contains(name));
        match access.act {
            // After a library it asks whether there is such a folder.
            Act::Look if is_loaders => true,
            _ => access.is_absent && (self.searched.contains(path) || is_loaders),
        }
    }

    fn find(&mut self, path: PathBuf, access: &Access) {
        let before = self.found.get(&path).copied();
        let used = match access.act {
            _ if access.is_absent => Use::Missed,
            Act::Start => Use::Started,
            Act::List => Use::Listed,
            _ if before >= Some(Use::Read) => return,
            Act::Read if access.is_done && !path.is_dir() => Use::Read,
            _ => Use::Looked,
        };
        if self.found.len() < MOST || before.is_some() {
            self.found
                .insert(path, before.map_or(used, |before| before.max(used)));
        } else if self.more.len() < MOST_COUNTED {
            self.more.insert(path);
        }
    }

    /// The ways in which a path may be spelled.
    fn ways(&self, path: &Path) -> Vec<PathBuf> {
        let real = fs::canonicalize(path).ok();
        let spelled = self.plain(&absolute(Path::new("/"), path));
        real.into_iter().chain([spelled]).collect()
    }

    /// A path whose first part is no link.
    fn plain(&self, path: &Path) -> PathBuf {
        let mut roots = self.roots.iter();
        let moved = roots.find_map(|(link, to)| Some(to.join(path.strip_prefix(link).ok()?)));
        moved.unwrap_or_else(|| path.to_owned())
    }
}

fn roots() -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir("/").into_iter().flatten().flatten();
    let links = entries.map(|entry| entry.path());
    let links = links.filter(|path| path.is_symlink());
    let led = links.filter_map(|link| Some((fs::canonicalize(&link).ok()?, link)));
    led.map(|(to, link)| (link, to)).collect()
}

/// Where a path leads now, for calls that do not tell.
fn resolved(path: &Path, access: &Access) -> Option<PathBuf> {
    fs::canonicalize(path).ok().or_else(|| {
        let folder = path.parent().filter(|_| access.is_absent)?;
        Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
    })
}
