//! The files that a run is to write.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use glob::{MatchOptions, Pattern};
use sde_engine::OutputFile;

use crate::error::CommandError;
use crate::folder::RunFolder;

/// The declared outputs of a command, by name.
#[derive(Clone, Debug)]
pub(crate) struct Outputs(BTreeMap<String, Output>);

#[derive(Clone, Debug)]
struct Output {
    is_optional: bool,
    /// `None` for a name that stands for itself.
    pattern: Option<Pattern>,
}

/// Files below a folder, each with its path from there.
pub(crate) type Files = BTreeMap<String, OutputFile>;

/// Whether a declared output, a name or a pattern, stands for a path in the run's folder.
#[doc(hidden)]
#[must_use]
pub fn is_output(declared: &str, path: &str) -> bool {
    Outputs::new(&[declared.to_owned()]).is_ok_and(|one| one.may_be(path))
}

/// As in a shell: a star stays within a folder, and leaves out names that begin with a dot.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

impl Outputs {
    pub(crate) fn new(declared: &[String]) -> Result<Self, CommandError> {
        let mut outputs = BTreeMap::new();
        for declared in declared {
            let name = declared.strip_prefix('?');
            let (name, is_optional) = (name.unwrap_or(declared), name.is_some());
            let name = plain(name);
            if !is_inside(&name) || name.contains('\n') {
                return Err(CommandError::refused(
                    format!("the output {declared:?}"),
                    "an output is named by its path in the run's folder, in one line and without `..`",
                ));
            }
            let pattern = match name.contains(['*', '?', '[']) {
                true => Some(Pattern::new(&name).map_err(|error| {
                    CommandError::refused(format!("the output {declared:?}"), error.to_string())
                })?),
                false => None,
            };
            let output = Output {
                is_optional,
                pattern,
            };
            outputs.insert(name, output);
        }
        Ok(Self(outputs))
    }

    /// As they count in the key.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn is_declared(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether it is an output declared by its own name, or lies in a folder that is.
    pub(crate) fn is_named(&self, path: &str) -> bool {
        let mut own = self.0.iter().filter(|(_, output)| output.pattern.is_none());
        own.any(|(name, _)| is_or_is_in(path, name))
    }

    /// Whether a declared name or pattern stands for it.
    pub(crate) fn may_be(&self, path: &str) -> bool {
        self.0.iter().any(|(name, output)| output.has(name, path))
    }

    /// Those that must be written.
    pub(crate) fn required(&self) -> impl Iterator<Item = &str> {
        let required = self.0.iter().filter(|(_, output)| !output.is_optional);
        required.map(|(name, _)| &**name)
    }

    /// Moves what is declared out of the folder in which the program ran. Gives it, and the other files that are
    /// neither declared nor inputs.
    ///
    /// An input that the program has changed is an output only if it is declared by its own name: put back, it would be
    /// another input of the next call.
    pub(crate) fn take(&self, folder: &Arc<RunFolder>, placed: &Placed) -> io::Result<Taken> {
        let mut taken = Taken::default();
        let mut written = Vec::new();
        walk(
            &folder.work(),
            &mut PathBuf::new(),
            &mut written,
            &mut taken.unkept,
        );
        let kept = folder.path().join("out");
        fs::create_dir(&kept)?;
        let (mut moved, mut copied) = (Vec::new(), Vec::new());
        for path in written {
            let input = placed.0.get(&path);
            let wanted = self.0.iter().any(|(name, output)| {
                output.has(name, &path) && (output.pattern.is_none() || input.is_none())
            });
            let about = fs::symlink_metadata(folder.work().join(&path));
            match (wanted, about) {
                (true, Ok(about)) if about.is_file() => moved.push(path),
                (true, _) => copied.push(path),
                (false, Ok(about)) if input == Some(&identity(&about)) => {}
                (false, _) if input.is_some() => taken.others.push(format!("{path} (an input)")),
                (false, _) => taken.others.push(path),
            }
        }
        // What links lead to is read before it is moved.
        for (paths, is_moved) in [(copied, false), (moved, true)] {
            for path in paths {
                let from = folder.work().join(&path);
                let to = kept.join(taken.files.len().to_string());
                let done = match is_moved {
                    true => fs::rename(&from, &to),
                    false => copy(&from, &to),
                };
                match done.and_then(|()| OutputFile::without_place(&to, Arc::clone(folder))) {
                    Ok(file) => drop(taken.files.insert(path, file)),
                    Err(error) => taken.unkept.push(format!("{path} ({error})")),
                }
            }
        }
        Ok(taken)
    }
}

/// The files that a run's folder has when the program begins, as they are then.
pub(crate) struct Placed(BTreeMap<String, [i64; 4]>);

impl Placed {
    pub(crate) fn new(work: &Path) -> Self {
        let mut files = Vec::new();
        walk(work, &mut PathBuf::new(), &mut files, &mut Vec::new());
        let known = files.into_iter().filter_map(|path| {
            let about = fs::symlink_metadata(work.join(&path)).ok()?;
            Some((path, identity(&about)))
        });
        Self(known.collect())
    }
}

pub(crate) fn identity(about: &fs::Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt;
    [
        about.ino().cast_signed(),
        about.size().cast_signed(),
        about.ctime(),
        about.ctime_nsec(),
    ]
}

/// What a program wrote.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) files: Files,
    /// Files that are neither declared nor inputs.
    pub(crate) others: Vec<String>,
    /// What could not be kept, and why.
    pub(crate) unkept: Vec<String>,
}

impl Output {
    /// Whether a file is it, or lies in it if it is a folder.
    fn has(&self, name: &str, file: &str) -> bool {
        match &self.pattern {
            None => is_or_is_in(file, name),
            Some(pattern) => Path::new(file)
                .ancestors()
                .any(|path| pattern.matches_path_with(path, MATCHING)),
        }
    }
}

/// A path without `.`, double slashes and a slash at the end.
pub(crate) fn plain(path: &str) -> String {
    let parts = Path::new(path)
        .components()
        .filter(|part| *part != Component::CurDir);
    parts.collect::<PathBuf>().to_string_lossy().into_owned()
}

/// Whether a path leads to something below the folder that it starts in.
pub(crate) fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn is_or_is_in(path: &str, name: &str) -> bool {
    path.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// All below a folder that is no folder. What can't be read is told.
fn walk(root: &Path, below: &mut PathBuf, found: &mut Vec<String>, unread: &mut Vec<String>) {
    let entries =
        fs::read_dir(root.join(&*below)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return unread.push(format!("{} ({error})", below.display())),
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        below.push(entry.file_name());
        match (
            entry.file_type().is_ok_and(|kind| kind.is_dir()),
            below.to_str(),
        ) {
            (true, _) => walk(root, below, found, unread),
            (false, Some(path)) => found.push(path.to_owned()),
            (false, None) => unread.push(format!("{} (its name is no text)", below.display())),
        }
        below.pop();
    }
}

/// Copies what a link leads to. Opening a pipe would wait.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::metadata(from)?.is_file() {
        true => fs::copy(from, to).map(drop),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "no regular file",
        )),
    }
}
