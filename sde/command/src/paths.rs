//! Paths in a text that lead out of the run's folder.
//!
//! What they lead to is in no key, unless it is declared. A text is searched as a text: what a program makes of it is not
//! known. So too much is found rather than too little.

use std::fs;
use std::path::Path;

use crate::error::CommandError;

/// Something that is declared: the path by which a text may name it, and what stands there in the run's folder.
pub(crate) struct Known {
    pub(crate) path: String,
    /// `None` where it stays as it is.
    pub(crate) name: Option<String>,
    /// Whether all below it is declared with it.
    pub(crate) is_folder: bool,
}

/// What is declared, and what the root of the file system has.
pub(crate) struct Paths {
    known: Vec<Known>,
    root: Vec<String>,
    /// Whether a shell reads the texts: it puts paths together from pieces.
    is_shell: bool,
    /// Whether absolute paths are those of an image, which counts.
    is_image: bool,
}

/// They are nobody's.
const FREE: &[&str] = &["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

impl Paths {
    pub(crate) fn new(mut known: Vec<Known>, is_shell: bool, is_image: bool) -> Self {
        let free = FREE.iter().map(|path| Known {
            path: (*path).to_owned(),
            name: None,
            is_folder: false,
        });
        known.extend(free);
        // The longest that fits counts.
        known.sort_by_key(|one| std::cmp::Reverse(one.path.len()));
        let root = fs::read_dir("/").into_iter().flatten().flatten();
        let root = root.map(|entry| entry.file_name().to_string_lossy().into_owned());
        Self {
            known,
            root: root.collect(),
            is_shell,
            is_image,
        }
    }

    /// A text in which paths of inputs are replaced by their names. Another path that leads out of the folder is
    /// refused; `what` is the text, for a person.
    pub(crate) fn replaced(&self, text: &str, what: &str) -> Result<String, CommandError> {
        let (mut read, mut at) = (String::new(), 0);
        while let Some(next) = text[at..].chars().next() {
            let (before, rest) = text.split_at(at);
            let known = match next == '/' && !before.ends_with('/') {
                true => self.known.iter().find(|known| known.is_at(rest)),
                false => None,
            };
            if let Some(known) = known.filter(|known| begins(before) || known.name.is_none()) {
                read.push_str(known.name.as_ref().unwrap_or(&known.path));
                at += known.path.len();
            } else if !self.is_image && self.is_trap(before, rest) {
                return Err(refused(text, rest, what));
            } else {
                read.push(next);
                at += next.len_utf8();
            }
        }
        Ok(read)
    }

    /// Whether what stands here leads to something that exists or may exist.
    fn is_trap(&self, before: &str, rest: &str) -> bool {
        if rest.starts_with('/') {
            return !before.ends_with('/') && self.is_absolute_trap(before, rest);
        }
        if !is_new(before) {
            return false;
        }
        match rest.strip_prefix('~') {
            Some(user) => is_user(user),
            None => leaves(word(rest)),
        }
    }

    fn is_absolute_trap(&self, before: &str, rest: &str) -> bool {
        // Wherever it stands, it may be taken out of the text.
        if exists(rest) {
            return true;
        }
        if !begins(before) {
            return false;
        }
        let below = rest.trim_start_matches('/');
        let first = below.split('/').next().unwrap_or_default();
        let is_named = |entry: &String| {
            // A name there may have blanks in it.
            let after = below.strip_prefix(&**entry);
            after.is_some_and(|after| !after.starts_with(is_part))
        };
        let is_root = first.is_empty() || first == "." || first == "..";
        let is_plain = !first.is_empty() && first.chars().all(is_part);
        self.root.iter().any(is_named)
            || is_root && before.is_empty()
            || is_open(first) && is_clean(before)
            || self.is_shell && !is_plain
            || before.ends_with("file:")
    }
}

impl Known {
    fn is_at(&self, rest: &str) -> bool {
        let Some(after) = rest.strip_prefix(&*self.path) else {
            return false;
        };
        match after.chars().next() {
            None => true,
            Some('/') => self.is_folder && !word(after).split('/').any(|part| part == ".."),
            // A name with a blank in it may go on here.
            Some(c) if c.is_whitespace() => {
                let longer = rest.split(is_closing).next().unwrap_or_default();
                !Path::new(longer.trim_end()).exists() || longer.trim_end() == self.path
            }
            Some(c) => is_closing(c),
        }
    }
}

/// Whether a path may begin after this: not within a word, unless that is an option.
fn begins(before: &str) -> bool {
    is_new(before) && !before.ends_with('/') || {
        let start = before.rfind(|c| !is_part(c)).map_or(0, |end| end + 1);
        before[start..].starts_with('-') && !before.ends_with('/')
    }
}

fn is_new(before: &str) -> bool {
    !before.ends_with(|c| is_part(c) || c == '/')
}

/// Whether a word begins after this, and not only something within one.
fn is_clean(before: &str) -> bool {
    let is_mark = |c: char| c.is_whitespace() || is_closing(c) || c == '=' || c == '(';
    before.is_empty() || before.ends_with(is_mark) || before.starts_with('-')
}

/// What may stand in a path without a doubt.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || "._-".contains(c)
}

/// What may end a path, and is hardly part of one.
fn is_closing(c: char) -> bool {
    "\"',;:)<>|&`\n".contains(c)
}

/// The path at the beginning of a text.
fn word(text: &str) -> &str {
    let is_end = |c: char| c.is_whitespace() || is_closing(c) || c == '=' || c == '(';
    text.split(is_end).next().unwrap_or_default()
}

/// Whether a part of a path stands for others: a pattern, or a variable.
fn is_open(part: &str) -> bool {
    let is_variable = |(at, _): (usize, &str)| {
        part[at + 1..].starts_with(|c: char| c.is_alphabetic() || c == '{' || c == '(')
    };
    word(part).contains(['*', '?', '[', '{']) || part.match_indices('$').any(is_variable)
}

/// Whether an absolute path below a folder of the root exists, as far as it is plain.
fn exists(rest: &str) -> bool {
    let word = word(rest);
    let plain = word
        .split(['*', '?', '[', '{', '$', '\\'])
        .next()
        .unwrap_or_default();
    let path = match plain.len() < word.len() {
        true => plain.rsplit_once('/').map_or("", |(folder, _)| folder),
        false => plain,
    };
    let path = Path::new(path);
    path.components().count() > 2 && path.exists()
}

/// Whether a relative path leads above the folder that it starts in.
fn leaves(path: &str) -> bool {
    let mut depth = 0_i32;
    path.split('/').any(|part| {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        depth < 0
    })
}

fn is_user(name: &str) -> bool {
    let name = name.split(|c| !is_part(c)).next().unwrap_or_default();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    !name.is_empty()
        && users
            .lines()
            .any(|line| line.split(':').next() == Some(name))
}

fn refused(text: &str, rest: &str, what: &str) -> CommandError {
    let text = shown(text);
    let is_whole = Path::new(rest).exists();
    let path = if is_whole { rest } else { word(rest) };
    let is_folder = Path::new(path).is_dir();
    let name = shown(path);
    let why = match (path.starts_with('/'), path.trim_matches('/').is_empty()) {
        (true, false) => format!(
            "nobody would notice if {name} changed: {} {name} copies it into the run, --uses {name} counts it where it lies, \
             --text {text} says that nothing depends on it",
            if is_folder { "--tree" } else { "-i" }
        ),
        (true, true) => format!(
            "the root of the file system may be read by it: --text {text} says that it is not"
        ),
        (false, _) => format!(
            "{name} leads out of the run's folder, and nobody would notice a change there: write the absolute path in its \
             place; or --text {text} says that nothing depends on it"
        ),
    };
    CommandError::refused(what, why)
}

/// A word as a shell takes it.
pub(crate) fn shown(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
