//! The files that a source includes, and those that these include.
//!
//! OpenCL does not tell which files a compiler read, and preprocessing the source first would take
//! a compiler. So includes are looked for as the compiler would, in every branch of every condition: a
//! file too many in the key costs a build, one too few gives old code. A file that is missing where
//! only some builds would read it is noted as missing, so that the key is another once it is
//! there; one that every build reads is an error here, by name. Some drivers look in the working
//! directory too, and not all at the same turn: what is there counts beside what is found elsewhere.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::full_key::{Content, Included};
use crate::Error;
use crate::cacheable::NotCacheable;

mod lines;

use lines::{
    Reads, ambiguous, directive, each_line, file_name, is_computed, read_by, reads_by_assembly,
};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Closure {
    pub(super) included: Vec<Included>,
    pub(super) not_cacheable: Option<NotCacheable>,
}

/// Words after which a file is another one in each build.
const VOLATILE: &[&str] = &[
    "__DATE__",
    "__TIME__",
    "__TIMESTAMP__",
    "__has_include",
    "__has_embed",
];

/// The first of them that a text has, not as a part of a longer name.
pub(super) fn volatile_in(text: &str) -> Option<&'static str> {
    let is_alone = |word: &str| {
        let of_a_name = |c: char| c.is_alphanumeric() || c == '_';
        text.match_indices(word).any(|(at, _)| {
            !text[..at].ends_with(of_a_name) && !text[at + word.len()..].starts_with(of_a_name)
        })
    };
    VOLATILE.iter().copied().find(|word| is_alone(word))
}

/// How deep files may include one another: compilers stop here too.
const DEEPEST: usize = 200;

/// The closure of a source that has no file of its own. `reads` are the files of which a user says that they are all
/// that is included by what a macro says.
pub(super) fn closure(
    source: &str,
    name: &str,
    dirs: &[PathBuf],
    reads: &[String],
) -> Result<Closure, Error> {
    let mut walk = Walk {
        dirs,
        reads,
        seen: HashSet::new(),
        found: Closure::default(),
    };
    let source = Reader {
        text: source,
        name,
        dir: None,
        is_certain: true,
        depth: 0,
    };
    walk.promised(&source)?;
    walk.text(&source)?;
    Ok(walk.found)
}

struct Walk<'a> {
    dirs: &'a [PathBuf],
    /// What is included by macros, as a user says; nothing if he does not.
    reads: &'a [String],
    /// By name and by the directory it was searched from first.
    seen: HashSet<(String, Option<PathBuf>)>,
    found: Closure,
}

/// A text that includes others.
struct Reader<'a> {
    text: &'a str,
    name: &'a str,
    /// The directory that it is in, if it is a file.
    dir: Option<&'a Path>,
    /// Whether every build reads it.
    is_certain: bool,
    /// How many files include one another up to it.
    depth: usize,
}

/// A file by the name that it is included by.
struct Wanted<'a> {
    file: &'a str,
    /// Whether the name is between angle brackets.
    is_angled: bool,
    /// Whether every build reads it.
    is_certain: bool,
}

impl Walk<'_> {
    fn text(&mut self, reader: &Reader<'_>) -> Result<(), Error> {
        // How many conditions are open: what is beneath one is not read by every build.
        let mut conditions = 0_usize;
        if let Some((number, what)) = ambiguous(reader.text) {
            let at = format!("{}:{number}", reader.name);
            self.refuse(NotCacheable::Ambiguous { at, what });
        }
        each_line(reader.text, |number, line, doubt| {
            let at = || format!("{}:{number}", reader.name);
            if let Some(what) = doubt {
                self.refuse(NotCacheable::Ambiguous { at: at(), what });
            }
            if let Some(word) = volatile_in(line) {
                self.refuse(NotCacheable::Volatile { at: at(), word });
            }
            let directive = directive(line);
            if directive.is_some_and(|directive| directive.starts_with("if")) {
                conditions += 1;
            } else if directive.is_some_and(|directive| directive.starts_with("endif")) {
                conditions = conditions.saturating_sub(1);
            }
            let shown = || line.trim().to_owned();
            let unfollowed = || NotCacheable::Directive {
                at: at(),
                line: shown(),
            };
            match directive.and_then(read_by) {
                None if reads_by_assembly(line) => self.refuse(unfollowed()),
                None => {}
                Some(Reads::Unfollowed) => self.refuse(unfollowed()),
                Some(Reads::File(_)) if reader.depth >= DEEPEST => {
                    self.refuse(NotCacheable::TooDeep { at: at() });
                }
                Some(Reads::File(what)) => match file_name(what) {
                    Some((file, is_angled)) => {
                        let is_certain = reader.is_certain && conditions == 0 && !is_angled;
                        let wanted = Wanted {
                            file,
                            is_angled,
                            is_certain,
                        };
                        self.include(&wanted, reader)?;
                    }
                    None if !is_computed(what) => self.refuse(unfollowed()),
                    None if !self.reads.is_empty() => self.promised(reader)?,
                    None => self.refuse(NotCacheable::ComputedInclude {
                        at: at(),
                        line: shown(),
                    }),
                },
            }
            Ok(())
        })
    }

    /// What a macro names is somewhere for the source, and is looked for beside each file that has such a macro, too.
    fn promised(&mut self, reader: &Reader<'_>) -> Result<(), Error> {
        for file in self.reads {
            let wanted = Wanted {
                file,
                is_angled: false,
                is_certain: reader.depth == 0,
            };
            self.include(&wanted, reader)?;
        }
        Ok(())
    }

    fn include(&mut self, wanted: &Wanted<'_>, reader: &Reader<'_>) -> Result<(), Error> {
        let beside = reader.dir.filter(|_| !wanted.is_angled);
        // By one name of the directory, or files that include one another by `..` have ever longer names.
        let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let seen = (wanted.file.to_owned(), beside.map(real));
        if !self.seen.insert(seen) {
            return Ok(());
        }
        let places = beside.into_iter().chain(self.dirs.iter().map(|dir| &**dir));
        let mut first = None;
        for place in places {
            let path = place.join(wanted.file);
            if let Some(bytes) = read(&path)? {
                first = Some((path, bytes));
                break;
            }
        }
        // An absolute name stays what it is in each of the places.
        let here = Path::new(".").join(wanted.file);
        let in_working_dir = read(&here)?.filter(|_| match &first {
            Some((path, _)) => !is_same_file(path, &here),
            None => true,
        });
        if first.is_none() && in_working_dir.is_none() {
            return self.missing(wanted, reader);
        }
        if let Some((path, bytes)) = first {
            self.found(wanted, &path, bytes, reader)?;
        }
        match in_working_dir {
            Some(bytes) => {
                let perhaps = Wanted {
                    is_certain: false,
                    ..*wanted
                };
                self.found(&perhaps, &here, bytes, reader)
            }
            None => Ok(()),
        }
    }

    fn found(
        &mut self,
        wanted: &Wanted<'_>,
        path: &Path,
        bytes: Vec<u8>,
        by: &Reader<'_>,
    ) -> Result<(), Error> {
        let shown = path.display().to_string();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.found.included.push(Included {
            name: wanted.file.to_owned(),
            path: Some(shown.clone()),
            content: Some(Content::of(bytes)),
        });
        self.text(&Reader {
            text: &text,
            name: &shown,
            dir: path.parent(),
            is_certain: wanted.is_certain,
            depth: by.depth + 1,
        })
    }

    fn missing(&mut self, wanted: &Wanted<'_>, reader: &Reader<'_>) -> Result<(), Error> {
        if wanted.is_certain {
            return Err(Error::NoInclude {
                name: wanted.file.to_owned(),
                from: reader.name.to_owned(),
                looked_in: self.looked_in(reader),
            });
        }
        self.found.included.push(Included {
            name: wanted.file.to_owned(),
            path: None,
            content: None,
        });
        Ok(())
    }

    fn looked_in(&self, reader: &Reader<'_>) -> Vec<PathBuf> {
        let beside = reader.dir.into_iter().map(Path::to_owned);
        beside.chain(self.dirs.iter().cloned()).collect()
    }

    /// The first reason stands.
    fn refuse(&mut self, why: NotCacheable) {
        self.found.not_cacheable.get_or_insert(why);
    }
}

/// Whether it is one file by two names: then what it includes is the same by either.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The content, if there is such a file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    // A pipe would never give anything, and other things no end.
    let read = fs::metadata(path).and_then(|found| match found.is_file() {
        true => fs::read(path).map(Some),
        false => Ok(None),
    });
    match read {
        Ok(found) => Ok(found),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory => Ok(None),
            _ => Err(Error::Include {
                path: path.to_owned(),
                why: error.to_string(),
            }),
        },
    }
}

#[cfg(test)]
mod tests;
