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
mod readings;

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
        let words = readings::words(text).unwrap_or_default();
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

    /// Where included files are looked for, in turn, as far as that is the same for all drivers.
    pub(super) fn include_dirs(&self) -> Vec<PathBuf> {
        let options = readings::by_quotes(&self.text()).unwrap_or_default();
        dirs(&options)
    }

    /// An option that may read or write files nobody follows, or after which each build is another.
    pub(super) fn not_cacheable(&self) -> Option<NotCacheable> {
        let volatile = |text: &String| {
            let word = volatile_in(text)?;
            let at = format!("the option {text}");
            Some(NotCacheable::Volatile { at, word })
        };
        let volatile = self.list.iter().find_map(volatile);
        volatile.or_else(|| self.unknown().map(|option| NotCacheable::Option { option }))
    }

    /// What is not known to leave alone files that are not followed.
    fn unknown(&self) -> Option<String> {
        let unknown = |options: &[String]| options.iter().find(|one| !reads_no_file(one)).cloned();
        let text = self.text();
        if !text.contains(QUOTING) {
            return unknown(&self.list);
        }
        // A driver reads all texts as one. However it reads quotes, it must see the same directories, and no option that
        // is not known.
        let Some(all) = readings::all(&text) else {
            return Some(text);
        };
        let quoted = &all[0];
        let differs = |options: &Vec<String>| dirs(options) != dirs(quoted);
        if all.iter().any(differs) {
            return Some(text);
        }
        unknown(quoted).or_else(|| all.iter().find_map(|options| unknown_option(options)))
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

fn dirs(options: &[String]) -> Vec<PathBuf> {
    let dirs = options.iter().filter_map(|one| one.strip_prefix("-I"));
    dirs.map(PathBuf::from).collect()
}

/// What looks like an option and is not known. What does not is a part of a value for a driver that parts it there.
fn unknown_option(options: &[String]) -> Option<String> {
    let looks_like_one = |one: &&String| one.starts_with(['-', '@', '/']);
    let mut unknown = options.iter().filter(looks_like_one);
    unknown.find(|one| !reads_no_file(one)).cloned()
}

#[cfg(test)]
mod tests;
