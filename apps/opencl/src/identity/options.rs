//! Build options from all the places they come from, as a driver is given them.
//!
//! OpenCL does not say how an option that has a blank, a quote or a backslash in it is written, and drivers
//! differ: PoCL 3.1 takes quotes after the `-D`, none around the whole option, and a backslash for what it is;
//! others take away what protects a character. So a text with any of these goes to the driver as it was written, and is in
//! the key as it was written. In all other texts it does not count how options are parted by blanks, and whether a
//! blank is between `-D` or `-I` and what belongs to it. The order stays: the last `-D` of
//! a name counts, and directories are searched in turn.
//!
//! What an option means has to be known for two questions only: in which directories a compiler looks for included
//! files, and whether it may read others. Where the answer depends on how the driver reads quotes, it is that it may.

use std::path::PathBuf;

use super::closure::volatile_in;
use crate::Error;
use crate::cacheable::NotCacheable;

mod known;

use known::{WITH_VALUE, reads_no_file};

/// What drivers read in different ways.
const QUOTING: [char; 3] = ['"', '\'', '\\'];

/// The options of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// As they are sent: an option each, or a text with quotes or backslashes as its author wrote it.
    pub(super) list: Vec<String>,
}

fn wrong(options: &str, why: impl Into<String>) -> Error {
    Error::Options {
        options: options.to_owned(),
        why: why.into(),
    }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

impl Options {
    /// Appends what is written in a text.
    pub(super) fn add(&mut self, text: &str) -> Result<(), Error> {
        no_null(text)?;
        let text = text.trim_matches(is_blank);
        // A text whose quotes are not understood is the driver's to understand.
        let words = words(text).unwrap_or_default();
        let options = joined(words).map_err(|alone| wrong(text, alone))?;
        match text.contains(QUOTING) {
            true => self.list.push(text.to_owned()),
            false => self.list.extend(options),
        }
        Ok(())
    }

    /// Appends one option, whatever is in it: `-D` or `-I` and what belongs to it.
    pub(super) fn add_one(&mut self, option: &str) -> Result<(), Error> {
        no_null(option)?;
        let option = match (option.contains(is_blank), option.contains(QUOTING)) {
            (false, _) => option.to_owned(),
            (true, false) => format!("{}\"{}\"", &option[..2], &option[2..]),
            (true, true) => {
                let why = "drivers differ in how they read a blank beside a quote or a backslash; \
                           write the macro into the source, or give the directory another name";
                return Err(wrong(option, why));
            }
        };
        self.list.push(option);
        Ok(())
    }

    /// Where included files are looked for, in turn.
    pub(super) fn include_dirs(&self) -> Vec<PathBuf> {
        let options = self.list.iter().filter_map(|text| by_quotes(text));
        options.flat_map(|options| dirs(&options)).collect()
    }

    /// An option that may read or write files nobody follows, or after which each build is another.
    pub(super) fn not_cacheable(&self) -> Option<NotCacheable> {
        let why = |text: &String| {
            let volatile = volatile_in(text).map(|word| NotCacheable::Volatile {
                at: format!("the option {text}"),
                word,
            });
            volatile.or_else(|| unknown_in(text).map(|option| NotCacheable::Option { option }))
        };
        self.list.iter().find_map(why)
    }

    /// As a driver takes them.
    pub(super) fn text(&self) -> String {
        self.list.join(" ")
    }
}

fn no_null(text: &str) -> Result<(), Error> {
    match text.contains('\0') {
        true => Err(wrong(text, "there is a null byte in them")),
        false => Ok(()),
    }
}

/// The words of a text: blanks between `"` do not part them, and the quotes are taken away. Nothing if one is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for c in text.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            c if is_blank(c) && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!is_quoted).then_some(words)
}

/// Words as options: what stands behind `-D`, `-U` and `-I` belongs to them.
///
/// # Errors
/// That nothing does.
fn joined(words: impl IntoIterator<Item = String>) -> Result<Vec<String>, String> {
    let mut words = words.into_iter();
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        let between = match &*word {
            "-D" | "-U" | "-I" => "",
            name if WITH_VALUE.contains(&name) => " ",
            _ => {
                options.push(word);
                continue;
            }
        };
        match words.next() {
            Some(next) if !next.is_empty() => options.push(word + between + &next),
            _ => return Err(format!("nothing follows {word}")),
        }
    }
    Ok(options)
}

/// The options of a text for a driver that parts them at the blanks outside of quotes.
fn by_quotes(text: &str) -> Option<Vec<String>> {
    match text.contains(QUOTING) {
        true => joined(words(text)?).ok(),
        false => Some(vec![text.to_owned()]),
    }
}

/// The same for one that parts them at all blanks.
fn by_blanks(text: &str) -> Option<Vec<String>> {
    let words = text.split(is_blank).filter(|word| !word.is_empty());
    joined(words.map(str::to_owned)).ok()
}

fn dirs(options: &[String]) -> Vec<PathBuf> {
    let dirs = options.iter().filter_map(|one| one.strip_prefix("-I"));
    dirs.map(PathBuf::from).collect()
}

/// What of a text is not known to leave alone files that are not followed, for drivers that read quotes and for others.
fn unknown_in(text: &str) -> Option<String> {
    let unknown = |options: &[String]| options.iter().find(|one| !reads_no_file(one)).cloned();
    let Some(quoted) = by_quotes(text) else {
        return Some(text.to_owned());
    };
    if !text.contains(QUOTING) {
        return unknown(&quoted);
    }
    // No quote has a blank in it that would make another option, so it does not matter who reads them how.
    let parted = by_blanks(text).filter(|parted| unknown(parted).is_none());
    if parted.is_some_and(|parted| dirs(&parted) == dirs(&quoted)) {
        return None;
    }
    match text.contains(['\'', '\\']) {
        true => Some(text.to_owned()),
        false => unknown(&quoted),
    }
}

#[cfg(test)]
mod tests;
