//! The files that a compiler may read beside the source text.
//!
//! OpenCL does not report the files a compiler read, and compilers are many, so none is imitated. A plain
//! `#include "name"`, even in a comment or under a false condition, is followed to every file that it may mean. A text
//! with any other construct that could read a file or the time makes the program not cacheable. A file too many
//! in the key costs a build; a file too few would give old code.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::full_key::{Content, Included};
use super::words::{Words, joined, unclear, word_length};
use crate::cacheable::NotCacheable;

/// The included files, and whether there can be others.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) included: Vec<Included>,
    pub(super) cacheable: Result<(), NotCacheable>,
}

/// A source to scan.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    /// Its name in messages.
    pub(super) name: &'a str,
    /// The options of the build, which may define macros.
    pub(super) options: &'a str,
    /// The directories for included files.
    pub(super) dirs: &'a [PathBuf],
    /// Directories that a driver may search first, since it writes the text to a file there.
    pub(super) before: &'a [PathBuf],
    /// The files that the author promises are the only others it reads, beside plain includes.
    pub(super) reads: Option<&'a [String]>,
}

impl Source<'_> {
    pub(super) fn scan(&self) -> Scan {
        let mut walk = Walk {
            source: self,
            seen: HashSet::new(),
            taken: HashSet::new(),
            files: HashMap::new(),
            left: Vec::new(),
            included: Vec::new(),
            words: Words::default(),
            why: None,
        };
        walk.words.add("the options", self.options.as_bytes());
        let is_no_dir = |dir: &&PathBuf| fs::metadata(dir).is_ok_and(|found| !found.is_dir());
        if let Some(file) = self.dirs.iter().find(is_no_dir) {
            let why = format!(
                "looks for files in {}, which is no directory",
                file.display()
            );
            walk.refuse("the options", why);
        }
        walk.text(self.text.as_bytes(), self.name, None);
        while let Some(file) = walk.left.pop() {
            let name = file.path.display().to_string();
            walk.text(&file.bytes, &name, file.path.parent());
        }
        let asked = walk.words.time();
        let read = walk.why.or_else(|| walk.words.file());
        let read = read.filter(|_| self.reads.is_none());
        Scan {
            included: walk.included,
            cacheable: asked.or(read).map_or(Ok(()), Err),
        }
    }
}

/// A file that is to be scanned.
struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

struct Walk<'a> {
    source: &'a Source<'a>,
    /// Includes already followed: the name, and the directory of the including file.
    seen: HashSet<(String, Option<PathBuf>)>,
    /// The files in the key, by the include's name and their path.
    taken: HashSet<(String, PathBuf)>,
    /// For each file, the first of the included files that is it.
    files: HashMap<FileId, usize>,
    left: Vec<File>,
    included: Vec<Included>,
    words: Words,
    /// The first construct that may read a file that is not followed.
    why: Option<NotCacheable>,
}

impl Walk<'_> {
    fn text(&mut self, text: &[u8], name: &str, dir: Option<&Path>) {
        if let Some(what) = unclear(text) {
            self.refuse(
                name,
                format!("has {what}, which compilers read in different ways"),
            );
        }
        let text = joined(text);
        self.words.add(name, &text);
        for line in text.split(|byte| *byte == b'\n') {
            for directive in directives(line) {
                match directive {
                    Directive::Include(file, quoted) => self.include((file, quoted), name, dir),
                    Directive::Other => {}
                    Directive::Unfollowed => {
                        let line = String::from_utf8_lossy(line);
                        self.refuse(name, format!("may read a file: `{}`", line.trim()));
                    }
                }
            }
        }
        let source = self.source;
        for file in source.reads.unwrap_or_default() {
            self.include((file, Quoted::Yes), name, dir);
        }
    }

    /// Takes every file that an include may mean: beside the including file, in each directory of the options, in the
    /// working directory, and beside the file that the driver writes the source to. It counts as found only where all
    /// compilers look, as by an absolute path: a compiler that misses it there searches directories of its own.
    fn include(&mut self, (file, quoted): (&str, Quoted), by: &str, dir: Option<&Path>) {
        // The canonical directory, since files that include one another by `..` would have ever longer names.
        let real = dir.map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.to_owned()));
        if !self.seen.insert((file.to_owned(), real)) {
            return;
        }
        let (mut is_found, mut is_there) = (false, false);
        let is_absolute = Path::new(file).is_absolute();
        let source = self.source;
        let everywhere = source.dirs.iter().map(|dir| (&**dir, true));
        let somewhere = source.before.iter().map(|dir| (&**dir, false));
        let beside = dir.map(|dir| (dir, quoted == Quoted::Yes));
        let places = somewhere
            .chain(beside)
            .chain(everywhere)
            .chain([(Path::new("."), false)]);
        for (place, all_look) in places {
            let path = place.join(file);
            match read(&path) {
                Ok(None) => {}
                Ok(Some((bytes, id))) => {
                    is_there = true;
                    is_found |= all_look || is_absolute;
                    if self.taken.insert((file.to_owned(), path.clone())) {
                        let number = self.included.len();
                        self.included.push(Included {
                            name: file.to_owned(),
                            path: path.display().to_string(),
                            file: *self.files.entry(id).or_insert(number),
                            content: Content::of(bytes.clone()),
                        });
                        self.left.push(File { path, bytes });
                    }
                }
                Err(error) => self.refuse(by, format!("includes \"{file}\": {error}")),
            }
        }
        if !is_found {
            let which = match is_there {
                true => "found where not all compilers look; name its directory by `include_dir`",
                false => "not found, and a compiler may find",
            };
            self.refuse(by, format!("includes \"{file}\", which is {which}"));
        }
    }

    fn refuse(&mut self, at: &str, why: String) {
        let at = at.to_owned();
        self.why.get_or_insert(NotCacheable::Reads { at, why });
    }
}

/// A file's identity, by whatever path: a compiler reads a file with `#pragma once` a single time.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = PathBuf;

fn id_of(path: &Path, found: &fs::Metadata) -> io::Result<FileId> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let _ = path;
        Ok((found.dev(), found.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        path.canonicalize()
    }
}

/// The content, if there is such a file. Pipes and devices are errors: a read of them may never end, and a compiler
/// reads them.
fn read(path: &Path) -> io::Result<Option<(Vec<u8>, FileId)>> {
    let found = fs::metadata(path).and_then(|found| match found.file_type() {
        kind if kind.is_file() => Ok(Some((fs::read(path)?, id_of(path, &found)?))),
        kind if kind.is_dir() => Ok(None),
        _ => Err(io::Error::other("it is neither a file nor a directory")),
    });
    match found {
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
        found => found,
    }
}

/// Whether a name is in quotes, so that the file is looked for beside the one that includes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    Yes,
    No,
}

/// A possible directive.
enum Directive<'a> {
    /// Includes a file of this name.
    Include(&'a str, Quoted),
    /// Reads no file.
    Other,
    /// May read a file in another way.
    Unfollowed,
}

/// The directive that each `#` of a line may begin, also in a string or a comment, but not after a `//` with no
/// later `*/`.
fn directives(line: &[u8]) -> impl Iterator<Item = Directive<'_>> {
    let mut is_commented = false;
    line.iter().enumerate().filter_map(move |(at, byte)| {
        let next = line.get(at + 1);
        match (byte, next) {
            (b'/', Some(b'/')) => is_commented = true,
            (b'*', Some(b'/')) => is_commented = false,
            (b'#', _) if !is_commented => return Some(directive(&line[at + 1..])),
            (b'%', Some(b':')) if !is_commented => return Some(directive(&line[at + 2..])),
            _ => {}
        }
        None
    })
}

/// Pragmas that are known to read no file.
const PRAGMAS: [&[u8]; 7] = [
    b"OPENCL",
    b"STDC",
    b"unroll",
    b"nounroll",
    b"pack",
    b"once",
    b"promote_to_registers",
];

fn directive(behind: &[u8]) -> Directive<'_> {
    let text = blanks_skipped(behind);
    let (word, rest) = text.split_at(word_length(text));
    match word {
        // The comment may end on another line.
        b"" if text.starts_with(b"/*") => Directive::Unfollowed,
        b"include" => {
            let named = file_name(blanks_skipped(rest));
            named.map_or(Directive::Unfollowed, |(name, quoted)| {
                Directive::Include(name, quoted)
            })
        }
        b"pragma" => {
            let text = blanks_skipped(rest);
            match PRAGMAS.contains(&&text[..word_length(text)]) {
                true => Directive::Other,
                false => Directive::Unfollowed,
            }
        }
        word if word.starts_with(b"include") || word.starts_with(b"embed") => Directive::Unfollowed,
        _ => Directive::Other,
    }
}

/// Skips blanks and non-ASCII bytes, since compilers take some of these for blanks.
fn blanks_skipped(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &&u8| **byte <= b' ' || !byte.is_ascii();
    &text[text.iter().take_while(is_blank).count()..]
}

/// The name between quotes or angle brackets, if all compilers look for the same file by it.
fn file_name(text: &[u8]) -> Option<(&str, Quoted)> {
    let (first, rest) = text.split_first()?;
    let (close, quoted) = match first {
        b'"' => (b'"', Quoted::Yes),
        b'<' => (b'>', Quoted::No),
        _ => return None,
    };
    let length = rest.iter().position(|byte| *byte == close)?;
    let name = std::str::from_utf8(&rest[..length]).ok()?;
    let is_plain = !(name.contains(['\\', '\0']) || name.contains("//") || name.contains("/*"));
    (is_plain && !name.is_empty()).then_some((name, quoted))
}
