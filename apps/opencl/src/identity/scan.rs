//! What a compiler may read beside the text that it is given.
//!
//! OpenCL does not tell which files a compiler read, and compilers are many. So no compiler is imitated: a plain
//! `#include "name"`, in a comment or under whatever condition, is followed to every file that it may mean, and a text
//! with anything else by which a file could be read or the time be asked makes a program that is not cacheable. A
//! file too many in the key, or a mention in a comment, costs a build; a file too few would give old code.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::full_key::{Content, Included};
use super::words::{Words, joined, unclear, word_length};
use crate::cacheable::NotCacheable;

/// What was found.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) included: Vec<Included>,
    pub(super) cacheable: Result<(), NotCacheable>,
}

/// What is scanned.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    /// What it is called in messages.
    pub(super) name: &'a str,
    /// The options that it is built with: macros may come from there.
    pub(super) options: &'a str,
    /// Where included files are looked for.
    pub(super) dirs: &'a [PathBuf],
    /// The files of which its author says that it reads no others, but for those that are included plainly.
    pub(super) reads: Option<&'a [String]>,
}

impl Source<'_> {
    pub(super) fn scan(&self) -> Scan {
        let mut walk = Walk {
            source: self,
            seen: HashSet::new(),
            left: Vec::new(),
            included: Vec::new(),
            words: Words::default(),
            why: None,
        };
        walk.words.add("the options", self.options.as_bytes());
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
    /// By name, and by the directory of the file that includes it.
    seen: HashSet<(String, Option<PathBuf>)>,
    left: Vec<File>,
    included: Vec<Included>,
    words: Words,
    /// The first reason for which it may read what is not followed.
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
                    Directive::Include(file) => self.include(file, name, dir),
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
            self.include(file, name, dir);
        }
    }

    /// Takes every file that an include may mean: beside the file that has it, in each directory of the options, and in the
    /// working directory, where some drivers look.
    fn include(&mut self, file: &str, by: &str, dir: Option<&Path>) {
        // By one name of the directory, or files that include one another by `..` have ever longer names.
        let real = dir.map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.to_owned()));
        if !self.seen.insert((file.to_owned(), real)) {
            return;
        }
        let mut is_found = false;
        let mut tried = HashSet::new();
        let source = self.source;
        let dirs = source.dirs.iter().map(PathBuf::as_path);
        for place in dir.into_iter().chain(dirs).chain([Path::new(".")]) {
            let path = place.join(file);
            if !tried.insert(std::path::absolute(&path).unwrap_or_default()) {
                continue;
            }
            match read(&path) {
                Ok(None) => {}
                Ok(Some(bytes)) => {
                    is_found = true;
                    self.included.push(Included {
                        name: file.to_owned(),
                        path: path.display().to_string(),
                        content: Content::of(bytes.clone()),
                    });
                    self.left.push(File { path, bytes });
                }
                Err(error) => self.refuse(by, format!("includes \"{file}\": {error}")),
            }
        }
        if !is_found {
            let why = format!("includes \"{file}\", which is not found, and a compiler may find");
            self.refuse(by, why);
        }
    }

    fn refuse(&mut self, at: &str, why: String) {
        let at = at.to_owned();
        self.why.get_or_insert(NotCacheable::Reads { at, why });
    }
}

/// The content, if there is such a file. A pipe would never give anything, and other things no end.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let found = fs::metadata(path).and_then(|found| match found.is_file() {
        true => fs::read(path).map(Some),
        false => Ok(None),
    });
    match found {
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
        found => found,
    }
}

/// What may be a directive.
enum Directive<'a> {
    /// Includes a file of this name.
    Include(&'a str),
    /// Reads no file.
    Other,
    /// May read a file in another way.
    Unfollowed,
}

/// What each `#` of a line may begin, also in a string or a comment, but for one behind a `//` that no comment ends after.
fn directives(line: &[u8]) -> impl Iterator<Item = Directive<'_>> {
    let marks = line.iter().enumerate();
    let marks = marks.filter_map(|(at, byte)| match (byte, line.get(at + 1)) {
        (b'#', _) => Some((at, at + 1)),
        (b'%', Some(b':')) => Some((at, at + 2)),
        _ => None,
    });
    marks
        .filter(|(at, _)| !is_commented(&line[..*at]))
        .map(|(_, behind)| directive(&line[behind..]))
}

fn is_commented(before: &[u8]) -> bool {
    let last = |what: &[u8]| before.windows(2).rposition(|two| two == what);
    last(b"//").is_some_and(|begun| last(b"*/").is_none_or(|ended| ended < begun))
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
        // It may end on another line.
        b"" if text.starts_with(b"/*") => Directive::Unfollowed,
        b"include" => {
            file_name(blanks_skipped(rest)).map_or(Directive::Unfollowed, Directive::Include)
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

/// Blanks, and what is not ASCII, of which compilers take some for blanks.
fn blanks_skipped(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &&u8| **byte <= b' ' || !byte.is_ascii();
    &text[text.iter().take_while(is_blank).count()..]
}

/// The name between quotes or angle brackets, if all compilers look for the same file by it.
fn file_name(text: &[u8]) -> Option<&str> {
    let (first, rest) = text.split_first()?;
    let close = match first {
        b'"' => b'"',
        b'<' => b'>',
        _ => return None,
    };
    let length = rest.iter().position(|byte| *byte == close)?;
    let name = std::str::from_utf8(&rest[..length]).ok()?;
    let is_plain = !(name.contains(['\\', '\0']) || name.contains("//") || name.contains("/*"));
    (is_plain && !name.is_empty()).then_some(name)
}
