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
}

impl Paths {
    pub(crate) fn new(mut known: Vec<Known>) -> Self {
        // The longest that fits counts.
        known.sort_by_key(|one| std::cmp::Reverse(one.path.len()));
        let root = fs::read_dir("/").into_iter().flatten().flatten();
        let root = root.map(|entry| entry.file_name().to_string_lossy().into_owned());
        Self {
            known,
            root: root.collect(),
        }
    }

    /// A text in which paths of inputs are replaced by their names. Another path that leads out of the folder is
    /// refused; `what` is the text, for a person.
    pub(crate) fn replaced(&self, text: &str, what: &str) -> Result<String, CommandError> {
        let (mut read, mut at) = (String::new(), 0);
        while let Some(next) = text[at..].chars().next() {
            let rest = &text[at..];
            let length = if begins(text, at) {
                if let Some(known) = self.known.iter().find(|known| known.is_at(rest)) {
                    read.push_str(known.name.as_ref().unwrap_or(&known.path));
                    at += known.path.len();
                    continue;
                }
                if self.is_trap(rest) {
                    return Err(refused(rest, what));
                }
                word(rest).len().max(1)
            } else {
                next.len_utf8()
            };
            read.push_str(&rest[..length]);
            at += length;
        }
        Ok(read)
    }

    /// Whether a path, with what follows it, leads to something that exists or may exist.
    fn is_trap(&self, rest: &str) -> bool {
        let path = word(rest);
        if path.split('/').any(|part| part == "..") {
            return true;
        }
        if let Some(user) = path.strip_prefix('~') {
            return user.starts_with(char::is_alphanumeric);
        }
        if !path.starts_with('/') {
            return false;
        }
        let below = rest.trim_start_matches(['/', '.']);
        if below.is_empty() {
            return true;
        }
        let first = below.split('/').next().unwrap_or_default();
        let is_open = word(first).contains(['*', '?', '[', '$']);
        // A name there may have blanks in it.
        let is_named = |entry: &String| {
            let after = below.strip_prefix(&**entry);
            after.is_some_and(|after| !after.starts_with(is_part))
        };
        path.len() > 1 && (is_open || self.root.iter().any(is_named))
    }
}

impl Known {
    fn is_at(&self, rest: &str) -> bool {
        let Some(after) = rest.strip_prefix(&*self.path) else {
            return false;
        };
        let is_end = !after.starts_with(|c| is_part(c) || c == '/');
        let is_below = self.is_folder
            && after.starts_with('/')
            && !word(after).split('/').any(|part| part == "..");
        is_end || is_below
    }
}

/// Whether a path may begin here: not within a word.
fn begins(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    let is_new = before.is_none_or(|c| !is_part(c) && c != '/');
    match text[at..].chars().next() {
        // An option's letters may stand before it.
        Some('/') => {
            is_new || {
                let start = text[..at].rfind(|c| !is_part(c)).map_or(0, |end| end + 1);
                text[start..at].starts_with('-')
            }
        }
        Some('~') => is_new,
        // Of a relative path only `..` matters.
        Some(_) => is_new && word(&text[at..]).split('/').any(|part| part == ".."),
        None => false,
    }
}

/// What may stand in a path without a doubt.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || "._-".contains(c)
}

/// The path at the beginning of a text.
fn word(text: &str) -> &str {
    let is_end = |c: char| c.is_whitespace() || ":=,;\"'<>()|&`".contains(c);
    text.split(is_end).next().unwrap_or_default()
}

fn refused(rest: &str, what: &str) -> CommandError {
    let whole = Path::new(rest).exists();
    let path = if whole { rest } else { word(rest) };
    let is_folder = Path::new(path).is_dir();
    let (copied, path) = (if is_folder { "--tree" } else { "-i" }, shown(path));
    let why = match path.starts_with('/') {
        true => format!(
            "nobody would notice if {path} changed: {copied} {path} copies it into the run, --uses {path} counts it where it lies, \
             --text {path} says that nothing depends on it"
        ),
        false => format!(
            "{path} leads out of the run's folder, and nobody would notice a change there: name the file by an argument \
             of its own, or by an absolute path; --text takes the whole argument as a word"
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
